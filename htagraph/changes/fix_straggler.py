"""One rank works as fast as the others do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.changes.state import State
from htagraph.errors import SelectionError
from htagraph.graph import DependencyGraph
from htagraph.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.peers import peers
from htagraph.replay import predict

__all__ = ["fix_straggler"]

Array: TypeAlias = npt.NDArray[Any]
_COMMUNICATION = (ActivityKind.COMMUNICATION, ActivityKind.HOST_COMMUNICATION)
_OWN_EDGES = (EdgeKind.BODY, EdgeKind.DATALOADER)
_OWN_GAPS = (GapKind.HOST_UNTRACED, GapKind.DATA_WAIT)
_TRIED = 8  # ranks, of those whose own work exceeds their peers' most
_TO = ("median", "mean", "min")


def fix_straggler(
    state: State, *, rank: int | Literal["auto"] = "auto", to: Literal["median", "mean", "min"] = "median"
) -> State:
    """Return the state where one rank's own work takes no longer than the same work of the others.

    Own work is what its operators, calls, kernels and copies do, and the untraced host time between them; transfers and
    waits are not. Each activity that takes longer than the `to` of the same activity on the other ranks (see
    `htagraph.peers`) takes as long as that; one that is faster stays, so nothing ever gets slower. What the other
    ranks do not have stays as well; a note says how much that is.

    Args:
        state: before the change.
        rank: which rank, or ``"auto"`` for that whose fix makes the job shortest; of equals the lowest.
        to: ``"median"``, ``"mean"`` or ``"min"`` of the other ranks.

    Raises:
        SelectionError: the rank is not in the graph, nothing on it has a peer, or `to` is unknown.
    """
    graph = state.graph
    if to not in _TO:
        msg = f"fix_straggler(to={to!r}): choose from {', '.join(_TO)}"
        raise SelectionError(msg)
    if rank != "auto" and rank not in graph.ranks:
        msg = f"fix_straggler: rank {rank} is not in this graph; its ranks: {', '.join(map(str, graph.ranks[:32]))}"
        raise SelectionError(msg)
    work = _own_work(state)
    found = {each: _excess(work, each, to) for each in (graph.ranks if rank == "auto" else (rank,))}
    found = {each: excess for each, excess in found.items() if len(excess.rows)}
    if not found:
        who = "no rank's work" if rank == "auto" else f"no work of rank {rank}"
        msg = f"fix_straggler: {who} is also done by another rank: there is nothing to compare it with"
        raise SelectionError(msg)
    tried = sorted(found, key=lambda each: (-found[each].total_ns, each))[:_TRIED]
    fixed = {each: _applied(state, work, found[each]) for each in sorted(tried)}
    best = min(fixed, key=lambda each: _last(fixed[each])) if len(fixed) > 1 else tried[0]
    excess = found[best]
    note = f"fix_straggler: rank {best} had {excess.total_ns / 1e6:.3f} ms of work beyond its peers' {to}"
    if excess.alone_ns:
        note += f"; {excess.alone_ns / 1e6:.3f} ms without peers stay"
    return fixed[best].with_note(note)


@dataclass(frozen=True, eq=False)
class _Work:
    """The own work of all ranks in units that can be compared: activities, and host gaps before moments of activities.

    Units come by (group, time).
    """

    group: npt.NDArray[np.int64]
    """-1 for units that no other rank has; then different by what they are: 3 per group of peers."""
    rank: npt.NDArray[np.int32]
    value: npt.NDArray[np.int64]
    """ns."""
    activity: npt.NDArray[np.int64]
    """-1 for gaps."""
    vertex: npt.NDArray[np.int64]
    """-1 for activities."""


@dataclass(frozen=True, eq=False)
class _Excess:
    """What one rank's units take beyond their peers'."""

    rows: npt.NDArray[np.int64]
    """The units that have peers."""
    aim: npt.NDArray[np.int64]
    """What each of them takes at most, ns."""
    total_ns: int
    alone_ns: int


def _own_work(state: State) -> _Work:
    graph = state.graph
    acts, edges = graph.activities, graph.edges
    group = peers(graph)
    own = np.flatnonzero(_own_edges(graph))
    busy = np.zeros(len(acts), np.int64)
    np.add.at(busy, edges.activity[own], np.maximum(state.lag[own], 0))
    works = np.flatnonzero(~np.isin(acts.kind, (*_COMMUNICATION, ActivityKind.BOUNDARY, ActivityKind.JOIN)))
    after = np.zeros(graph.vertex_count, np.bool_)
    after[edges.target[edges.kind == EdgeKind.HOST_ORDER]] = True
    comparable = np.isin(graph.gap_kind, (*_OWN_GAPS, GapKind.NONE))
    gaps = np.flatnonzero(after & comparable)
    key = np.concatenate([3 * group[works], 3 * group[gaps // 2] + 1 + gaps % 2])
    key[np.concatenate([group[works], group[gaps // 2]]) < 0] = -1
    value = np.concatenate([busy[works], state.gap[gaps]])
    none = np.full(max(len(works), len(gaps)), -1)
    order = np.lexsort((value, key))
    return _Work(
        key[order], np.concatenate([acts.rank[works], acts.rank[gaps // 2]])[order], value[order],
        np.concatenate([works, none[: len(gaps)]])[order], np.concatenate([none[: len(works)], gaps])[order],
    )  # fmt: skip


def _own_edges(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which edges are own work of the rank of the activity they belong to."""
    edges = graph.edges
    talks = np.isin(graph.activities.kind[edges.activity], _COMMUNICATION)
    return np.isin(edges.kind, _OWN_EDGES) & (edges.activity >= 0) & ~talks


def _excess(work: _Work, rank: int, to: str) -> _Excess:
    """Return what a rank's units take beyond the same units of the other ranks."""
    mine = np.flatnonzero(work.rank == rank)
    others = (work.rank != rank) & (work.group >= 0)
    group, value = work.group[others], work.value[others]
    first = np.searchsorted(group, work.group[mine])
    count = np.searchsorted(group, work.group[mine], side="right") - first
    alone = int(work.value[mine[count == 0]].sum())
    mine, first, count = mine[count > 0], first[count > 0], count[count > 0]
    if to == "min":
        aim = value[first]  # units of one group come by value
    elif to == "mean":
        total = np.concatenate(([0], np.cumsum(value)))
        aim = (total[first + count] - total[first]) // count
    else:
        aim = (value[first + (count - 1) // 2] + value[first + count // 2]) // 2
    aim = np.minimum(aim, work.value[mine])
    return _Excess(mine, aim, int((work.value[mine] - aim).sum()), alone)


def _applied(state: State, work: _Work, excess: _Excess) -> State:
    """Return the state where a rank's units take what they are to take; slices of an activity shrink alike."""
    graph = state.graph
    rows = excess.rows
    factor = np.ones(len(graph.activities))
    some = rows[work.activity[rows] >= 0]
    aim = excess.aim[work.activity[rows] >= 0]
    factor[work.activity[some]] = aim / np.maximum(work.value[some], 1)
    edges = np.flatnonzero(_own_edges(graph))
    edges = edges[(factor[graph.edges.activity[edges]] < 1) & (state.lag[edges] > 0)]
    lag, gap = state.lag.copy(), state.gap.copy()
    lag[edges] = np.rint(lag[edges] * factor[graph.edges.activity[edges]]).astype(np.int64)
    pauses = work.vertex[rows] >= 0
    gap[work.vertex[rows[pauses]]] = excess.aim[pauses]
    return replace(state, lag=lag, gap=gap)


def _last(state: State) -> int:
    return int(predict(state.graph, state.lag, state.gap, state.head).max(initial=0))
