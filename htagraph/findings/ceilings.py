"""Ceilings of a bound: the most that overlap of transfers, or one rank alone, gains."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from htagraph.core.errors import SelectionError
from htagraph.findings.change import Gain, per_step
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.path_segments import Bound
from htagraph.whatif.scenario import what_if

__all__ = ["RankAlone", "alone_of", "overlap_text", "overlap_us"]


class RankAlone(NamedTuple):
    """The job is shorter by a percentage without the time of a rank."""

    rank: int
    percent: float


def overlap_us(results: Results, gain: Gain) -> float:
    """Return the most that overlap of transfers gains, µs: the most work of a rank that transfers may run beside.

    Args:
        results: the results of the job.
        gain: the gain if transfers take no time, which no overlap exceeds.
    """
    steps = len(results.graph.steps)
    usual_share = len(results.usual) / steps if results.usual and steps else 1.0
    work_us = usual_share * float(results.busy["computation_us"].max())
    return min(gain.value_us, gain.makespan_us - gain.value_us, work_us)


def overlap_text(gain: Gain, overlap_us: float) -> str:
    """Return the most that overlap of transfers gains, in words; empty where that is all of the gain."""
    if overlap_us >= LIMITS.nearly_all * gain.value_us:
        return ""
    most = time_text(per_step(overlap_us, gain.steps))
    unit = " per step" if gain.scope == "step" else ""
    return f"Overlap alone gains at most {most}{unit}, the ranks' own work."


def alone_of(graph: DependencyGraph, bound: Bound) -> RankAlone | None:
    """Return the rank without which the job is shortest, of the two with most path; None for a job of one rank."""
    if len(graph.ranks) < 2 or not bound.ranks:
        return None
    tried = [RankAlone(rank, _without_rank(graph, rank)) for rank in list(bound.ranks)[:2]]
    return max(tried, key=lambda rank: rank.percent)


def _without_rank(graph: DependencyGraph, rank: int) -> float:
    """Return the percentage by which the job is shorter without a rank; little if another rank is as late."""
    scenario = what_if(graph).scale(factor=0.0, rank=rank)
    with suppress(SelectionError):  # it waits for no loader
        scenario = scenario.free_dataloader(rank=rank)
    with suppress(SelectionError):  # it waits for nothing outside
        scenario = scenario.free_outside(rank=rank)
    outcome = scenario.run()
    return 100 * outcome.saved_ns / max(outcome.baseline_ns, 1)
