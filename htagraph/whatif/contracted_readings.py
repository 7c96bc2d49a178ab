"""Skeletons of a job under every reading of its recording, so that a small program can compute a prediction's interval.

A reading changes a state after the changes of a scenario. Here it changes which part of each lag and gap belongs to
which class of time, so that one skeleton serves all factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import UNEXPLAINED, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict, without_unexplained
from htagraph.queries.skeleton import Skeleton, skeleton_of
from htagraph.queries.time_classes import SWITCHED_OFF, ClassParts, Parts, class_parts, paths_of_parts
from htagraph.queries.weights import NEVER, State, initial
from htagraph.whatif import readings
from htagraph.whatif.interval import UNEXPLAINED_PAUSES, UNKNOWN_SHARING
from htagraph.whatif.links import Sharing, assumed, may_overlap
from htagraph.whatif.readings import DOUBTS, SHARE, UnrecordedWaits

__all__ = ["BUILDERS", "Reading", "contracted_readings", "shares_links_differently"]

Criteria: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By name of a class, what selects its time, as for `htagraph.whatif.changes.scale`."""
_Read: TypeAlias = tuple[ClassParts, tuple[tuple[int, ...], ...]]
"""Weights under a reading, and of each of its switches the classes that it follows."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A job under one reading of its recording."""

    cause: str
    """Why an interval is as wide as this reading makes it; empty for the prediction itself."""
    skeleton: Skeleton
    """Its classes are those given, then a switch for each of `whole`."""
    whole: tuple[tuple[int, ...], ...] = ()
    """Of each switch, the classes that it follows: 1 while the product of their factors is 1, else 0."""
    ratio: float = 1.0
    """What its makespan is multiplied by: the recorded one over the one that this reading gives without any change."""


def shares_links_differently(state: State) -> bool:
    """Return whether transfers may take another time than their class says, because they share links with others."""
    links = assumed(state)
    return links.sharing is not Sharing.NONE and links.may_share and may_overlap(state.graph)


def contracted_readings(
    baseline: DependencyGraph, state: State, classes: Criteria, most: int
) -> tuple[list[Reading], list[str]]:
    """Return (the skeletons of a job under each reading, the causes of readings that no skeleton describes).

    The first one is of the job as changed; each other one takes the makespan in which `htagraph.whatif.interval` is
    interested. A reading that is impossible, or the same, is left out.
    """

    def skeleton(parts: ClassParts, whole: tuple[tuple[int, ...], ...] = ()) -> Skeleton:
        names = (*classes, *(f"whole {each}" for each in whole))
        parts = replace(parts, switches=(False,) * len(classes) + (True,) * len(whole))
        return skeleton_of(paths_of_parts(state, parts, names, most), state.graph)

    found = [Reading("", skeleton(class_parts(state, classes)))]
    missing = [cause for cause, doubt in DOUBTS.items() if doubt not in BUILDERS and doubt(state)]
    for cause, doubt in DOUBTS.items():
        with suppress(SelectionError):  # an activity would have to wait for itself: the reading is impossible
            read = BUILDERS[doubt](state, class_parts(state, classes)) if doubt in BUILDERS else None
            found += [Reading(cause, skeleton(*read), read[1])] if read else []
    before, recorded = _makespan(baseline, without_unexplained(baseline, baseline.gap)), _makespan(baseline)
    unexplained = of_kinds(state.graph.gap_kind, UNEXPLAINED)
    if before > 0 and (before != recorded or state.gap[unexplained].any()):  # they vanish, also before the change
        parts = class_parts(state, classes)
        _set(parts.gap, np.flatnonzero(unexplained), 0)
        found.append(Reading(UNEXPLAINED_PAUSES, skeleton(parts), ratio=recorded / before))
    if assumed(state).others and may_overlap(state.graph):
        missing.append(UNKNOWN_SHARING)
    return found, missing


def _makespan(graph: DependencyGraph, gap: Array | None = None) -> int:
    state = initial(graph)
    time = predict(graph, state.lag, state.gap if gap is None else gap, state.head)
    return int(time[1::2].max(where=graph.awake, initial=graph.origin_ns)) - graph.origin_ns


def _doubtful(state: State, parts: ClassParts) -> _Read | None:
    """See `without_doubtful_waits`: what it adds to gaps belongs to no class."""
    changed = readings.without_doubtful_waits(state)
    if changed is None:
        return None
    other = np.flatnonzero(changed.lag != state.lag)
    _set(parts.lag, other, np.maximum(changed.lag[other], NEVER))
    parts.gap.rest += changed.gap - state.gap
    return parts, ()


def _absent(state: State, parts: ClassParts) -> _Read | None:
    """See `with_waits_for_absent_ranks`: what looks like transfer keeps its recorded time whatever the factor."""
    own, ends = readings.at_absent_members(state.graph)
    own = own[state.lag[own] > NEVER]
    if not len(own) and not len(ends):
        return None
    _set(parts.lag, own, state.graph.edges.lag[own])
    _set(parts.gap, ends, state.graph.gap[ends])
    return parts, ()


def _possible(state: State, parts: ClassParts) -> _Read | None:
    """See `with_possible_waits`: a pause is a wait only while no factor changes it."""
    graph = state.graph
    (source, target), (ends, nexts) = readings.hidden_in_pauses(graph), readings.unwaited(graph)
    still = state.gap[target] == graph.gap[target]
    source, target = source[still], target[still]
    if not len(target) and not len(ends):
        return None
    count = len(state.graph.edges)
    waits = graph.time[target] - graph.time[source]
    lag = np.concatenate([waits, np.zeros(len(ends), np.int64)])
    parts = _with_edges(parts, np.concatenate([source, ends]), np.concatenate([target, nexts]), lag)
    gap, mask = parts.gap, parts.gap.mask[target] * (parts.gap.amount[target] != 0)
    _set(gap, target[mask == 0], 0)
    recorded = gap.rest[target] + gap.amount[target]
    masks = np.unique(mask[mask > 0]).tolist()
    for place, each in enumerate(masks):
        rows, switch = np.flatnonzero(mask == each), 1 << (len(parts.switches) + place)
        gap.also.append((target[rows], switch, -recorded[rows]))
        parts.lag.rest[count + rows] -= SWITCHED_OFF
        parts.lag.also.append((count + rows, switch, np.full(len(rows), SWITCHED_OFF)))
    classes = range(len(parts.switches))
    return parts, tuple(tuple(number for number in classes if each >> number & 1) for each in masks)


def _hidden(waits_of: Callable[[DependencyGraph], UnrecordedWaits], state: State, parts: ClassParts) -> _Read | None:
    """See `htagraph.whatif.readings`: each time follows the change of the edge that it is like."""
    waits = waits_of(state.graph)
    kept = state.lag[waits.like] > NEVER
    if not kept.any():
        return None
    like, took = waits.like[kept], (SHARE * waits.took[kept]).astype(np.int64)
    recorded = state.graph.edges.lag[like]
    share = np.divide(took, recorded, out=np.zeros(len(took)), where=recorded > 0)
    amount = np.rint(share * parts.lag.amount[like]).astype(np.int64)
    rest = np.where(recorded > 0, np.rint(share * parts.lag.rest[like]), took).astype(np.int64)
    return _with_edges(parts, waits.source[kept], waits.target[kept], rest, parts.lag.mask[like], amount), ()


def _outside(state: State, parts: ClassParts) -> _Read | None:
    """See `with_waits_for_outside`: the pace follows the change of the pause."""
    graph, (source, target, own) = state.graph, readings.outside_pauses(state.graph)
    if not len(target):
        return None
    inside = own >= 0
    share = (graph.time[target] - graph.time[source]) / np.where(inside, graph.edges.lag[own], graph.gap[target])
    pauses, bodies = target[~inside], own[inside]

    def now(of_gap: Array, of_lag: Array) -> Array:
        return np.where(inside, np.maximum(of_lag[own], 0), of_gap[target])

    rest, amount = now(parts.gap.rest, parts.lag.rest), now(parts.gap.amount, parts.lag.amount)
    mask = now(parts.gap.mask, parts.lag.mask)
    rest, amount = (np.rint(share * each).astype(np.int64) for each in (rest, amount))
    parts = _with_edges(parts, source, target, rest, mask, amount)
    _set(parts.gap, pauses, 0)
    _set(parts.lag, bodies, np.minimum(parts.lag.rest[bodies], 0))
    return parts, ()


def _weighed(parts_of: Callable[[State], tuple[Array, Array, Array]], state: State, parts: ClassParts) -> _Read | None:
    """See `htagraph.whatif.readings`: the share of each transfer follows the change of its class, the rest does not."""
    rows, share, rest = parts_of(state)
    if not len(rows):
        return None
    parts.lag.rest[rows] = np.rint(share * parts.lag.rest[rows] + rest)
    parts.lag.amount[rows] = np.rint(share * parts.lag.amount[rows])
    return parts, ()


def _set(parts: Parts, rows: Array, value: Array | int) -> None:
    """Let some numbers be others that no class multiplies."""
    parts.rest[rows], parts.amount[rows], parts.mask[rows] = value, 0, 0


def _with_edges(parts: ClassParts, source: Array, target: Array, *lag: Array) -> ClassParts:
    """Return the weights with more edges behind the others; their lags are the first columns of `Parts`, ns."""
    old, new = parts.lag, (*lag, *[np.zeros(len(source), np.int64)] * (3 - len(lag)))
    rest, mask, amount = map(np.concatenate, zip((old.rest, old.mask, old.amount), new, strict=True))
    return replace(
        parts,
        source=np.concatenate([parts.source, source]).astype(np.int32),
        target=np.concatenate([parts.target, target]).astype(np.int32),
        lag=Parts(rest, mask, amount, list(old.also)),
    )


BUILDERS: Final[dict[Callable[[State], State | None], Callable[[State, ClassParts], _Read | None]]] = {
    readings.without_doubtful_waits: _doubtful,
    readings.with_possible_waits: _possible,
    readings.with_slow_loaders: partial(_hidden, readings.slow_loaders),
    readings.with_slow_answers: partial(_hidden, readings.ready_answers),
    readings.with_slow_messages: partial(_hidden, readings.slow_messages),
    readings.with_quick_messages: partial(_weighed, readings.untimed_messages),
    readings.with_hosts_in_transfers: partial(_weighed, readings.network_shares),
    readings.with_waits_for_absent_ranks: _absent,
    readings.with_waits_for_outside: _outside,
}
"""By the function that reads a recording in another way: what does the same to classes of time."""
