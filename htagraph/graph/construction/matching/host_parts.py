"""Communication on host threads: the operator that asked for each piece, its partner, its root, its size, its group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import Naming, transfer_direction
from htagraph.graph.activities import Activities
from htagraph.graph.construction.matching.host_groups import Calls, groups_of_calls
from htagraph.graph.construction.matching.hosts import hosts_of
from htagraph.graph.evidence.host_communication import CallArguments, call_arguments, host_calls
from htagraph.trace.columns import Trace

__all__ = ["HostParts", "host_parts"]

_Class: TypeAlias = tuple[int, int, int, int]
"""A rank's sends to a peer of one tag, or its receives: (rank, 1 or -1, rank of the peer within the group, tag)."""


@dataclass(frozen=True, eq=False)
class HostParts:
    """One row per communication activity; for those on devices, -1 everywhere."""

    call: npt.NDArray[np.int64]
    """The operator that asked for it."""
    way: npt.NDArray[np.int64]
    """1 for a send, -1 for a receive, 0 for anything else."""
    partner: npt.NDArray[np.int64]
    """The rank that it is sent to or received from."""
    tag: npt.NDArray[np.int64]
    root: npt.NDArray[np.int64]
    """The rank that is the root of a rooted collective."""
    elements: npt.NDArray[np.int64]
    """Elements of the whole message."""
    own_elements: npt.NDArray[np.int64]
    """Elements that the rank contributes."""
    width: npt.NDArray[np.int64]
    """Bytes of an element."""
    group: npt.NDArray[np.int64]
    """Index into `groups`: the group of a job that has but one."""
    groups: tuple[tuple[str, int], ...]
    """Label and size of each such group."""


def host_parts(
    acts: Activities, names: tuple[str, ...], naming: Naming, rows: Array, traces: Mapping[int, Trace]
) -> HostParts:
    """Return what is known of communication on host threads beside its name and its times.

    Args:
        acts: the activities of all ranks.
        names: texts of the activities' names and arguments.
        naming: what names mean.
        rows: the activities that communicate.
        traces: what was read, by rank; their headers list the process groups.
    """
    on_host = acts.kind[rows] == ActivityKind.HOST_COMMUNICATION
    none = np.full(len(rows), -1, np.int64)
    if not on_host.any():
        return HostParts(none, np.zeros_like(none), *(none,) * 7, ())
    call = np.where(on_host, host_calls(acts, names, naming).call_of(rows), -1)
    of_call, of_work = call_arguments(acts, names, call), call_arguments(acts, names, np.where(on_host, rows, -1))
    way = _ways(acts, names, rows) * on_host
    members = {rank: _groups_of(trace) for rank, trace in traces.items()}
    partner = _partners(acts.rank[rows], way, of_call, members)
    partner = np.where((partner < 0) & (way != 0), _only_other(acts.rank[rows], traces), partner)
    root = _roots(acts.rank[rows], way, of_call, members)
    elements, collective = np.maximum(of_call.elements, of_work.elements), on_host & (way == 0)
    group, groups = _only_groups(acts.rank[rows], traces)
    if (collective & (group < 0)).any():
        group, groups = _divided(
            acts, rows, np.where(call >= 0, call, rows), elements, np.flatnonzero(collective), traces
        )
    return HostParts(
        call, way, partner, of_call.tag, root, elements, of_work.own_elements,
        np.maximum(of_call.width, of_work.width), np.where(collective, group, -1), groups,
    )  # fmt: skip


def _divided(
    acts: Activities, rows: Array, asked: Array, elements: Array, collective: Array, traces: Mapping[int, Trace]
) -> tuple[Array, tuple[tuple[str, int], ...]]:
    """Return (group of each row, the groups), where ranks are in several process groups, as far as they tell apart.

    Args:
        acts: the activities of all ranks.
        rows: the activities that communicate.
        asked: the operator that asked for each, else itself.
        elements: of the whole message of each.
        collective: which rows are collectives on hosts.
        traces: what was read, by rank.
    """
    group, groups = _only_groups(acts.rank[rows], traces)
    hosts = hosts_of(traces)
    if len(set(hosts.values())) != 1 or len(hosts) < len(traces):  # times of ranks can not be compared
        return group, groups
    own, operator = rows[collective], asked[collective]
    kind = np.unique(np.stack([acts.name[own], elements[collective]]), axis=1, return_inverse=True)[1].ravel()
    moments = acts.step[operator], acts.start[operator], acts.start[own], acts.end[own]
    found, labelled = groups_of_calls(Calls(acts.rank[own], kind, acts.lane[own], *moments), traces)
    if (found < 0).all():
        return group, groups
    group = np.full(len(rows), -1, np.int64)
    group[collective] = found
    return group, tuple((label, len(ranks)) for label, ranks in labelled)


def _ways(acts: Activities, names: tuple[str, ...], rows: Array) -> npt.NDArray[np.int64]:
    distinct, inverse = np.unique(acts.name[rows], return_inverse=True)
    return np.array([transfer_direction(names[name]) for name in distinct.tolist()], np.int64)[inverse.ravel()]


def _groups_of(trace: Trace) -> list[list[int]]:
    """Return the ranks of each process group of a rank, in group order."""
    listed = [list(group.ranks) for group in trace.facts.groups]
    whole = [list(range(trace.facts.world_size))] if not any(listed) else []
    return [ranks for ranks in (*listed, *whole) if trace.rank in ranks]


def _only_groups(rank: Array, traces: Mapping[int, Trace]) -> tuple[Array, tuple[tuple[str, int], ...]]:
    """Return (group of each row, the groups): of ranks that are in one process group only."""
    number: dict[tuple[str, int], int] = {}
    of_rank: dict[int, int] = {}
    for each, trace in traces.items():
        groups = trace.facts.groups
        ranks = list(groups[0].ranks) if len(groups) == 1 else []
        if each in ranks:
            words = [word for word in (groups[0].name, groups[0].purpose) if word]
            key = (" ".join([*dict.fromkeys(words), str(ranks)]), len(ranks))
            of_rank[each] = number.setdefault(key, len(number))
    return np.array([of_rank.get(each, -1) for each in rank.tolist()], np.int64), tuple(number)


def _roots(rank: Array, way: Array, arguments: CallArguments, members: Mapping[int, list[list[int]]]) -> Array:
    """Return the root of each rooted collective, where all groups of its rank agree on who that is."""
    out = np.full(len(rank), -1, np.int64)
    for row in np.flatnonzero((way == 0) & (arguments.peer >= 0)).tolist():
        peer = int(arguments.peer[row])
        named = {ranks[peer] for ranks in members.get(int(rank[row]), []) if peer < len(ranks)}
        out[row] = named.pop() if len(named) == 1 else -1
    return out


def _partners(rank: Array, way: Array, arguments: CallArguments, members: Mapping[int, list[list[int]]]) -> Array:
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
    options = {each: _candidates(each, members.get(each[0], [])) for each in classes}
    chosen = np.array([_supported(each, options) for each in classes], np.int64)
    out[rows] = chosen[inverse.ravel()]
    return out


def _only_other(rank: Array, traces: Mapping[int, Trace]) -> npt.NDArray[np.int64]:
    """Return the other rank of a job of two, which needs no name; -1 in any other job."""
    sizes = {trace.facts.world_size for trace in traces.values() if trace.facts.world_size} or {len(traces)}
    if sizes != {2} or len(traces) != 2:
        return np.full(len(rank), -1, np.int64)
    return np.where(rank == min(traces), max(traces), min(traces)).astype(np.int64)


def _candidates(transfers: _Class, groups: list[list[int]]) -> set[int]:
    rank, _, peer, _ = transfers
    return {ranks[peer] for ranks in groups if peer < len(ranks)} - {rank}


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
