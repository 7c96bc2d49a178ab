"""Fix a straggler: one rank's own work takes no longer than the same work of the other ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, inverse_of, marked
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import COMMUNICATION, FETCHES, HOST_GAPS, ActivityKind, EdgeKind, GapKind, edges_with, of_kinds
from htagraph.core.statistics import middles, others_median
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.compare import MEDIAN_VARIANCE
from htagraph.queries.peers import alike, peers
from htagraph.queries.rank_speed import MIN_SHARE_OF_NAME, SlowRanks, own_step_of, own_steps, slow_ranks
from htagraph.queries.replay import predict
from htagraph.queries.straggler import straggler_of
from htagraph.queries.weights import State
from htagraph.whatif.links import transfer_edges

__all__ = ["fix_straggler"]

_MAX_RANKS_TRIED = 8
"""How many ranks ``rank="auto"`` tries: the ranks with the most work beyond their peers'.

Chosen for time: each costs a replay of the whole job. Doubled, a rank beyond the eighth can be chosen, in jobs where
eight others exceed their peers by more and yet delay the job less."""
_TO = ("median", "mean", "min")
_DEVICE, _HOST, _DATA = range(3)
_NAME, _FINEST = 1, 2
"""Places in `_Work.levels`: the level of names, and the finest one."""
_MIN_STANDARD_ERRORS = 3.0
"""How many standard errors a rank must differ from the other ranks to count as slower.

Source: the usual three-sigma rule, 0.3 % of false alarms per comparison of normal noise. Doubled, more slow work of few
instances stays as it is, and the gain predicted for a weak straggler is smaller; halved, chance differences are fixed
too (see the sensitivity tests)."""
_FLOOR_NS = 100
"""Added to all times before they are divided, ns: ratios of shorter times are mostly the resolution of clocks.

Chosen: below the shortest kernels and operators (about 1 µs), above the resolution of the timestamps. Doubled, work of
less than 1 µs is fixed a little less."""


def fix_straggler(
    state: State, /, *, rank: int | Literal["auto"] = "auto", to: Literal["median", "mean", "min"] = "median"
) -> State:
    """Return the state where one rank's own work takes no longer than the same work of the other ranks.

    Own work is the time of operators, calls, kernels and copies, and the untraced host time between them; transfers and
    waits are not. A straggler is slower in every step, not once: work of one name takes a typical time on each rank
    (the median over all its instances, each relative to the same one on the other ranks, see `queries.peers`). Where
    this exceeds the `to` of the other ranks' typical times by more than three standard errors, every
    instance becomes shorter by this excess. A name with too few instances follows all host or device work of the rank,
    and a place in the step follows its name; data loading is judged separately. So a single stall stays, and nothing
    becomes slower. Work done only once, in a job without steps, is taken as typical. Work that the other ranks do not
    have stays as well, unless it makes the steps of the straggler longer than theirs, and a note says how much stays.

    Args:
        rank: the rank, or ``"auto"``: the rank that `htagraph.stragglers` names; if it names no rank, the rank that
            most waiting is charged to; and if no rank is charged, the rank whose fix makes the job shortest (on ties
            the lowest). A note says if no rank is slower than its peers beyond chance.
        to: ``"median"``, ``"mean"`` or ``"min"`` of the other ranks.

    Raises:
        SelectionError: the rank is not in the graph, nothing on it has a peer, or `to` is unknown.
    """
    graph = state.graph
    if to not in _TO:
        msg = f"fix_straggler(to={to!r}): choose from {', '.join(_TO)}"
        raise SelectionError(msg)
    if rank != "auto" and rank not in graph.ranks:
        msg = f"rank {rank} is not in this graph; its ranks: {', '.join(map(str, graph.ranks[:32]))}"
        raise SelectionError(msg)
    slow = slow_ranks(graph) if len(graph.ranks) > 1 else None
    work = _own_work(state)
    aim = _typical(work, to)
    if slow is not None and slow.slow.any():
        aim = _as_whole_steps(graph, work, aim, slow, to)
    units_by_rank = {one: work.rank == one for one in (graph.ranks if rank == "auto" else (rank,))}
    units_by_rank = {one: units for one, units in units_by_rank.items() if (aim[units] >= 0).any()}
    if not units_by_rank:
        who = "no rank's work" if rank == "auto" else f"no work of rank {rank}"
        msg = f"{who} is also done by another rank: there is nothing to compare it with"
        raise SelectionError(msg)
    excess = np.where(aim >= 0, work.value - aim, 0)
    total = {one: int(excess[units].sum()) for one, units in units_by_rank.items()}
    first, why = _first_choice(graph, slow) if rank == "auto" else (rank, "")
    sure = [first] if first is not None and total.get(first, 0) > 0 else []
    tried = sure or sorted(total, key=lambda one: (-total[one], one))[:_MAX_RANKS_TRIED]
    slower = {one: np.flatnonzero((excess > 0) & units_by_rank[one]) for one in sorted(tried)}
    fixed = {one: _moved_sooner(_applied(state, work, rows, aim), work, aim, one) for one, rows in slower.items()}
    best = tried[0]
    if len(fixed) > 1:
        ends = {one: int(predict(s.graph, s.lag, s.gap, s.head).max(initial=0)) for one, s in fixed.items()}
        best = min(fixed, key=ends.__getitem__)
    beyond = f"{total[best] / 1e6:.3f} ms of work beyond its peers' {to}, counting only what is slower on it"
    note = f"rank {best} had {beyond}"
    if first is not None and first != best:
        why = f"; rank {first}, which others wait for most, has none"
    alone = int(work.value[units_by_rank[best] & (aim < 0)].sum())
    if alone:
        note += f"; {alone / 1e6:.3f} ms without peers stay"
    return fixed[best].with_reason(note + why)


def _first_choice(graph: DependencyGraph, slow: SlowRanks | None) -> tuple[int | None, str]:
    """Return (the straggler, or else the rank that most waiting is charged to, or None; what to know about that)."""
    if slow is None:
        return None, ""
    rank, _, charged_most = straggler_of(graph, slow)
    if rank is not None:
        return rank, ""
    chosen = "; no rank is slower than its peers beyond chance (htagraph stragglers)"
    return charged_most, chosen + (", this one is charged most waiting" if charged_most is not None else "")


@dataclass(frozen=True, eq=False)
class _Work:
    """The own work of all ranks in units that can be compared: activities, and the host gaps before them."""

    group: Ints
    """The number of the unit's peers, the same unit on several ranks; -1 for units that no other rank has."""
    levels: tuple[Ints, ...]
    """What a unit is, from coarse to fine: device work, host work or a wait for data; its name; its place in a step."""
    rank: npt.NDArray[np.int32]
    value: Ints
    """ns."""
    activity: Ints
    """-1 for gaps."""
    vertex: Ints
    """-1 for activities."""
    steps: int


def _own_work(state: State) -> _Work:
    graph = state.graph
    acts, edges = graph.activities, graph.edges
    own = np.flatnonzero(_own_edges(graph))
    busy = np.zeros(len(acts), np.int64)
    np.add.at(busy, edges.activity[own], np.maximum(state.lag[own], 0))
    work_rows = np.flatnonzero(~of_kinds(acts.kind, (*COMMUNICATION, ActivityKind.BOUNDARY, ActivityKind.JOIN)))
    after = marked(edges.target[edges.kind == EdgeKind.HOST_ORDER], graph.vertex_count)
    gaps = np.flatnonzero(after & of_kinds(graph.gap_kind, (*HOST_GAPS, GapKind.NONE)))
    activity = np.concatenate([work_rows, gaps // 2])
    what = np.concatenate([np.zeros(len(work_rows), np.int64), 1 + gaps % 2])
    loads = marked(edges.activity[own[of_kinds(edges.kind[own], FETCHES)]], len(acts))
    side = np.where(acts.kind >= ActivityKind.COMPUTATION, _DEVICE, _HOST)
    side = np.concatenate(
        [np.where(loads, _DATA, side)[work_rows], np.where(graph.gap_kind[gaps] == GapKind.DATA_WAIT, _DATA, _HOST)]
    )
    group, name, place = (np.where(each[activity] >= 0, 3 * each[activity] + what, -1)
                          for each in (peers(graph), *alike(graph)))  # fmt: skip
    none = np.full(max(len(work_rows), len(gaps)), -1)
    return _Work(
        group, (side, name, place), acts.rank[activity],
        np.concatenate([busy[work_rows], state.gap[gaps]]),
        np.concatenate([work_rows, none[: len(gaps)]]), np.concatenate([none[: len(work_rows)], gaps]),
        len(np.unique(acts.step[acts.step >= 0])),
    )  # fmt: skip


def _own_edges(graph: DependencyGraph) -> Mask:
    """Return True for each edge whose lag is own work of a rank."""
    edges = graph.edges
    talks = of_kinds(graph.activities.kind[edges.activity], COMMUNICATION)
    return of_kinds(edges.kind, edges_with("own")) & (edges.activity >= 0) & ~talks


def _typical(work: _Work, to: str) -> Ints:
    """Return how long each unit takes at most if its rank is typically as fast as the others, ns; -1 without peers.

    The ratio of a finer level replaces that of the coarser one where the two differ by more than chance.
    """
    aim = np.full(len(work.value), -1, np.int64)
    rows = np.flatnonzero(work.group >= 0)
    aim[rows] = work.value[rows]
    some = np.bincount(work.group[rows], work.value[rows]) > 0  # units of no time on any rank cannot be compared
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
            pool = own  # a place has too few instances to estimate its variation: that of its name is taken
        level_ratio, error = _compared(log, own, pool, work.rank[rows], to)
        once = np.isnan(error)
        if level == _NAME and work.steps < 2:
            error[once] = 0  # nothing was done twice, so a single instance has to do
        with np.errstate(invalid="ignore"):
            ratio = np.where(np.abs(level_ratio - ratio) > _MIN_STANDARD_ERRORS * error, level_ratio, ratio)
    value = work.value[rows]
    wanted = np.floor((value + _FLOOR_NS) * np.exp(ratio) - _FLOOR_NS + 1e-3)
    aim[rows] = np.where(ratio < 0, np.clip(wanted, 0, value), value)
    return aim


def _as_whole_steps(graph: DependencyGraph, work: _Work, aim: Array, slow: SlowRanks, to: str) -> Ints:
    """Return `aim` where the slow rank's steps exceed the others' by no more than chance.

    A rank that now and then loses its core takes the typical time for each kind of work, and yet longer for its steps.
    What is left of the excess of a step comes off the units that exceed their peers there, each by the same share; work
    that no other rank does exceeds them by all its time.
    """
    position = int(slow.slow.argmax())
    peer = slow.roles == slow.roles[position]
    worked = own_steps(graph).work  # a transfer beside slow work is hidden, and shows when this becomes shorter
    steps = np.flatnonzero(slow.when[position] & np.isfinite(worked[peer]).all(axis=0))
    if not len(steps):  # no step that all of its peers recorded
        return aim
    times = worked[peer][:, steps]
    own = int(np.count_nonzero(peer[:position]))
    others = _of_others(times.T.ravel(), np.repeat(np.arange(len(steps)), int(peer.sum())), to)
    excess = times[own] - others.reshape(len(steps), -1)[:, own]
    usual, units = np.zeros(len(work.value)), np.flatnonzero(work.group >= 0)
    group = np.unique(work.group[units], return_inverse=True)[1]
    usual[units] = np.nan_to_num(_of_others(work.value[units].astype(np.float64), group, to), nan=np.inf)
    before = np.where(aim >= 0, aim, work.value)
    activity = np.where(work.activity >= 0, work.activity, work.vertex >> 1)
    rows = np.flatnonzero(work.rank == graph.ranks[position])
    number = np.append(inverse_of(steps, len(slow.steps)), -1)
    at = np.full(len(before), -1)
    at[rows] = number[own_step_of(graph, slow.steps, position, activity[rows])]
    mine = at >= 0
    removed = np.bincount(at[mine], (work.value - before)[mine], len(steps))
    more = np.where(mine, np.maximum(before - usual, 0), 0.0)
    left = np.nan_to_num(excess - removed)  # a stage compares with no rank
    share = np.clip(left / np.maximum(np.bincount(at[mine], more[mine], len(steps)), 1), 0, 1)
    less = np.zeros(len(before), np.int64)
    less[mine] = np.rint(share[at[mine]] * more[mine]).astype(np.int64)
    return np.where((aim >= 0) | (less > 0), before - less, -1)


def _compared(log: Array, number: Array, pool: Array, rank: Array, to: str) -> tuple[Array, Array]:
    """Return (the typical time of the other ranks for the unit's kind of work, relative to its own rank; its error).

    Both are logarithms, as the given times are, relative to the same unit on all ranks. `number` is the kind of work;
    units of one `pool` share an estimate of their variation. The error is NaN where nothing was done twice.
    """
    cells = number * (int(rank.max()) + 2) + rank  # a rank may be -1
    _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
    kind, count = number[first], np.bincount(cell)
    middle = np.zeros(len(first))
    middle[cell] = np.mean(middles(log, cell), axis=0)
    others = _of_others(np.exp(middle), kind, to)
    many = np.bincount(kind)[kind]
    rest = np.bincount(kind, count)[kind] - count
    mean = np.bincount(cell, log) / count
    squares = np.bincount(pool, (log - mean[cell]) ** 2)
    # one degree of freedom less in each cell, and in each unit, as times are relative to it
    free = np.bincount(pool[first], (count - 1) * (many - 1) / np.maximum(many, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(MEDIAN_VARIANCE * (squares / free)[pool[first]] * (1 / count + 1 / rest))
        # the variation of few instances is itself uncertain
        error *= 1 + (_MIN_STANDARD_ERRORS**2 + 1) / (4 * free[pool[first]])
        ratio = np.log(others) - middle
    error[(free[pool[first]] <= 0) | np.isnan(ratio)] = np.nan
    return np.where(np.isnan(ratio), 0, ratio)[cell], error[cell]


def _of_others(values: Array, group: Array, to: str) -> npt.NDArray[np.float64]:
    """Return, for each value, the median, mean or minimum of the other values of its group; NaN without others."""
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


def _applied(state: State, work: _Work, rows: Array, aim: Array) -> State:
    """Return the state where the units in `rows` take their `aim`; all slices of an activity shrink by one factor."""
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


def _moved_sooner(state: State, work: _Work, aim: Array, rank: int) -> State:
    """Return the state where transfers of a rank whose host is slower in all it does no longer wait for its cores.

    The time of a transfer beyond the least of its class becomes shorter as that name of work does which gains least, of
    the names that take a good part of the rank's time.
    """
    graph, waits = state.graph, state.graph.waits
    own = (work.rank == rank) & (work.activity >= 0) & (work.levels[0] == _HOST) & (aim >= 0)
    before, after = (np.bincount(work.levels[_NAME][own] + 1, each[own]) for each in (work.value, aim))
    large = before > MIN_SHARE_OF_NAME * before.sum()
    pace = float((after[large] / before[large]).max(initial=0)) if large.any() else 1.0
    shared = (graph.activities.kind[waits.activity] == ActivityKind.HOST_COMMUNICATION) & (waits.collective >= 0)
    shared &= np.isin(waits.collective, waits.collective[waits.rank == rank])
    spare, (rows, _) = np.zeros(len(graph.activities) + 1), transfer_edges(graph)
    spare[waits.activity[shared]] = waits.excess[shared]
    less, lag = np.minimum(spare[graph.edges.activity[rows]], np.maximum(state.lag[rows], 0)), state.lag.copy()
    lag[rows] -= np.rint((1 - pace) * less).astype(np.int64)
    return replace(state, lag=lag)
