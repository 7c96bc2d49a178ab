"""Devices are idle for one cause: a late launch, pauses between kernels, or other waits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.naming import is_compiled_region, is_graph_launch, names_that, short_name
from htagraph.core.statistics import MOST
from htagraph.findings.bound import LOADER_ADVICE
from htagraph.findings.finding import NO_CHART, BarPart, Chart, Claim, Evidence, Finding, Place, Rows, Trial, gain_text
from htagraph.findings.limits import MIN_SHARE, MOST_ROWS
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.pauses import CAUSES
from htagraph.graph.measures.waits import waiting_devices
from htagraph.queries.host_time import late_reason

__all__ = ["DEVICE_IDLE", "device_window_us", "idle_chart"]

_TEXT = {
    "kernel_wait": "From first to last device work, devices pause {share} of the time{at} between many small kernels.",
    "other": (
        "From first to last device work, devices are idle {share} of the time{at}, but not for a late launch: work "
        "waited for an event, a stream or a rank, or its launch was not recorded."
    ),
}
_FUSED = "Fuse the kernels{compile}, or replay them as a CUDA graph."
_HOST = {
    "loader": (", which waits for the data loader", LOADER_ADVICE),
    "ranks": (", which waits for other ranks or transfers", ""),
    "pauses": (": a few long pauses of the host, not many launches", "See what the host does in them (htagraph idle)."),
    "graphs": (
        ", which launches CUDA graphs, each too late",
        "Launch graphs with fewer kernels, or earlier: a launch takes the longer the more kernels its graph has.",
    ),
    "few": (", which launches little work, each piece late", ""),
    "launches": (
        ", which launches many small pieces of work, each too late{short}",
        "Use CUDA graphs, larger batches or fewer operators{compile}.",
    ),
}
"""Why the host is late, and what to do, by the reason."""
_COMMANDS: dict[str, tuple[str, ...]] = {
    "ranks": ("collectives",), "graphs": ("launches",), "loader": ("what-if", "--free-dataloader"),
}  # fmt: skip
"""What to run where devices wait for the host, by why it is late."""
_CAUSES = {"host_wait": ("host wait", "host"), "kernel_wait": ("kernel wait", "waiting"), "other": ("other", "other")}
"""Causes of idle time in words, and their colors."""


def device_window_us(results: Results) -> float:
    """Return the time from first to last device work, summed over ranks, µs."""
    return float(results.busy.loc[results.busy["executor"] == "device", "window_us"].sum())


def _when(results: Results) -> list[Claim]:
    window = device_window_us(results)
    if not window:
        return []
    rank_idle, graph, claims = results.rank_idle, results.graph, []
    compiled = bool(names_that(is_compiled_region, graph.names).any())
    for cause, us in rank_idle.groupby("cause")["idle_us"].sum().sort_values(ascending=False).items():
        if us < MIN_SHARE * window:
            continue
        worst = rank_idle[rank_idle["cause"] == cause].sort_values("share_percent").iloc[-1]
        share, several = float(worst["share_percent"]), len(results.busy) > 1
        facts = {
            "rank": int(worst["rank"]),
            "rank_percent": share,
            "several": several,
            "host": "",
            "compiled": compiled,
        }
        if cause == "host_wait":
            facts["host"] = _host_reason(graph, int(worst["rank"]))
            facts["in_collectives_percent"] = 100 * sum(waiting_devices(graph).values()) / 1000 / window
            facts |= _launching(results) if facts["host"] == "launches" else {}
        claims.append(Claim("device_idle", str(cause), 100 * us / window, "percent", facts=facts))
    return claims


def _launching(results: Results) -> dict[str, float]:
    """Return how many of the calls take longer than what they launch, percent, and what a host without time saves."""
    total, short = int(results.launches["launches"].sum()), int(results.launches["short"].sum())
    return {
        "short_percent": 100 * short / max(total, 1), "steps": results.steps,
        "free_us": results.free.get("host", 0) / 1000,
    }  # fmt: skip


def _host_reason(graph: DependencyGraph, rank: int) -> str:
    """Return why the host of a rank launches too late: one of `LATE_REASONS`, or ``"graphs"`` for many CUDA graphs."""
    reason = late_reason(graph, rank)
    return "graphs" if reason in ("launches", "few", "") and _in_graphs(graph) else reason or "launches"


def _in_graphs(graph: DependencyGraph) -> bool:
    """Return whether most kernels and copies were launched as parts of CUDA graphs, so that these are no advice."""
    acts = graph.activities
    cause = acts.cause[acts.on_device & (acts.cause >= 0)]
    in_graph = names_that(is_graph_launch, graph.names)[acts.name[cause]]
    return bool(len(cause)) and float(in_graph.mean()) > MOST


def _words(claim: Claim) -> str:
    facts = claim.facts
    at, share, waits = _worst(claim), f"{claim.figure:.0f} %", facts.get("in_collectives_percent", 0.0)
    if claim.about != "host_wait":
        return _TEXT[claim.about].format(share=share, at=at)
    text = f"devices wait for the host {share} of the time{at}"
    if waits >= 100 * MIN_SHARE:  # in kernels that spin, so that the device looks busy
        text = f"devices wait {waits:.0f} % in collectives for late ranks and {share} for the host{at}"
    short = (
        f" ({facts['short_percent']:.0f} % of the calls take longer than their work)"
        if "short_percent" in facts
        else ""
    )
    why = _HOST.get(facts["host"], ("", ""))[0].format(short=short)
    return f"From first to last device work, {text}{why}."


def _advice(claim: Claim) -> str:
    advice = _HOST.get(claim.facts["host"], ("", ""))[1] if claim.about == "host_wait" else ""
    compiles = "" if claim.facts.get("compiled") else " (torch.compile)"  # no advice to who does
    return (_FUSED if claim.about == "kernel_wait" else advice).format(compile=compiles)


def _trial(claim: Claim) -> Trial | None:
    """A host that takes no time, where its launches are late: no graph gains more."""
    us = claim.facts.get("free_us", 0.0)
    if us <= 0:
        return None
    return Trial(us, f"A host that takes no time saves {gain_text(claim, us)}.", ("--infinite-host",))


def _worst(claim: Claim) -> str:
    """Return the rank with the largest share, where there are several."""
    facts = claim.facts
    return f" (rank {facts['rank']}: {facts['rank_percent']:.0f} %)" if facts["several"] else ""


def _evidence(results: Results, claim: Claim) -> Evidence:
    from htagraph.analyses.idle_breakdown import idle_breakdown

    rank, host = claim.facts["rank"], claim.facts["host"]
    table = _pauses(results.graph, rank, claim.about).nlargest(MOST_ROWS, "pause_us")
    places = [Place.lasting(row["start_us"], row["pause_us"], int(row["after"])) for row in table.to_dict("records")]
    names = {
        word: [short_name(name) for name in results.rows(table[side].to_numpy())["name"]]
        for side, word in (("before", "after"), ("after", "until"))
    }
    shown = table[["start_us", "pause_us"]].rename(columns={"pause_us": "idle_us"}).assign(**names)
    return Evidence(
        idle_chart(results.rank_idle), Rows(shown, f"The longest of these pauses of rank {rank}", places),
        place=places[0] if places else None, look=f"the longest pause of rank {rank}",
        command=_COMMANDS.get(host, ("idle",)), meaning=idle_breakdown,
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


def idle_chart(rank_idle: pd.DataFrame) -> Chart:
    """Return a chart of why the devices of each rank are idle; it shows nothing where no device is."""
    if not rank_idle["idle_us"].any():
        return NO_CHART
    stacks = []
    for rank, causes in rank_idle.groupby("rank"):
        time = dict(zip(causes["cause"], causes["idle_us"], strict=True))
        parts = [BarPart(word, color, float(time.get(cause, 0.0))) for cause, (word, color) in _CAUSES.items()]
        stacks.append((f"rank {rank}", parts))
    return Chart("Idle device time by cause", stacks=stacks)


DEVICE_IDLE = Finding(
    "device_idle", when=_when, short=_words, evidence=_evidence, trial=_trial, advice=_advice
)  # fmt: skip
