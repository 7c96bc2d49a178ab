"""Which process group each collective on hosts is of, where a recording lists groups but no call names its own.

Calls of one kind and size are of groups that divide the ranks among them: every rank is in one, lists it, and its
members make as many such calls in every step. Of several ways to divide the ranks, time decides: nobody ends before
all members have begun, and what no member's arrival explains is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace

__all__ = ["Calls", "groups_of_calls"]

_Group: TypeAlias = tuple[str, tuple[int, ...]]
"""Label of a process group, its ranks."""
_Division: TypeAlias = tuple[_Group, ...]
_Moments: TypeAlias = dict[tuple[int, int], tuple[int, int]]
"""Begin and end of each call of a rank, ns, by step and place in it."""

_AS_SHORT: Final = 1.05
"""Divisions of the ranks explain the calls equally well if what they leave differs by at most this factor. Chosen: with
balanced ranks, arrivals differ by a few percent of a transfer. It cannot be doubled; at 1, chance decides."""


@dataclass(frozen=True, eq=False)
class Calls:
    """Collectives on hosts; columns of one length."""

    rank: npt.NDArray[np.integer]
    kind: npt.NDArray[np.integer]
    """Equal for calls of one operation and size."""
    lane: npt.NDArray[np.integer]
    """The thread that did it; a backend has threads of its own for every group."""
    step: npt.NDArray[np.integer]
    asked: npt.NDArray[np.integer]
    start: npt.NDArray[np.integer]
    end: npt.NDArray[np.integer]


def groups_of_calls(calls: Calls, traces: Mapping[int, Trace]) -> tuple[npt.NDArray[np.int64], tuple[_Group, ...]]:
    """Return (group of each call or -1, the groups): where exactly one division of the ranks is the best.

    Args:
        calls: collectives on hosts whose ranks share a clock.
        traces: what was read, by rank; their headers list the process groups.
    """
    listed = {rank: _listed(trace) for rank, trace in traces.items()}
    out = np.full(len(calls.rank), -1, np.int64)
    number: dict[_Group, int] = {}
    kinds = []
    for kind in np.unique(calls.kind).tolist():
        rows = np.flatnonzero(calls.kind == kind)
        left = {division: _unexplained(division, calls, rows) for division in _divisions(calls, rows, listed)}
        if left:
            kinds.append((len(left), -len(rows), kind, rows, left))
    lanes: dict[_Group, set[int]] = {}
    for *_, rows, left in sorted(kinds, key=lambda each: each[:3]):  # those without a choice first
        own = {rank: set(calls.lane[rows[calls.rank[rows] == rank]].tolist()) for rank in traces}
        short = [division for division in left if left[division] <= _AS_SHORT * min(left.values())]
        best = min(short, key=lambda division: (_on_other_lanes(division, lanes, own), -len(division), division))
        for group in best:
            members = rows[np.isin(calls.rank[rows], group[1])]
            out[members] = number.setdefault(group, len(number))
            lanes.setdefault(group, set()).update(calls.lane[members].tolist())
    return out, tuple(number)


def _listed(trace: Trace) -> list[_Group]:
    """Return the process groups that a rank lists and is in, of two ranks or more."""
    groups = []
    for each in trace.facts.groups:
        ranks = each.ranks
        if len(ranks) > 1 and trace.rank in ranks:
            words = dict.fromkeys(word for word in (each.name, each.purpose) if word)
            groups.append((" ".join([*words, str(list(ranks))]), ranks))
    return groups


def _on_other_lanes(division: _Division, lanes: Mapping[_Group, set[int]], own: Mapping[int, set[int]]) -> int:
    """Return how many groups of a division have other calls, on threads that none of these calls is on."""
    return sum(
        group in lanes and not lanes[group] & set().union(*(own.get(rank, set()) for rank in group[1]))
        for group in division
    )


def _divisions(calls: Calls, rows: Array, listed: Mapping[int, list[_Group]]) -> list[_Division]:
    """Return the ways to divide the ranks that make some calls into groups that time and counts do not contradict."""
    of_rank = {rank: _moments(calls, rows[calls.rank[rows] == rank]) for rank in np.unique(calls.rank[rows]).tolist()}
    able = {
        group: _agrees([of_rank[rank] for rank in group[1] if rank in of_rank])
        and all(group in listed[rank] and rank in of_rank for rank in group[1] if rank in listed)
        for group in dict.fromkeys(group for rank in of_rank for group in listed.get(rank, []))
    }
    found: list[_Division] = []
    tried = 0
    todo: list[tuple[_Division, frozenset[int]]] = [((), frozenset())]
    while todo and tried < LIMITS.compared:
        division, held = todo.pop()
        missing = [rank for rank in of_rank if rank not in held]
        if not missing:
            found.append(division)
            continue
        for group in listed.get(missing[0], []):
            tried += 1
            if able[group] and not held & set(group[1]):
                todo.append(((*division, group), held | set(group[1])))
    return [] if todo else found


def _moments(calls: Calls, rows: Array) -> _Moments:
    """Return begin and end of each call of one rank by (step, place among those of the step)."""
    rows = rows[np.lexsort((calls.asked[rows], calls.step[rows]))]
    step = calls.step[rows]
    place = np.arange(len(rows)) - np.searchsorted(step, step)
    keys = zip(step.tolist(), place.tolist(), strict=True)
    return dict(zip(keys, zip(calls.start[rows].tolist(), calls.end[rows].tolist(), strict=True), strict=True))


def _agrees(members: list[_Moments]) -> bool:
    """Return whether all members make the same calls in the steps that they share, and none ends before all begin."""
    shared = set.intersection(*({step for step, _ in each if step >= 0} for each in members)) if members else set()
    places = [{key for key in each if key[0] in shared} for each in members]
    if not shared or any(each != places[0] for each in places):
        return False
    broken = sum(
        max(each[key][0] for each in members) > min(each[key][1] for each in members) + LIMITS.two_clocks_ns
        for key in places[0]
    )
    return broken <= max(1, LIMITS.damaged * len(places[0]))


def _unexplained(division: _Division, calls: Calls, rows: Array) -> float:
    """Return how long calls last after the last arrival in their group: the sum of the ranks' medians, ns."""
    total = 0.0
    for _, ranks in division:
        members = [_moments(calls, rows[calls.rank[rows] == rank]) for rank in ranks]
        members = [each for each in members if each]
        shared = set.intersection(*(set(each) for each in members))
        last = {key: max(each[key][0] for each in members) for key in shared}
        total += sum(float(np.median([each[key][1] - last[key] for key in shared])) for each in members)
    return total
