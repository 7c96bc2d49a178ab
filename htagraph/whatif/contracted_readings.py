"""Skeletons of a job under every reading of its recording, so that a small program can compute a prediction's interval.

A reading changes which part of each lag and gap belongs to which class of time, so that one skeleton serves all
factors. A prediction's own skeleton comes first, then one per doubt that the recording leaves; the first one's makespan
over another one's is what `htagraph.whatif.interval` compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from htagraph.core.arrays import Array
from htagraph.core.computing import ahead, threads_for
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import UNEXPLAINED, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import cores_of
from htagraph.queries.replay import predict, without_unexplained
from htagraph.queries.skeleton import Skeleton, skeleton_of
from htagraph.queries.time_classes import ClassParts, WeightedPaths, class_parts, paths_of_parts
from htagraph.queries.weights import State, initial
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.links import Sharing, assumed, may_overlap
from htagraph.whatif.readings import DOUBTS, without_unexplained_pauses
from htagraph.whatif.turns import takes_turns

__all__ = ["Reading", "contracted_readings", "shares_links_differently"]

Criteria: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By name of a class, what selects its time, as for `htagraph.whatif.changes.scale`."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A job under one reading of its recording."""

    cause: IntervalCause
    """Why an interval is as wide as this reading makes it; empty for the prediction itself."""
    skeleton: Skeleton
    """Its classes are those given."""
    ratio: float = 1.0
    """What its makespan is multiplied by: the recorded one over the one that this reading gives without any change."""


def shares_links_differently(state: State) -> bool:
    """Return whether times depend on what else runs: transfers share links, or threads wait for cores."""
    links = assumed(state)
    if cores_of(state.graph) is not None:
        return True
    return links.sharing is not Sharing.NONE and links.may_share and may_overlap(state.graph)


def contracted_readings(
    baseline: DependencyGraph, state: State, classes: Criteria, most: int, *, known: Skeleton | None = None
) -> tuple[list[Reading], list[str]]:
    """Return (the skeletons of a job under each reading, the causes of readings that no skeleton describes).

    The first one is of the job as changed; each other one takes the makespan in which `htagraph.whatif.interval` is
    interested. A reading that is impossible, or the same, is left out. `known` is the first skeleton where it was made.
    """

    def fresh() -> ClassParts:
        return replace(recorded_parts, lag=deepcopy(recorded_parts.lag), gap=deepcopy(recorded_parts.gap))

    def paths() -> Iterator[tuple[IntervalCause, float, WeightedPaths]]:
        if known is None:
            yield IntervalCause.NONE, 1.0, paths_of_parts(state, recorded_parts, tuple(classes), most)
        for cause, doubt in DOUBTS.items():
            with suppress(SelectionError):  # an activity would have to wait for itself: the reading is impossible
                parts = doubt(state, fresh)
                if parts:
                    yield cause, 1.0, paths_of_parts(state, parts, tuple(classes), most)
        before, recorded = _makespan(baseline, without_unexplained(baseline, baseline.gap)), _makespan(baseline)
        unexplained = of_kinds(state.graph.gap_kind, UNEXPLAINED)
        if before > 0 and (before != recorded or state.gap[unexplained].any()):  # they vanish, also before the change
            # no class has them, so that they are no time under any factor
            parts = without_unexplained_pauses(state, fresh)
            yield (
                IntervalCause.UNEXPLAINED_PAUSES,
                recorded / before,
                paths_of_parts(state, parts, tuple(classes), most),
            )

    recorded_parts, threads = class_parts(state, classes), threads_for(baseline.vertex_count)
    made = ahead(lambda each: skeleton_of(each[2], state.graph), paths(), threads)
    found = [
        *([Reading(IntervalCause.NONE, known)] if known else []),
        *(Reading(cause, one, ratio) for (cause, ratio, _), one in made),
    ]
    by_links = [IntervalCause.UNKNOWN_SHARING] if assumed(state).others and may_overlap(state.graph) else []
    return found, [*by_links, *takes_turns(state.graph)]


def _makespan(graph: DependencyGraph, gap: Array | None = None) -> int:
    state = initial(graph)
    time = predict(graph, state.lag, state.gap if gap is None else gap, state.head)
    return int(time[1::2].max(where=graph.awake, initial=graph.origin_ns)) - graph.origin_ns
