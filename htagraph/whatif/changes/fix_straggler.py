"""One rank works as fast as the others do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.blame import others_median
from htagraph.queries.peers import alike, peers
from htagraph.queries.replay import predict
from htagraph.queries.weights import State

__all__ = ["fix_straggler"]

Array: TypeAlias = npt.NDArray[Any]
_COMMUNICATION = (ActivityKind.COMMUNICATION, ActivityKind.HOST_COMMUNICATION)
_OWN_EDGES = (EdgeKind.BODY, EdgeKind.DATALOADER)
_OWN_GAPS = (GapKind.HOST_UNTRACED, GapKind.DATA_WAIT)
_TRIED = 8  # ranks, of those whose own work exceeds their peers' most
_TO = ("median", "mean", "min")
_DEVICE, _HOST, _DATA = range(3)
_NAME, _FINEST = 1, 2  # levels of what units are
_SURE = 3.0  # standard errors
_OF_MEDIAN = 1.5  # variance of a median over that of a mean
_FLOOR_NS = 100  # what is added to all times: of shorter ones the ratio tells nothing


def fix_straggler(
    state: State, *, rank: int | Literal["auto"] = "auto", to: Literal["median", "mean", "min"] = "median"
) -> State:
    """Return the state where one rank's own work takes no longer than the same work of the others.

    Own work is what its operators, calls, kernels and copies do, and the untraced host time between them; transfers and
    waits are not. A straggler is slower in every step, not once: work of one name takes a typical time on each rank
    (the median over all its instances, each relative to the same one on the other ranks, see `queries.peers`), and
    where this exceeds the `to` of the other ranks' typical times, by more than three standard errors, every instance
    takes that much less. Names that tell too little go by all host or device work of the rank, places in a step by
    their name; data loading is judged alone. So a single stall stays, and so does what is faster: nothing ever gets
    slower. What was done once in a job without steps is taken as typical. What the other ranks do not have stays as
    well; a note says how much that is.

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
    aim = _typical(work, to)
    found = {each: work.rank == each for each in (graph.ranks if rank == "auto" else (rank,))}
    found = {each: mine for each, mine in found.items() if (aim[mine] >= 0).any()}
    if not found:
        who = "no rank's work" if rank == "auto" else f"no work of rank {rank}"
        msg = f"fix_straggler: {who} is also done by another rank: there is nothing to compare it with"
        raise SelectionError(msg)
    excess = np.where(aim >= 0, work.value - aim, 0)
    total = {each: int(excess[mine].sum()) for each, mine in found.items()}
    tried = sorted(found, key=lambda each: (-total[each], each))[:_TRIED]
    fixed = {each: _applied(state, work, np.flatnonzero((excess > 0) & found[each]), aim) for each in sorted(tried)}
    best = min(fixed, key=lambda each: _last(fixed[each])) if len(fixed) > 1 else tried[0]
    note = f"fix_straggler: rank {best} had {total[best] / 1e6:.3f} ms of work beyond its peers' {to}"
    alone = int(work.value[found[best] & (aim < 0)].sum())
    if alone:
        note += f"; {alone / 1e6:.3f} ms without peers stay"
    return fixed[best].with_note(note)


@dataclass(frozen=True, eq=False)
class _Work:
    """The own work of all ranks in units that can be compared: activities, and host gaps before their moments."""

    group: npt.NDArray[np.int64]
    """Units that are the same on several ranks have the same number; -1 for those that no other rank has."""
    levels: tuple[npt.NDArray[np.int64], ...]
    """What units are, from coarse to fine: device work, host work or data loading; the name; the place in a step."""
    rank: npt.NDArray[np.int32]
    value: npt.NDArray[np.int64]
    """ns."""
    activity: npt.NDArray[np.int64]
    """-1 for gaps."""
    vertex: npt.NDArray[np.int64]
    """-1 for activities."""
    steps: int


def _own_work(state: State) -> _Work:
    graph = state.graph
    acts, edges = graph.activities, graph.edges
    own = np.flatnonzero(_own_edges(graph))
    busy = np.zeros(len(acts), np.int64)
    np.add.at(busy, edges.activity[own], np.maximum(state.lag[own], 0))
    works = np.flatnonzero(~np.isin(acts.kind, (*_COMMUNICATION, ActivityKind.BOUNDARY, ActivityKind.JOIN)))
    after = np.zeros(graph.vertex_count, np.bool_)
    after[edges.target[edges.kind == EdgeKind.HOST_ORDER]] = True
    gaps = np.flatnonzero(after & np.isin(graph.gap_kind, (*_OWN_GAPS, GapKind.NONE)))
    activity = np.concatenate([works, gaps // 2])
    what = np.concatenate([np.zeros(len(works), np.int64), 1 + gaps % 2])
    loads = np.zeros(len(acts), np.bool_)
    loads[edges.activity[own[edges.kind[own] == EdgeKind.DATALOADER]]] = True
    side = np.where(acts.kind >= ActivityKind.COMPUTATION, _DEVICE, _HOST)
    side = np.concatenate([np.where(loads, _DATA, side)[works], _side_of_gaps(graph)[gaps]])
    group, name, place = (np.where(each[activity] >= 0, 3 * each[activity] + what, -1)
                          for each in (peers(graph), *alike(graph)))  # fmt: skip
    none = np.full(max(len(works), len(gaps)), -1)
    return _Work(
        group, (side, name, place), acts.rank[activity], np.concatenate([busy[works], state.gap[gaps]]),
        np.concatenate([works, none[: len(gaps)]]), np.concatenate([none[: len(works)], gaps]),
        len(np.unique(acts.step[acts.step >= 0])),
    )  # fmt: skip


def _side_of_gaps(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    return np.where(graph.gap_kind == GapKind.DATA_WAIT, _DATA, _HOST)


def _own_edges(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which edges are own work of the rank of the activity they belong to."""
    edges = graph.edges
    talks = np.isin(graph.activities.kind[edges.activity], _COMMUNICATION)
    return np.isin(edges.kind, _OWN_EDGES) & (edges.activity >= 0) & ~talks


def _typical(work: _Work, to: str) -> npt.NDArray[np.int64]:
    """Return what each unit would take at most if its rank were typically as fast as the others, ns; -1 without peers.

    A level is believed where it differs from the coarser one by more than chance.
    """
    aim = np.full(len(work.value), -1, np.int64)
    rows = np.flatnonzero(work.group >= 0)
    aim[rows] = work.value[rows]
    some = np.bincount(work.group[rows], work.value[rows]) > 0  # what takes no time on any rank tells nothing
    rows = rows[some[work.group[rows]]]
    if not len(rows):
        return aim
    log = np.log(work.value[rows] + _FLOOR_NS)
    group = np.unique(work.group[rows], return_inverse=True)[1]
    log -= (np.bincount(group, log) / np.bincount(group))[group]  # the mean: a median would not favour all ranks alike
    ratio = np.zeros(len(rows))
    pool = np.zeros(len(rows), np.int64)
    for level, number in enumerate(work.levels):
        own = np.unique(number[rows], return_inverse=True)[1]
        if level < _FINEST:
            pool = own  # places in a step are few each: how much they vary is told by their name
        found, error = _compared(log, own, pool, work.rank[rows], to)
        once = np.isnan(error)
        if level == _NAME and work.steps < 2:
            error[once] = 0  # nothing was done twice: what is seen is all there is to go by
        with np.errstate(invalid="ignore"):
            ratio = np.where(np.abs(found - ratio) > _SURE * error, found, ratio)
    value = work.value[rows]
    wanted = np.floor((value + _FLOOR_NS) * np.exp(ratio) - _FLOOR_NS + 1e-3)
    aim[rows] = np.where(ratio < 0, np.clip(wanted, 0, value), value)
    return aim


def _compared(log: Array, number: Array, pool: Array, rank: Array, to: str) -> tuple[Array, Array]:
    """Return for each unit (how fast the others typically do its kind of work, relative to its rank; standard error).

    Args:
        log: time relative to the same unit of all ranks.
        number: which kind of work it is.
        pool: over which units the variation is taken together.
        rank: who did it.
        to: which of the other ranks' typical times counts.

    Returns:
        The logarithm of the ratio, and its standard error: NaN where nothing was done twice.
    """
    _, first, cell = np.unique(np.stack([number, rank]), axis=1, return_index=True, return_inverse=True)
    cell = cell.ravel()
    mine, kind, count = _medians(log, cell), number[first], np.bincount(cell)
    middle = np.zeros(len(first))
    middle[cell] = mine
    others = _of_others(np.exp(middle), kind, to)
    many = np.bincount(kind)[kind]
    rest = np.bincount(kind, count)[kind] - count
    mean = np.bincount(cell, log) / count
    squares = np.bincount(pool, (log - mean[cell]) ** 2)
    # one degree of freedom less in each cell, and in each unit, as times are relative to it
    free = np.bincount(pool[first], (count - 1) * (many - 1) / np.maximum(many, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(_OF_MEDIAN * (squares / free)[pool[first]] * (1 / count + 1 / rest))
        error *= 1 + (_SURE**2 + 1) / (4 * free[pool[first]])  # few tell little about how much they vary
        found = np.log(others) - middle
    error[(free[pool[first]] <= 0) | np.isnan(found)] = np.nan
    return np.where(np.isnan(found), 0, found)[cell], error[cell]


def _of_others(values: Array, group: Array, to: str) -> npt.NDArray[np.float64]:
    """Return for each value the median, mean or least of the others of its group; NaN without others."""
    if to == "median":
        return others_median(values, group)
    count = np.bincount(group)[group] - 1
    if to == "mean":
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, (np.bincount(group, values)[group] - values) / count, np.nan)
    order = np.lexsort((values, group))
    new = np.concatenate(([True], group[order][1:] != group[order][:-1]))
    first = np.flatnonzero(new)[np.cumsum(new) - 1]  # of each group, by place in the order
    least = np.empty(len(values))
    least[order] = values[order[np.minimum(first + (np.arange(len(order)) == first), len(order) - 1)]]
    return np.where(count > 0, least, np.nan)


def _medians(values: Array, number: Array) -> npt.NDArray[np.float64]:
    """Return for each value the median of those of its number."""
    order = np.lexsort((values, number))
    size = np.bincount(number)
    first = np.cumsum(size) - size
    ordered = values[order]
    low, high = first + np.maximum(size - 1, 0) // 2, first + size // 2
    middle = (ordered[low] + ordered[np.minimum(high, len(ordered) - 1)]) / 2
    return np.asarray(middle[number], np.float64)


def _applied(state: State, work: _Work, rows: Array, aim: Array) -> State:
    """Return the state where some units take what they are to take; slices of an activity shrink alike."""
    graph = state.graph
    factor = np.ones(len(graph.activities))
    some, pauses = rows[work.activity[rows] >= 0], rows[work.vertex[rows] >= 0]
    factor[work.activity[some]] = aim[some] / work.value[some]
    edges = np.flatnonzero(_own_edges(graph))
    edges = edges[(factor[graph.edges.activity[edges]] < 1) & (state.lag[edges] > 0)]
    lag, gap = state.lag.copy(), state.gap.copy()
    lag[edges] = np.rint(lag[edges] * factor[graph.edges.activity[edges]]).astype(np.int64)
    gap[work.vertex[pauses]] = aim[pauses]
    return replace(state, lag=lag, gap=gap)


def _last(state: State) -> int:
    return int(predict(state.graph, state.lag, state.gap, state.head).max(initial=0))
