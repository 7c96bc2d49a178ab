"""What proves findings about waiting: of the host for its device, of ranks for each other, of devices for the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.stragglers import stragglers
from htagraph.core.kinds import DEVICE_WAITS, of_kinds
from htagraph.core.naming import short_name
from htagraph.findings.claim import Claim
from htagraph.findings.phrases import command_line
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.pauses import CAUSES
from htagraph.output.html.charts import Bar, Part, bars, stacked
from htagraph.output.html.definitions import definition
from htagraph.output.html.page import NOTHING, Html, element
from htagraph.output.html.proof import MOST_ROWS, Evidence
from htagraph.output.html.results import Results
from htagraph.output.html.tables import table_of
from htagraph.whatif.changes.remove_sync import remove_sync
from htagraph.whatif.options import criteria

__all__ = ["blocking", "idle", "idle_chart", "straggler", "waiting"]

_LEAST_CHARGED = 10.0
"""Percent of all waiting from which it is said what makes a rank late; chosen: less is not what to look at. Doubled,
ranks that a tenth of the waiting is for are a row only."""
_IDLE_WORDS = {"host_wait": "host wait", "kernel_wait": "kernel wait", "other": "other"}
_IDLE_COLORS = {"host_wait": "host", "kernel_wait": "waiting", "other": "other"}
_IDLE_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ranks": ("collectives", ()), "graphs": ("launches", ()), "launches": ("launches", ()),
}  # fmt: skip
"""What to run where devices wait for the host, by why it is late."""


def blocking(claims: Sequence[Claim], results: Results) -> Evidence:
    """Return what proves that the host waits for its device: the waits by rank, or by step, and the longest of them."""
    target = claims[0].facts["target"]
    graph = results.graph
    duration = graph.activities.duration
    late = np.unique(graph.edges.target[of_kinds(graph.edges.kind, DEVICE_WAITS)] >> 1)
    every = np.intersect1d(graph.select(**criteria(target)).activities, late)
    rows = every[np.argsort(-duration[every], kind="stable")][:MOST_ROWS]
    links = [results.at(row) for row in rows.tolist()]
    table = table_of(results.rows(rows), caption="The longest of these waits", link=links.__getitem__)
    trial = ("--remove-sync", target)
    return Evidence(
        _waits_chart(results, every), table, links[0] if links else "", "the longest",
        command_line("what-if", results.inputs, f"--remove-sync={target}"), trial, definition(remove_sync),
    )  # fmt: skip


def _waits_chart(results: Results, rows: npt.NDArray[np.int64]) -> Html:
    """Return a chart of how long calls take by rank, or by step if there is one rank."""
    acts = results.graph.activities
    several = len(results.graph.ranks) > 1
    of = (acts.rank if several else acts.step)[rows].astype(np.int64)
    keys, place = np.unique(of, return_inverse=True)
    sums = np.bincount(place.ravel(), weights=acts.duration[rows] / 1000, minlength=len(keys))
    words = [f"rank {key}" if several else f"step {key}" if key >= 0 else "outside steps" for key in keys.tolist()]
    every = [Bar(word, us) for word, us in zip(words, sums.tolist(), strict=True)]
    return bars(every, title=f"How long these calls take, by {'rank' if several else 'step'}", color="sync")


def waiting(claims: Sequence[Claim], results: Results) -> Evidence:
    """Return what proves that ranks wait for each other: for whom, why, and where longest."""
    del claims
    ranks = results.summary.tables["stragglers"]
    rows = [Bar(f"rank {rank}", us) for rank, us in zip(ranks["rank"], ranks["blamed_us"], strict=True)]
    rows.sort(key=lambda bar: int(bar.word.split()[1]))
    chart = bars(rows, title="How long others wait for each rank, summed over ranks", color="communication")
    most = ranks.nlargest(MOST_ROWS, "blamed_us")
    headings = {"blamed_us": "others wait for it_us", "waits_us": "it waits_us", "share_percent": "of all waiting %"}
    shown = most[["rank", "blamed_us", "share_percent", "waits_us", "cause"]]
    links = [_longest_wait(results, int(rank)) for rank in most["rank"]]
    table = table_of(
        shown, caption="How long others wait for each rank, summed over collectives", headings=headings,
        link=links.__getitem__ if any(links) else None,
    )  # fmt: skip
    why = (
        element("p", f"Rank {row['rank']}: {row['evidence']}.")
        for row in most[most["share_percent"] >= _LEAST_CHARGED].to_dict("records")
    )
    longest = _longest_wait(results)
    return Evidence(
        chart, element("div", table, *why), longest, "the longest wait, and who came last" if longest else "",
        command_line("stragglers", results.inputs), meaning=definition(stragglers),
    )  # fmt: skip


def _longest_wait(results: Results, last_rank: int | None = None) -> str:
    """Return where the longest wait in a collective is, for one rank or for any; empty where there is none."""
    every = results.collectives[results.collectives["matched"]]
    parts = every if last_rank is None else every[(every["last_rank"] == last_rank) & (every["rank"] != last_rank)]
    if not len(parts) or not parts["wait_us"].max() > 0:
        return ""
    row = parts.iloc[int(parts["wait_us"].to_numpy().argmax())]
    of_it = every[every["collective"] == row["collective"]]
    last = of_it[of_it["rank"] == row["last_rank"]]
    shown = int(last["activity"].iloc[0]) if len(last) else int(row["activity"])
    begin, end = of_it["start_us"].min(), (of_it["start_us"] + of_it["duration_us"]).max()
    return results.between(begin, end, shown)


def straggler(claims: Sequence[Claim], results: Results) -> Evidence:
    """Return what proves that one rank makes the others wait."""
    trial = ("--fix-straggler", "auto")
    command = command_line("what-if", results.inputs, *trial)
    return replace(waiting(claims, results), command=command, trial=trial)


def idle(claims: Sequence[Claim], results: Results) -> Evidence:
    """Return what proves that devices are idle: of each rank by cause, and the longest pauses of one."""
    cause, facts = claims[0].about, claims[0].facts
    table = _pauses(results.graph, facts["rank"], cause).nlargest(MOST_ROWS, "pause_us")
    links = [
        results.between(row["start_us"], row["start_us"] + row["pause_us"], int(row["after"]))
        for row in table.to_dict("records")
    ]
    names = {
        word: [short_name(name) for name in results.rows(table[side].to_numpy())["name"]]
        for side, word in (("before", "after"), ("after", "until"))
    }
    shown = table[["start_us", "pause_us"]].rename(columns={"pause_us": "idle_us"}).assign(**names)
    by_loader = ("what-if", ("--free-dataloader",))
    verb, options = by_loader if facts["host"] == "loader" else _IDLE_COMMANDS.get(facts["host"], ("idle", ()))
    rank = facts["rank"]
    return Evidence(
        idle_chart(results.summary.tables["rank_idle"]),
        table_of(shown, caption=f"The longest of these pauses of rank {rank}", link=links.__getitem__),
        links[0] if links else "", f"the longest pause of rank {rank}", command_line(verb, results.inputs, *options),
        options, definition(idle_breakdown),
    )  # fmt: skip


def _pauses(graph: DependencyGraph, rank: int, cause: str) -> pd.DataFrame:
    """Return the pauses of a rank's device for one cause: begin and length, µs, the work before and after each."""
    pauses = graph.device_pauses
    of_rank = (pauses.places[pauses.place, 0] == rank) & (pauses.length > 0)
    rows = np.flatnonzero(of_rank & (pauses.causes() == CAUSES.index(cause)))
    return pd.DataFrame({
        "before": pauses.last[rows], "after": pauses.after[rows],
        "start_us": (pauses.begin[rows] - graph.origin_ns) / 1000, "pause_us": pauses.length[rows] / 1000,
    })  # fmt: skip


def idle_chart(rank_idle: pd.DataFrame) -> Html:
    """Return a chart of why the devices of each rank are idle.

    Args:
        rank_idle: result of `htagraph.idle_breakdown` by rank.
    """
    rows = []
    for rank, causes in rank_idle.groupby("rank"):
        time = dict(zip(causes["cause"], causes["idle_us"], strict=True))
        parts = [Part(_IDLE_WORDS[each], _IDLE_COLORS[each], float(time.get(each, 0.0))) for each in _IDLE_WORDS]
        rows.append((f"rank {rank}", parts))
    return stacked(rows, title="Idle device time by cause") if rank_idle["idle_us"].any() else NOTHING
