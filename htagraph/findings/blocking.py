"""The host waits for its device, and the job would be shorter if it did not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from htagraph.core.arrays import Array, marked
from htagraph.core.kinds import DEVICE_WAITS, ActivityKind, of_kinds
from htagraph.core.naming import is_source_frame, names_that
from htagraph.core.statistics import MOST
from htagraph.findings import finding
from htagraph.findings.change import PredictedChange, gain_of, less_text
from htagraph.findings.finding import gain_in
from htagraph.findings.limits import MIN_SHARE, MOST_ROWS
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.fetched_values import Use, use_of
from htagraph.queries.host_time import calls_that_wait, longest_blocking
from htagraph.whatif.options import criteria, criteria_text
from htagraph.whatif.scenario import what_if

__all__ = ["BLOCKING", "BlockingClaim"]


_OF_USE: Final[dict[Use, str]] = {
    "sizes": (
        "The host waits for the sizes of the collective that follows: use fixed sizes (a capacity for each expert, "
        "padding) and no copy to the host."
    ),
    "shape": (
        "The host waits for a size that the next operator takes: pad to a fixed size, or use a mask in place of the "
        "size."
    ),
    "upload": (
        "The host waits while it copies a few bytes to the device: make this value on the device once, or pin it and "
        "copy with non_blocking=True."
    ),
    "condition": ("The host waits for a condition: decide on the device (torch.where), or check every few steps only."),
}
"""The advice where a value is used at once, and no wait can be moved, by the use."""


_FEW_PER_STEP: Final = LIMITS.few
"""Waits of a rank in a step that may be of a log: a loss, its parts, a norm of gradients. Chosen: models have more
layers. Doubled, a small model's layers are told to fetch values every few steps."""


@dataclass(frozen=True, kw_only=True)
class BlockingClaim(finding.Claim):
    """The host waits for its device in calls of one place; the figure is the gain without these waits, µs."""

    count: int
    """Calls that wait, on all ranks."""
    target: str
    """The criteria that select the calls, as an option of the command line has them."""
    frame: str = ""
    """The innermost Python function with a source file around most of the calls; empty for none."""
    use: Use = ""
    """The purpose of the fetched values; empty where nothing shows that values are used at once."""
    computes: bool = False
    """Whether most of the waits are inside operators that launch kernels."""
    may_be_rare: bool = True
    """Whether there are so few of these waits in a step that they may be of a log, and not of each layer."""


def _when(results: Results) -> list[BlockingClaim]:
    graph = results.warm_graph
    makespan = results.makespan_ns
    place = longest_blocking(graph)
    if place is None or place.blocked_ns < MIN_SHARE * makespan:
        return []
    outcome = what_if(graph).remove_sync(**place.criteria).run()
    gain = gain_of(outcome, makespan, results.steps)
    if gain.percent < 100 * MIN_SHARE:
        return []
    target = criteria_text(place.criteria)
    name = f"no waiting for the device in {finding.in_short(place.name)}"
    change = PredictedChange(name, (f"--remove-sync={target}",), gain)
    claim = BlockingClaim(
        "blocking",
        place.name,
        gain.value_us,
        "us",
        change=change,
        count=place.count,
        target=target,
        frame=_frame(graph, place.criteria),
        use=_use(graph, place.criteria),
        computes=_computes(graph, place.criteria),
        may_be_rare=_may_be_rare(graph, place.criteria),
    )
    return [finding.saved_claim(claim)]


def _frame(graph: DependencyGraph, which: dict[str, Any]) -> str:
    """Return the innermost Python function with a source file around most of the calls; empty for none."""
    acts = graph.activities
    is_frame = (acts.kind == ActivityKind.PYTHON) & names_that(is_source_frame, graph.names)[acts.name]
    around = graph.tree.nearest(is_frame, graph.select(**which).activities)
    names = acts.name[around[around >= 0]]
    return graph.names[int(np.bincount(names).argmax())] if len(names) else ""


def _use(graph: DependencyGraph, which: dict[str, Any]) -> Use:
    """Return the purpose of the values that calls wait for."""
    calls = calls_that_wait(graph)
    chosen = calls[marked(graph.select(**which).activities, len(graph.activities))[calls]]
    return use_of(graph, chosen)


def _computes(graph: DependencyGraph, which: dict[str, Any]) -> bool:
    """Return whether most of the waits are inside operators that launch kernels, so that these cannot be left out."""
    acts, tree = graph.activities, graph.tree
    calls = graph.select(**which).activities
    calls = calls[acts.kind[calls] == ActivityKind.SYNC] if (acts.kind[calls] == ActivityKind.SYNC).any() else calls
    around = np.unique(tree.nearest(acts.kind == ActivityKind.OP, calls))
    around = around[around >= 0]
    kernels = np.sort(tree.first[acts.cause[(acts.kind == ActivityKind.COMPUTATION) & (acts.cause >= 0)]])
    has = np.searchsorted(kernels, tree.stop[around]) > np.searchsorted(kernels, tree.first[around])
    return bool(len(around)) and float(has.mean()) > MOST


def _may_be_rare(graph: DependencyGraph, which: dict[str, Any]) -> bool:
    """Return whether each rank has at most a few of these waits in a step, as a log of the loss has, and no layer."""
    acts = graph.activities
    calls = calls_that_wait(graph)
    chosen = calls[marked(graph.select(**which).activities, len(acts))[calls]]
    ranks = max(len(np.unique(acts.rank[chosen])), 1)
    steps = max(len(np.unique(acts.step[chosen])), 1)
    return len(chosen) <= _FEW_PER_STEP * ranks * steps


def _advice(claim: BlockingClaim) -> str:
    if claim.use:
        return _OF_USE[claim.use]
    if claim.computes:
        return "See what makes it wait: a size that depends on values, a copy, or kernels that are tried out."
    where = f" in {finding.in_short(claim.frame)}" if claim.frame else ""
    rarely = ", or do it every few steps only" if claim.may_be_rare else ", or keep its result on the device"
    return f"Move {finding.in_short(claim.about)}{where} out of the loop{rarely}."


def _evidence(results: Results, claim: BlockingClaim) -> finding.Evidence:
    from htagraph.whatif.changes.remove_sync import remove_sync

    target, graph = claim.target, results.graph
    duration = graph.activities.duration
    late = np.unique(graph.edges.target[of_kinds(graph.edges.kind, DEVICE_WAITS)] >> 1)
    every = np.intersect1d(graph.select(**criteria(target)).activities, late)
    longest = finding.of_activities(
        results, every[np.argsort(-duration[every], kind="stable")][:MOST_ROWS], "The longest of these waits"
    )
    return finding.Evidence(
        _chart(results, every), longest, place=longest.first, look="the longest", meaning=remove_sync
    )


def _chart(results: Results, rows: Array) -> finding.Chart:
    """Return a chart of how long calls take by rank, or by step if there is one rank."""
    acts = results.graph.activities
    several = len(results.graph.ranks) > 1
    of = (acts.rank if several else acts.step)[rows].astype(np.int64)
    keys, place = np.unique(of, return_inverse=True)
    sums = np.bincount(place.ravel(), weights=acts.duration[rows] / 1000, minlength=len(keys))
    words = [f"rank {key}" if several else f"step {key}" if key >= 0 else "outside steps" for key in keys.tolist()]
    bars = [finding.Bar(word, us) for word, us in zip(words, sums.tolist(), strict=True)]
    return finding.Chart(f"How long these calls take, by {'rank' if several else 'step'}", bars, "sync")


def _short(claim: BlockingClaim) -> str:
    place = f"{finding.in_short(claim.about)} ({claim.count:,} times)"
    return f"The host waits for its device in {place}. Without these waits {less_text(gain_in(claim))}."


def _why(claim: BlockingClaim) -> str:
    """Return where the host waits for its device, and how often."""
    return f"The host waits for its device in {finding.in_short(claim.about)}, {claim.count:,} times."


BLOCKING = finding.Finding(
    "blocking",
    needs=finding.PREDICTS,
    when=_when,
    short=_short,
    why=_why,
    evidence=_evidence,
    advice=_advice,
)
