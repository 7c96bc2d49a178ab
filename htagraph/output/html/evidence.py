"""What proves a finding: rows of results, a chart, where to look in the timeline, and what to try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import DEVICE_WAITS, GapKind
from htagraph.core.naming import short_name, step_number
from htagraph.output.claim_sentences import claim_name
from htagraph.output.html.charts import Bar, Part, bars, stacked
from htagraph.output.html.markup import NOTHING, Html, element
from htagraph.output.html.results import Results
from htagraph.output.html.tables import table_of
from htagraph.output.phrases import CATEGORY_WORDS, command_line
from htagraph.output.warm_up_sentences import is_start_up
from htagraph.output.wording.critical_path import NO_OPERATOR
from htagraph.queries.bound import HOST_CATEGORIES
from htagraph.queries.claim import Claim, Says
from htagraph.queries.device_pauses import device_pauses
from htagraph.queries.paths import CATEGORIES
from htagraph.whatif.change_options import criteria

__all__ = ["Evidence", "evidence_of", "idle_chart"]

_ROWS = 5
"""Rows that a finding shows; chosen: enough to see whether it is one thing or many. Doubled, findings fill a screen
each."""
_LEAST_PERCENT = 0.5
"""Percent of the critical path below which a category is a part of the others in its chart; chosen: less is not seen.
Doubled, parts of a pixel or two have no name."""
_LEAST_CHARGED = 10.0
"""Percent of all waiting from which it is said what makes a rank late; chosen: less is not what to look at. Doubled,
ranks that a tenth of the waiting is for are a row only."""
_IDLE_WORDS = {"host_wait": "host wait", "kernel_wait": "kernel wait", "other": "other"}
_IDLE_COLORS = {"host_wait": "host", "kernel_wait": "waiting", "other": "other"}


@dataclass(frozen=True)
class Evidence:
    """What stands under the sentence of a finding."""

    chart: Html = NOTHING
    table: Html = NOTHING
    href: str = ""
    """Where in the timeline it is; empty for nowhere in particular."""
    look: str = ""
    """What is to be seen there."""
    command: str = ""
    """What to try; empty for nothing."""


def evidence_of(claims: Sequence[Claim], results: Results) -> Evidence:
    """Return what proves claims of one kind, which share a sentence.

    Args:
        claims: at least one.
        results: what the report is made of.
    """
    made = _MAKERS.get(claims[0].says)
    evidence = Evidence() if made is None else made(claims, results)
    rows = [row for claim in claims for row in claim.rows]
    if rows and not evidence.href:
        evidence = replace(evidence, href=results.at(rows[0]), look="one of them")
    return evidence


def _bound(claims: Sequence[Claim], results: Results) -> Evidence:
    claim, path = claims[0], results.path
    shares = claim.facts["shares"]
    named = [category for category, share in shares.items() if share >= _LEAST_PERCENT]
    us = path.makespan_ns / 100_000  # of a percent
    parts = [Part(CATEGORY_WORDS[each], each.replace("_", "-"), shares[each] * us) for each in named]
    parts.append(Part("other", "other", sum(share for each, share in shares.items() if each not in named) * us))
    chart = stacked([("critical path", parts)], title="What the critical path is spent on")
    own = HOST_CATEGORIES if claim.about == "host" else (claim.about,)
    chosen = np.isin(path.segments.category, [CATEGORIES.index(each) for each in own])
    _, href, look = _stretches(results, chosen)
    command = command_line("critical-path", results.inputs)
    return Evidence(chart, _largest(results, claim.about), href, look, command)


def _largest(results: Results, bound: str) -> Html:
    """Return the kernels, or for all else the operators, with most time on the path."""
    group = "kernel" if bound in ("computation", "memory") else "operator"
    shares = results.path.summary()
    rows = shares[(shares["group"] == group) & (shares["key"] != "none")]
    rows = rows.assign(name=[NO_OPERATOR if step_number(key) is not None else key for key in rows["key"]])
    sums = rows.groupby("name", as_index=False, sort=False)[["time_us", "share_percent", "count"]].sum()
    names = sums.nlargest(_ROWS, "time_us").rename(columns={"count": "segments"})
    return table_of(names, caption=f"The {group}s with most time on the critical path")


def _stretches(results: Results, chosen: np.ndarray) -> tuple[Html, str, str]:
    """Return the longest stretches of the path among those chosen, as a table and an address, and what is there."""
    graph, parts = results.graph, results.path.segments
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(-parts.length[rows], kind="stable")][:_ROWS]
    if not len(rows):
        return NOTHING, "", ""
    start = (parts.start[rows] - graph.origin_ns) / 1000
    frame = results.rows(parts.activity[rows]).assign(
        start_us=start, duration_us=parts.length[rows] / 1000, rank=graph.activities.rank[parts.place[rows]]
    )
    frame.insert(4, "gap", [_gap_words(gap) for gap in parts.gap[rows].tolist()])
    frame = frame if frame["gap"].any() else frame.drop(columns="gap")
    links = [
        results.between(begin, begin + lasted, int(place))
        for begin, lasted, place in zip(start, frame["duration_us"], parts.place[rows], strict=True)
    ]
    table = table_of(
        frame, caption="The longest of these on the critical path", link=links.__getitem__,
        headings={"duration_us": "on the path_us", "gap": "pause"},
    )  # fmt: skip
    return table, links[0], "the longest stretch of it"


def _gap_words(gap: int) -> str:
    return "" if gap == GapKind.NONE else GapKind(gap).label.replace("_", " ")


def _pauses(claims: Sequence[Claim], results: Results) -> Evidence:
    frame = pd.DataFrame([
        {
            "what": short_name(claim.about) or "untraced code", "inside": short_name(claim.facts["inside"]),
            "rank": claim.facts["rank"], "count": claim.facts["count"], "total_us": claim.facts["total_us"],
            "longest_us": claim.facts["longest_us"], "share_percent": claim.figure,
        }
        for claim in claims
    ])  # fmt: skip
    links = [results.at(claim.rows[0]) for claim in claims]
    table = table_of(frame, caption="On the critical path, summed", link=links.__getitem__)
    return Evidence(
        table=table, href=links[0], look="the longest", command=command_line("critical-path", results.inputs)
    )


def _interrupted(claims: Sequence[Claim], results: Results) -> Evidence:
    longest = results.summary.tables["interruptions"].nlargest(_ROWS, "interrupted_us")
    links = [results.at(row) for row in claims[0].rows]
    every = [
        results.between(row["start_us"], row["start_us"] + row["interrupted_us"], int(row["activity"]))
        for row in longest.to_dict("records")
    ]
    shown = longest[["rank", "thread", "name", "start_us", "interrupted_us", "usual_us"]]
    shown = shown.assign(name=[short_name(name) or "untraced code" for name in shown["name"]])
    return Evidence(
        table=table_of(shown, caption="The longest interruptions", link=every.__getitem__), href=links[0],
        look="the longest", command=command_line("what-if", results.inputs, "--no-interruptions"),
    )  # fmt: skip


def _gains(claims: Sequence[Claim], results: Results) -> Evidence:
    steps = max(claims[0].facts["steps"], 1)
    rows = [
        Bar(claim_name(claim), claim.figure / steps, *((end / steps) for end in claim.interval or (claim.figure,) * 2))
        for claim in claims
    ]
    chart = bars(rows, title="Largest gains: how much shorter the job would be", color="less")
    first = next((claim for claim in claims if claim.facts["target"] and not is_start_up(claim)), None)
    slow = any(claim.facts["what"] == "straggler" for claim in claims)
    option = ("--scale", f"{first.facts['target']}:0.5") if first else ("--fix-straggler", "auto") if slow else ()
    most = _most_critical(results, first) if first else -1
    return Evidence(
        chart, href=results.at(most) if first and most >= 0 else "",
        look=f"{claim_name(first)} on the critical path" if first else "",
        command=command_line("what-if", results.inputs, *option) if option else "",
    )  # fmt: skip


def _most_critical(results: Results, claim: Claim) -> int:
    """Return the activity that a claim is about which is on the critical path longest, -1 for none."""
    parts = results.path.segments
    try:
        chosen = results.graph.select(**criteria(claim.facts["target"])).activities
    except SelectionError:  # of what no activity is, such as host code that was not traced
        return -1
    time = np.bincount(parts.activity, parts.length, len(results.graph.activities))[chosen]
    return int(chosen[time.argmax()]) if len(chosen) and time.max() > 0 else -1


def _blocking(claims: Sequence[Claim], results: Results) -> Evidence:
    target = claims[0].facts["target"]
    graph = results.graph
    waiting = np.unique(graph.edges.target[of_kinds(graph.edges.kind, DEVICE_WAITS)] >> 1)
    rows = np.intersect1d(graph.select(**criteria(target)).activities, waiting)
    rows = rows[np.argsort(-graph.activities.duration[rows], kind="stable")][:_ROWS]
    links = [results.at(row) for row in rows.tolist()]
    table = table_of(results.rows(rows), caption="The longest of these waits", link=links.__getitem__)
    return Evidence(
        table=table, href=links[0] if links else "", look="the longest",
        command=command_line("what-if", results.inputs, f"--remove-sync={target}"),
    )  # fmt: skip


def _waiting(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    ranks = results.summary.tables["stragglers"]
    rows = [Bar(f"rank {rank}", us, us, us) for rank, us in zip(ranks["rank"], ranks["blamed_us"], strict=True)]
    chart = bars(rows, title="How long others wait for each rank, summed over ranks", color="communication")
    most = ranks.nlargest(_ROWS, "blamed_us")
    headings = {"blamed_us": "others wait for it_us", "waits_us": "it waits_us", "share_percent": "of all waiting %"}
    shown = most[["rank", "blamed_us", "share_percent", "waits_us", "cause"]]
    table = table_of(shown, caption="How long others wait for each rank, summed over collectives", headings=headings)
    why = (
        element("p", f"Rank {row['rank']}: {row['evidence']}.")
        for row in most[most["share_percent"] >= _LEAST_CHARGED].to_dict("records")
    )
    return Evidence(
        chart, element("div", table, *why), *_longest_wait(results), command=command_line("stragglers", results.inputs)
    )


def _longest_wait(results: Results) -> tuple[str, str]:
    """Return where the longest wait in a collective is, and what is to be seen there."""
    parts = results.collectives[results.collectives["matched"]]
    if not len(parts) or not parts["wait_us"].max() > 0:
        return "", ""
    row = parts.iloc[int(parts["wait_us"].to_numpy().argmax())]
    of_it = parts[parts["collective"] == row["collective"]]
    last = of_it[of_it["rank"] == row["last_rank"]]
    shown = int(last["activity"].iloc[0]) if len(last) else int(row["activity"])
    begin, end = of_it["start_us"].min(), (of_it["start_us"] + of_it["duration_us"]).max()
    return results.between(begin, end, shown), "the longest wait, and who came last"


def _straggler(claims: Sequence[Claim], results: Results) -> Evidence:
    command = command_line("what-if", results.inputs, "--fix-straggler", "auto")
    return replace(_waiting(claims, results), command=command)


def _idle(claims: Sequence[Claim], results: Results) -> Evidence:
    cause, facts = claims[0].about, claims[0].facts
    table = device_pauses(results.graph, facts["rank"])
    table = table[table["cause"] == cause].nlargest(_ROWS, "pause_us")
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
    )  # fmt: skip


_IDLE_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ranks": ("collectives", ()), "graphs": ("launches", ()), "launches": ("launches", ()),
}  # fmt: skip
"""What to run where devices wait for the host, by why it is late."""


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


def _launching(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    table = results.summary.tables["launches"].head(_ROWS)
    return Evidence(table=table_of(table, caption="Launches by rank"), command=command_line("launches", results.inputs))


def _unexplained(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    unexplained = [gap for gap in GapKind if gap.is_unexplained]
    table, href, look = _stretches(results, np.isin(results.path.segments.gap, unexplained))
    return Evidence(NOTHING, table, href, look, command_line("critical-path", results.inputs, "--segments"))


def _clocks(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    return Evidence(table=table_of(results.summary.tables["clocks"].head(_ROWS), caption="Clocks of the ranks"))


def _unmatched(claims: Sequence[Claim], results: Results) -> Evidence:
    return Evidence(table=_of_rows(claims, results, "Some of them"), command=command_line("validate", results.inputs))


def _start_up(claims: Sequence[Claim], results: Results) -> Evidence:
    return Evidence(table=_of_rows(claims, results, "First calls on the critical path"))


def _of_rows(claims: Sequence[Claim], results: Results, caption: str) -> Html:
    rows = np.array(claims[0].rows, np.int64)
    links = [results.at(row) for row in claims[0].rows]
    return table_of(results.rows(rows), caption=caption, link=links.__getitem__)


_MAKERS: dict[Says, Callable[[Sequence[Claim], Results], Evidence]] = {
    Says.BOUND: _bound, Says.HOST_PAUSE: _pauses, Says.INTERRUPTED: _interrupted, Says.GAIN: _gains,
    Says.BLOCKING: _blocking,
    Says.STRAGGLER: _straggler, Says.SLOW_STAGE: _waiting, Says.WAITING: _waiting, Says.DEVICE_IDLE: _idle,
    Says.SHORT_LAUNCHES: _launching, Says.UNEXPLAINED: _unexplained, Says.UNKNOWN_CLOCKS: _clocks,
    Says.UNMATCHED: _unmatched, Says.START_UP: _start_up,
}  # fmt: skip
