"""Communication on host threads: the operator that asked for each piece, its partner, its root, its size, its group.

Where a recording lists groups but no call names its own, calls of one kind and size are of groups that divide the
ranks among them: every rank is in one, lists it, and its members make as many such calls in every step. Of several
ways to divide the ranks, time decides: nobody ends before all members have begun, and what no member's arrival
explains is short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, coded
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import Naming, transfer_direction
from htagraph.graph.activities import Activities
from htagraph.graph.evidence.recordings import on_one_host
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace

if TYPE_CHECKING:
    from htagraph.graph.evidence.host_communication import CallArguments

__all__ = ["HostCollectives", "HostParts", "groups_of_calls", "host_parts"]

_Class: TypeAlias = tuple[int, int, int, int]
"""A rank's sends to a peer of one tag, or its receives: (rank, 1 or -1, rank of the peer within the group, tag)."""


@dataclass(frozen=True, eq=False)
class HostParts:
    """One row per communication activity; for those on devices, -1 everywhere."""

    call: Ints
    """The operator that asked for it."""
    way: Ints
    """1 for a send, -1 for a receive, 0 for anything else."""
    partner: Ints
    """The rank that it is sent to or received from."""
    tag: Ints
    root: Ints
    """The rank that is the root of a rooted collective."""
    elements: Ints
    """Elements of the whole message."""
    own_elements: Ints
    """Elements that the rank contributes."""
    width: Ints
    """Bytes of an element."""
    group: Ints
    """Index into `groups`: the group of a job that has but one."""
    groups: tuple[tuple[str, int], ...]
    """Label and size of each such group."""


def host_parts(
    acts: Activities, names: tuple[str, ...], naming: Naming, rows: Array, traces: Mapping[int, Trace]
) -> HostParts:
    """Return what is known of communication on host threads beside its name and its times.

    Process groups are listed in the headers of the traces.
    """
    on_host = acts.kind[rows] == ActivityKind.HOST_COMMUNICATION
    none = np.full(len(rows), -1, np.int64)
    if not on_host.any():
        return HostParts(none, np.zeros_like(none), *(none,) * 7, ())
    from htagraph.graph.evidence.host_communication import call_arguments, host_calls  # few jobs have any

    call = np.where(on_host, host_calls(acts, names, naming).call_of(rows), -1)
    of_call, of_work = call_arguments(acts, names, call), call_arguments(acts, names, np.where(on_host, rows, -1))
    way = _ways(acts, names, rows) * on_host
    members = {rank: _groups_of(trace) for rank, trace in traces.items()}
    partner = _partners(acts.rank[rows], way, of_call, members)
    partner = np.where((partner < 0) & (way != 0), _only_other(acts.rank[rows], traces), partner)
    if ((partner < 0) & (way < 0)).any() and on_one_host(traces):
        partner = _from_anyone(acts, rows, way, partner, of_call.tag)
    root = _roots(acts.rank[rows], way, of_call, members)
    elements, collective = np.maximum(of_call.elements, of_work.elements), on_host & (way == 0)
    group, groups = _only_groups(acts.rank[rows], traces)
    if (collective & (group < 0)).any():
        asked = np.where(call >= 0, call, rows)
        divided = _divided(acts, rows, asked, elements, np.flatnonzero(collective), traces)
        group, groups = divided or (group, groups)
    return HostParts(
        call, way, partner, of_call.tag, root, elements, of_work.own_elements,
        np.maximum(of_call.width, of_work.width), np.where(collective, group, -1), groups,
    )  # fmt: skip


def _divided(
    acts: Activities, rows: Array, asked: Array, elements: Array, collective: Array, traces: Mapping[int, Trace]
) -> tuple[Array, tuple[tuple[str, int], ...]] | None:
    """Return (group of each row, the groups), where ranks are in several process groups; None where nothing tells."""
    if not on_one_host(traces):
        return None
    own, operator = rows[collective], asked[collective]
    kind = coded(acts.name[own], elements[collective])
    moments = acts.step[operator], acts.start[operator], acts.start[own], acts.end[own]
    found, labelled = groups_of_calls(HostCollectives(acts.rank[own], kind, acts.lane[own], *moments), traces)
    if (found < 0).all():
        return None
    group = np.full(len(rows), -1, np.int64)
    group[collective] = found
    return group, tuple((label, len(ranks)) for label, ranks in labelled)


def _ways(acts: Activities, names: tuple[str, ...], rows: Array) -> Ints:
    distinct, inverse = np.unique(acts.name[rows], return_inverse=True)
    return np.array([transfer_direction(names[name]) for name in distinct.tolist()], np.int64)[inverse.ravel()]


def _groups_of(trace: Trace) -> list[Sequence[int]]:
    """Return the ranks of each process group of a rank, in group order: those listed, else the whole job."""
    facts = trace.facts
    if facts.world_size and not any(group.ranks for group in facts.groups):
        return [range(facts.world_size)] if 0 <= trace.rank < facts.world_size else []
    return [ranks for _, ranks in _listed(trace)]


def _only_groups(rank: Array, traces: Mapping[int, Trace]) -> tuple[Array, tuple[tuple[str, int], ...]]:
    """Return (group of each row, the groups): of ranks that are in one process group only."""
    number: dict[tuple[str, int], int] = {}
    of_rank: dict[int, int] = {}
    for each, trace in traces.items():
        if len(trace.facts.groups) == 1:
            for label, ranks in _listed(trace):
                of_rank[each] = number.setdefault((label, len(ranks)), len(number))
    return np.array([of_rank.get(each, -1) for each in rank.tolist()], np.int64), tuple(number)


def _roots(rank: Array, way: Array, arguments: CallArguments, members: Mapping[int, list[Sequence[int]]]) -> Array:
    """Return the root of each rooted collective, where all groups of its rank agree on who that is."""
    out = np.full(len(rank), -1, np.int64)
    for row in np.flatnonzero((way == 0) & (arguments.peer >= 0)).tolist():
        peer = int(arguments.peer[row])
        named = {ranks[peer] for ranks in members.get(int(rank[row]), []) if peer < len(ranks)}
        out[row] = named.pop() if len(named) == 1 else -1
    return out


def _partners(rank: Array, way: Array, arguments: CallArguments, members: Mapping[int, list[Sequence[int]]]) -> Array:
    """Return the rank that each send goes to and each receive comes from; -1 where that is unknown.

    A call names its peer by the place in its process group, and does not name the group. Where the groups of a rank
    disagree on who that is, it is the one that has counterparts: receives of what is sent, sends of what is received.
    """
    table = np.stack([rank.astype(np.int64), way, arguments.peer, arguments.tag], axis=1)
    rows = np.flatnonzero((way != 0) & (arguments.peer >= 0))
    out = np.full(len(rank), -1, np.int64)
    if not len(rows):
        return out
    distinct, inverse = np.unique(table[rows], axis=0, return_inverse=True)
    classes: list[_Class] = [tuple(each) for each in distinct.tolist()]
    options = {
        (own, way, peer, tag): {ranks[peer] for ranks in members.get(own, []) if peer < len(ranks)} - {own}
        for own, way, peer, tag in classes
    }
    chosen = np.array([_supported(each, options) for each in classes], np.int64)
    out[rows] = chosen[inverse.ravel()]
    return out


def _only_other(rank: Array, traces: Mapping[int, Trace]) -> Ints:
    """Return the other rank of a job of two, which needs no name; -1 in any other job."""
    sizes = {trace.facts.world_size for trace in traces.values() if trace.facts.world_size} or {len(traces)}
    if sizes != {2} or len(traces) != 2:
        return np.full(len(rank), -1, np.int64)
    return np.where(rank == min(traces), max(traces), min(traces)).astype(np.int64)


def _from_anyone(acts: Activities, rows: Array, way: Array, partner: Array, tag: Array) -> Ints:
    """Return the partners; a receive from any sender has the one whose send ended with the receive, on one clock.

    Both are the nearest to each other, of all that is sent to a rank with a tag and of all that the rank receives.
    """
    out, end = partner.copy(), acts.end[rows]
    into = np.where(way > 0, partner, acts.rank[rows])
    place = coded(into, np.maximum(tag, 0))
    for each in np.unique(place[(way < 0) & (partner < 0)]).tolist():
        own = np.flatnonzero(place == each)
        own = own[np.argsort(end[own], kind="stable")]
        sends, receives = own[way[own] > 0], own[way[own] < 0]
        if len(sends):
            sent, received = end[sends], end[receives]
            send, receive = (
                np.searchsorted((ends[:-1] + ends[1:]) / 2, of) for ends, of in ((sent, received), (received, sent))
            )
            both = (receive[send] == np.arange(len(receives))) & (out[receives] < 0)
            both &= np.abs(sent[send] - received) <= LIMITS.turn_ns
            out[receives[both]] = acts.rank[rows[sends[send[both]]]]
    return out


def _supported(transfers: _Class, options: Mapping[_Class, set[int]]) -> int:
    """Return the only rank that transfers can be with, else the only one that has counterparts; -1 for none."""
    own = options[transfers]
    if len(own) == 1:
        return next(iter(own))
    rank, way, _, tag = transfers
    able = {
        other[0]
        for other, ranks in options.items()
        if other[0] in own and other[1] == -way and other[3] == tag and rank in ranks
    }
    return able.pop() if len(able) == 1 else -1


_Group: TypeAlias = tuple[str, tuple[int, ...]]
"""Label of a process group, its ranks."""
_Division: TypeAlias = tuple[_Group, ...]
_Moments: TypeAlias = dict[tuple[int, int], tuple[int, int]]
"""Begin and end of each call of a rank, ns, by step and place in it."""


@dataclass(frozen=True, eq=False)
class HostCollectives:
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


def groups_of_calls(calls: HostCollectives, traces: Mapping[int, Trace]) -> tuple[Ints, tuple[_Group, ...]]:
    """Return (group of each call or -1, the groups): where exactly one division of the ranks is the best.

    The ranks of the calls share a clock.
    """
    listed = {rank: [each for each in _listed(trace) if len(each[1]) > 1] for rank, trace in traces.items()}
    out = np.full(len(calls.rank), -1, np.int64)
    number: dict[_Group, int] = {}
    kinds = []
    for kind in np.unique(calls.kind).tolist():
        rows = np.flatnonzero(calls.kind == kind)
        left = {division: _unexplained(division, calls, rows) for division in _divisions_of(calls, rows, listed)}
        if left:
            kinds.append((len(left), -len(rows), kind, rows, left))
    lanes: dict[_Group, set[int]] = {}
    for *_, rows, left in sorted(kinds, key=lambda each: each[:3]):  # those without a choice first
        own = {rank: set(calls.lane[rows[calls.rank[rows] == rank]].tolist()) for rank in traces}
        short = [division for division in left if left[division] <= (1 + LIMITS.small) * min(left.values())]
        best = min(short, key=lambda division: (_on_other_lanes(division, lanes, own), -len(division), division))
        for group in best:
            members = rows[np.isin(calls.rank[rows], group[1])]
            out[members] = number.setdefault(group, len(number))
            lanes.setdefault(group, set()).update(calls.lane[members].tolist())
    return out, tuple(number)


def _listed(trace: Trace) -> list[_Group]:
    """Return the process groups that a rank lists and is in."""
    groups = []
    for each in trace.facts.groups:
        ranks = each.ranks
        if trace.rank in ranks:
            words = dict.fromkeys(word for word in (each.name, each.purpose) if word)
            groups.append((" ".join([*words, str(list(ranks))]), ranks))
    return groups


def _on_other_lanes(division: _Division, lanes: Mapping[_Group, set[int]], own: Mapping[int, set[int]]) -> int:
    """Return how many groups of a division have other calls, on threads that none of these calls is on."""
    return sum(
        group in lanes and not lanes[group] & set().union(*(own.get(rank, set()) for rank in group[1]))
        for group in division
    )


def _divisions_of(calls: HostCollectives, rows: Array, listed: Mapping[int, list[_Group]]) -> list[_Division]:
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


def _moments(calls: HostCollectives, rows: Array) -> _Moments:
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


def _unexplained(division: _Division, calls: HostCollectives, rows: Array) -> float:
    """Return how long calls last after the last arrival in their group: the sum of the ranks' medians, ns."""
    total = 0.0
    for _, ranks in division:
        members = [_moments(calls, rows[calls.rank[rows] == rank]) for rank in ranks]
        members = [each for each in members if each]
        shared = set.intersection(*(set(each) for each in members))
        last = {key: max(each[key][0] for each in members) for key in shared}
        total += sum(float(np.median([each[key][1] - last[key] for key in shared])) for each in members)
    return total
