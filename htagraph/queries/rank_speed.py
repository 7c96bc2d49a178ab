"""Which ranks, or stages of pipelines, are slower than their peers: by their own steps, by like work, by their pace.

Ranks of one role are compared by the time that they need by themselves for each step (`own_steps`). The stages of a
pipeline have different layers: a slow device or host takes longer for whatever it does, a stage with more to do takes
longer for some of it, so the name of work counts whose ratio to the other ranks is smallest (`speed_of`). A recording
has few steps, and all that varies in a step adds up: equal pauses in three steps show in the time of their name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, inverse_of, marked
from htagraph.core.computing import once
from htagraph.core.kinds import TRANSFERS, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.core.statistics import SEVERAL, middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_times
from htagraph.queries.compare import Excess, compare
from htagraph.queries.peers import rank_roles
from htagraph.queries.replay import predict
from htagraph.queries.weights import NEVER

__all__ = [
    "ALL_NAMES", "MIN_SHARE_OF_NAME", "SIDES", "OwnSteps", "SlowRanks", "SlowStage", "WorkOf", "own_step_of",
    "own_steps", "slow_among", "slow_ranks", "slow_stage", "speed_of", "times_alone", "work_of",
]  # fmt: skip

WorkOf: TypeAlias = Callable[[Array, int], Array]
"""Returns the work of one of the `SIDES` of the ranks at some positions: a column per name and step, or per activity,
with the place of its rank, its name or `ALL_NAMES`, its step, how many calls it is, and their time, ns."""
SIDES: Final = (1, 0, 2)
"""The sides of a rank: its kernels, its operators, and the untraced time of its host, by the region it is in.

The own time of a region, such as that of a data loader, is in no operator and counts as untraced."""
_KERNELS, _OPERATORS, _UNTRACED = SIDES
ALL_NAMES: Final = -1
"""Stands for all names together, where others are numbers from 0 on."""
_NO_REGION: Final = 1 << 32
"""Stands for the name of a region where untraced time is in none: beyond all numbers of names."""
MIN_SHARE_OF_NAME = 0.03
"""Share of the compared time that a name takes on every rank, at least. Chosen: rare names vary too much by chance.
Doubled, fewer names are compared, and a rank that is slow in all of them by design is more likely."""
_MIN_SHARE_OF_STEPS = 0.8
"""Share of the steps in which the stage takes longest, at least. Chosen: of stages that take turns by chance none is
named; a step that went another way hides nothing. It cannot be doubled."""


@dataclass(frozen=True, eq=False)
class SlowRanks(Excess):
    """How much longer each rank of a job takes for its steps than the ranks of its role."""

    own: npt.NDArray[np.float64]
    """By rank: median over the steps of what it takes by itself, ns."""
    lasted_ns: float
    """Median time from step to step as recorded, ns; NaN if nothing compares."""
    steps: npt.NDArray[np.int64]
    """Numbers of the steps, the columns of `when`; -1 alone for a job without steps."""
    roles: npt.NDArray[np.int64]
    """By rank: a number shared by ranks that do the same work by design (`rank_roles`)."""
    stage: tuple[float, tuple[str, ...]] | None
    """Of a slow rank that is a stage of a single pipeline: its time for the same work, as a multiple of the median of
    the other stages, and the kinds of activity that are slower (those of the device, or those of the host)."""
    by_step: npt.NDArray[np.float64]
    """By rank and step: what the rank takes by itself, ns; NaN where unknown."""
    alone: Callable[[], npt.NDArray[np.float64]]
    """Returns, by rank and step, the time of work that no other rank does, on its device or its host, ns."""
    by_side: Callable[[], npt.NDArray[np.float64]]
    """Returns the time of all work by side (`SIDES`), rank and step, ns."""


@once
def slow_ranks(graph: DependencyGraph) -> SlowRanks:
    """Return how much longer each rank takes for its steps than the ranks of its role do, and whether by chance."""
    return slow_among(own_steps(graph), rank_roles(graph), partial(work_of, graph))


def slow_among(times: OwnSteps, of_ranks: tuple[Array, Array], work_of: WorkOf) -> SlowRanks:
    """Return what `slow_ranks` does, of a job whose work is compared elsewhere."""
    roles, pipeline = of_ranks

    @cache
    def sums() -> list[tuple[Array, Array, Array]]:
        return [_sums(work_of, len(roles), times.steps, side) for side in SIDES]

    @cache
    def alone() -> npt.NDArray[np.float64]:
        return _alone(sums())

    def parts(rows: Array) -> tuple[Array, Array]:
        return alone()[rows], _times_by_name(sums(), rows)

    whole = compare(times.own, roles, work=times.work, parts=parts)
    stages: dict[int, tuple[float, tuple[str, ...]]] = {}
    for number in np.unique(pipeline).tolist():
        rows = np.flatnonzero(pipeline == number)
        if len(rows) >= SEVERAL and np.isnan(whole.excess[rows]).all():
            of_stages, speed = _of_stages(work_of, rows, times.steps)
            for field in fields(Excess):
                getattr(whole, field.name)[rows] = getattr(of_stages, field.name)
            stages |= dict.fromkeys(rows[of_stages.slow].tolist(), speed)
    if int(whole.slow.sum()) > 1:  # of several roles, only the rank that takes longest can hold up the job
        whole.slow[:] &= whole.in_slow == whole.in_slow[whole.slow].max()
        whole.when[~whole.slow] = False
    return SlowRanks(
        whole.excess, whole.error, whole.slow, whole.when, np.where(whole.slow, whole.in_slow, np.nan),
        _row_medians(times.own), _median(times.lasted), times.steps, roles,
        stages.get(int(whole.slow.argmax())) if whole.slow.any() else None, times.own, alone,
        lambda: np.stack([whole for _, _, whole in sums()]),
    )  # fmt: skip


def _sums(work_of: WorkOf, ranks: int, steps: Array, side: int) -> tuple[Array, Array, Array]:
    """Return (calls, and time in ns, by name, rank and step; time in all by rank and step) of one side of all ranks."""
    # what is no good part of a rank's work counts as nothing, as digests do not hold it
    place, name, step, calls, time = work_of(np.arange(ranks), side)
    some = np.isin(step, steps)
    place, name, step, calls, time = (each[some] for each in (place, name, np.searchsorted(steps, step), calls, time))
    single = name != ALL_NAMES
    names, code = np.unique(name[single], return_inverse=True)
    shape, cell = (len(names), ranks, len(steps)), place * len(steps) + step
    each = code.ravel() * ranks * len(steps) + cell[single]
    count, total = (np.bincount(each, of[single], int(np.prod(shape))).reshape(shape) for of in (calls, time))
    whole = np.bincount(cell[~single], time[~single], ranks * len(steps)).reshape(shape[1:])
    large = (total.sum(axis=2) >= MIN_SHARE_OF_NAME * np.maximum(whole.sum(axis=1), 1))[:, :, None]
    return count * large, total * large, whole


def _alone(sums: Sequence[tuple[Array, Array, Array]]) -> npt.NDArray[np.float64]:
    """Return what `SlowRanks.alone` is: of each name, as many calls as a rank has more than every other rank."""
    by_side = []
    for calls, time, _ in sums:
        ordered = np.sort(calls, axis=1)
        most, second = ordered[:, -1:], ordered[:, -2:-1]
        share = np.where(calls == most, most - second, 0) / np.maximum(most, 1)
        by_side.append((share * time).sum(axis=0))
    kernels, operators, untraced = by_side
    return np.maximum(kernels, operators + untraced)


def _times_by_name(sums: Sequence[tuple[Array, Array, Array]], rows: Array) -> npt.NDArray[np.float64]:
    """Return the time of each name by rank and step, ns, of the names that take a good part of some rank's work.

    Of a rank in whose work a name is no good part, the largest time that is none counts in each step, but no more than
    any other rank takes. The last ones are those of all names together, of each side.
    """
    tables = []
    for _, time, whole in sums:
        large: Array = np.any(time[:, rows], axis=2)
        least = MIN_SHARE_OF_NAME * whole[rows].mean(axis=1)[:, None]
        known = np.where(large[:, :, None], time[:, rows], np.inf).min(axis=1, keepdims=True)  # is no less elsewhere
        times = np.where(large[:, :, None], time[:, rows], np.minimum(least, known))
        tables += [times[large.any(axis=1)], whole[None, rows]]
    return np.concatenate(tables)


def _of_stages(work_of: WorkOf, rows: Array, steps: Array) -> tuple[Excess, tuple[float, tuple[str, ...]]]:
    """Return the excess of stages, which differ by design, by how fast they do like work; and `SlowRanks.stage`."""
    both = []
    for kinds, side in ((("computation", "memory"), _KERNELS), (("host",), _OPERATORS)):
        speed = speed_of(work_of(rows, side), len(rows), steps)
        excess = compare(speed)
        own = _row_medians(speed)
        at = int(excess.slow.argmax())
        both.append((excess, (float(own[at] / np.median(np.delete(own, at))), kinds)))
    return max(both, key=lambda each: (each[0].slow.any(), np.isfinite(each[0].excess).any()))


def work_of(graph: DependencyGraph, ranks: Array, side: int) -> npt.NDArray[np.int64]:
    """Return the work of one side of the ranks at some positions; see `WorkOf`."""
    acts = graph.activities
    if side == _UNTRACED:
        each = _untraced(graph, ranks)
    else:
        rows, place, time = work_times(graph, ranks, device=side == _KERNELS)
        each = np.stack([place, acts.name[rows], acts.step[rows], np.ones_like(place), time.astype(np.int64)])
    whole = each.copy()
    whole[1] = ALL_NAMES
    return np.concatenate([each, whole], axis=1)


def _untraced(graph: DependencyGraph, ranks: Array) -> npt.NDArray[np.int64]:
    """Return the untraced time of some ranks by the annotation or operator around it, one call for each in a step."""
    acts, regions = graph.activities, (ActivityKind.ANNOTATION, ActivityKind.OP)
    place = inverse_of(np.array(graph.ranks)[ranks], int(max(graph.ranks)) + 2)
    vertex = np.flatnonzero(graph.gap_kind == GapKind.HOST_UNTRACED)
    around = np.where(vertex & 1, vertex >> 1, acts.parent[vertex >> 1])
    around = np.where((around >= 0) & of_kinds(acts.kind[around], regions), around, -1)
    inside = np.flatnonzero((acts.kind == ActivityKind.ANNOTATION) & (graph.own_time > 0))
    at, around = np.concatenate([vertex >> 1, inside]), np.concatenate([around, inside])
    time = np.concatenate([graph.gap[vertex], graph.own_time[inside]])
    cells = np.stack([place[acts.rank[at]], np.where(around >= 0, acts.name[around], _NO_REGION), acts.step[at]])
    some = cells[0] >= 0
    cells, at = np.unique(cells[:, some].astype(np.int64), axis=1, return_inverse=True)
    time = np.bincount(at.ravel(), time[some], cells.shape[1]).astype(np.int64)
    return np.concatenate([cells, np.ones((1, len(time)), np.int64), time[None]])


def speed_of(work: Array, ranks: int, steps: Array) -> npt.NDArray[np.float64]:
    """Return how long ranks take for the same work, by rank and step, ns: the time as if all names were as fast.

    Each name's mean time is divided by the median of the ranks; the smallest of these ratios, times the time that ranks
    usually spend in these names in a step, is the rank's value. NaN where too few names are common. Steps are numbers,
    ascending.
    """
    place, name, step, calls, time = work[:, np.isin(work[2], steps[steps >= 0])]
    present, step = np.unique(step, return_inverse=True)
    known = name != ALL_NAMES
    names, code = np.unique(name[known], return_inverse=True)
    shape = (ranks, len(names), len(present))
    cell = (place[known] * len(names) + code.ravel()) * len(present) + step.ravel()[known]
    total, count = (np.bincount(cell, each[known], int(np.prod(shape))).reshape(shape) for each in (time, calls))
    of_rank = total.sum(axis=2) / np.maximum(np.bincount(place[~known], time[~known], ranks), 1)[:, None]
    common = (of_rank >= MIN_SHARE_OF_NAME).all(axis=0) & (count > 0).all(axis=(0, 2))
    speed = np.full((ranks, len(steps)), np.nan)
    if common.sum() >= SEVERAL:
        mean = total[:, common] / count[:, common]
        usual = float(np.median(total[:, common].sum(axis=1)))
        speed[:, np.searchsorted(steps, present)] = (mean / np.median(mean, axis=0)).min(axis=1) * usual
    return speed


class SlowStage(NamedTuple):
    """The stage that takes longest, and what each stage does by itself in a step: without waits and transfers."""

    ranks: tuple[int, ...]
    """The ranks of the stage: one, or the same stage of several pipelines."""
    own_ns: float
    """What they do by themselves in a step, median over them and the steps."""
    others: tuple[int, ...]
    """The ranks of the other stages."""
    least_ns: float
    """The same of the other stage that does least."""
    most_ns: float
    """The same of the other stage that does most."""
    even: dict[int, float]
    """By rank of all stages: the factor by which its own work changes if all stages of a pipeline do equally much."""
    steps: int
    """Steps that were compared."""


def slow_stage(graph: DependencyGraph) -> SlowStage | None:
    """Return the stage that takes longer than every other one in most steps; None if there is none, or no pipeline.

    Ranks that send to each other one by one are stages (`rank_roles`). A job has a stage of each number in every
    pipeline; these do the same work and are compared with the other numbers together.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> slow_stage(graph) is None  # its ranks are replicas
        True
    """
    roles, pipeline = rank_roles(graph)
    staged = np.flatnonzero(np.bincount(pipeline)[pipeline] > 1)
    stages, at = np.unique(roles[staged], return_inverse=True)
    if len(stages) < 2:
        return None
    work = own_steps(graph).work[staged]
    work = work[:, ~np.isnan(work).any(axis=0)]
    if not work.shape[1]:
        return None
    by_stage = np.stack([np.median(work[at.ravel() == number], axis=0) for number in range(len(stages))])
    own = np.median(by_stage, axis=1)
    slow = int(own.argmax())
    if (by_stage.argmax(axis=0) == slow).mean() < _MIN_SHARE_OF_STEPS or own[slow] <= 0 or own.min() <= 0:
        return None
    ranks = np.array(graph.ranks)[staged]
    rest = np.delete(own, slow)
    return SlowStage(
        ranks=tuple(ranks[at.ravel() == slow].tolist()),
        own_ns=float(own[slow]),
        others=tuple(ranks[at.ravel() != slow].tolist()),
        least_ns=float(rest.min()),
        most_ns=float(rest.max()),
        even=dict(zip(ranks.tolist(), (own.mean() / own)[at.ravel()].tolist(), strict=True)),
        steps=work.shape[1],
    )


def _row_medians(values: Array) -> npt.NDArray[np.float64]:
    """Return the median of the known values of each row; NaN without any."""
    return np.array([_median(row) for row in values], np.float64)


def _median(values: Array) -> float:
    """Return the median of the known values; NaN without any."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


@dataclass(frozen=True, eq=False)
class OwnSteps:
    """The own time of each rank in each step, and how long the step lasted."""

    steps: npt.NDArray[np.int64]
    """Numbers of the steps; -1 alone for a job without steps, whose recording counts as one."""
    own: npt.NDArray[np.float64]
    """ns, by rank and step: from one step's last arrival at a collective to the next one's, the rank on its own; NaN
    where a rank has no matched collective in the step."""
    work: npt.NDArray[np.float64]
    """The same if transfers take no time, ns: what the rank does, apart from how long its network takes."""
    lasted: npt.NDArray[np.float64]
    """The same as recorded, others waited for, ns."""


@once
def own_steps(graph: DependencyGraph) -> OwnSteps:
    """Return how long each rank takes for each step by itself, without waiting for others.

    Recorded steps are equally long on all ranks that synchronize: who is fast waits for who is slow. So the job is
    replayed with every rank on its own: a collective begins when this rank arrives, and takes what its transfer took.
    What is left is what the rank does itself, untraced host time included; other ranks and clocks do not matter.

    A step ends for a rank when it arrives at its last collective there; the first one begins with the step itself. In a
    job without steps the recording counts as one step, from a rank's first arrival to its last. Where only some ranks
    recorded steps, a collective of the others is in the step that it is in there.

    The transfer of a collective is the median of its members', as a wrong clock makes it longer on one and shorter on
    another. Of an unmatched one nobody knows how much is waiting: the shortest of its kind counts.
    """
    waits = graph.waits
    met = waits.collective >= 0
    if not met.any():
        return OwnSteps(np.full(1, -1), *np.full((3, len(graph.ranks), 1), np.nan))
    recorded = graph.time - graph.origin_ns  # small numbers, which floats hold exactly
    alone, working = times_alone(graph)
    activity = waits.activity[met]
    place = np.searchsorted(graph.ranks, waits.rank[met])
    step = _step_of(graph, activity, place, waits.collective[met])
    times = (alone, working, recorded)
    if not (step >= 0).any():
        return OwnSteps(np.full(1, -1), *(_between(time, activity, place, len(graph.ranks)) for time in times))
    activity, place, step = activity[step >= 0], place[step >= 0], step[step >= 0]
    steps, at = np.unique(step, return_inverse=True)
    shape = (len(graph.ranks), len(steps))
    cell = place * shape[1] + at.ravel()
    begin = _begin_of_step(graph, int(steps[0]))
    latest = (_latest(time[2 * activity], cell, shape[0] * shape[1]).reshape(shape) for time in times)
    # the time from one column to the next; the first one counts from `begin`
    return OwnSteps(steps, *(np.diff(np.concatenate([begin[:, None], each], axis=1), axis=1) for each in latest))


def own_step_of(graph: DependencyGraph, steps: Array, place: int, activities: Array) -> npt.NDArray[np.int64]:
    """Return in which of the steps of `own_steps` each activity of a rank is, by position; -1 after the last of them.

    What a rank does after its last collective of a step makes it late in the next step, whatever the annotation says.
    """
    waits = graph.waits
    met = (waits.collective >= 0) & (waits.rank == graph.ranks[place])
    activity = waits.activity[met]
    step = _step_of(graph, activity, np.full(len(activity), place), waits.collective[met])
    last = np.full(len(steps), np.iinfo(np.int64).min)
    np.maximum.at(last, np.searchsorted(steps, step), graph.time[2 * activity])
    at = np.searchsorted(np.maximum.accumulate(last), graph.time[2 * activities])
    return np.where(at < len(steps), at, -1)


def times_alone(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the moment of each vertex if every rank is on its own, ns since the origin; the same without transfers."""
    waits = graph.waits
    transfer = np.zeros(len(graph.activities), np.int64)
    transfer[waits.activity] = waits.pure
    met = waits.collective >= 0
    low, high = middles(waits.transfer[met], waits.collective[met])
    transfer[waits.activity[met]] = (low + high) // 2
    gap = graph.gap.copy()
    gap[_released(graph)[waits.activity]] = 0  # unexplained time at the end of a transfer is no work
    alone, working = (
        predict(graph, lag=_lags_alone(graph, each), gap=gap) - graph.origin_ns
        for each in (transfer, np.zeros_like(transfer))
    )
    return alone, working


def _lags_alone(graph: DependencyGraph, transfer: Array) -> npt.NDArray[np.int64]:
    """Return the lags of all edges where no end waits for another rank, ns."""
    edges = graph.edges
    lag = graph.edges.lag.copy()
    lag[_arriving(graph)] = NEVER
    released = _released(graph)
    transfer = transfer - graph.time[2 * np.arange(len(transfer)) + 1] + graph.time[released]  # what follows takes time
    member = np.full(graph.vertex_count, -1, np.int64)
    member[released[graph.waits.activity]] = graph.waits.activity
    last = np.flatnonzero(of_kinds(edges.kind, (EdgeKind.BODY, EdgeKind.HOST_ORDER)) & (member[edges.target] >= 0))
    owner = member[edges.target[last]]
    lag[last] = np.maximum(transfer[owner] - (graph.time[edges.source[last]] - graph.time[2 * owner]), 0)
    return lag


def _arriving(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the edges by which a transfer ends on a rank."""
    edges = graph.edges
    return np.flatnonzero(of_kinds(edges.kind, TRANSFERS) & (edges.activity >= 0))


def _released(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return, for each activity, the vertex that its transfer releases: its end, if it has none."""
    edges, ends = graph.edges, _arriving(graph)
    released = 2 * np.arange(len(graph.activities)) + 1
    released[edges.activity[ends]] = edges.target[ends]
    return released


def _step_of(graph: DependencyGraph, activity: Array, place: Array, collective: Array) -> npt.NDArray[np.int64]:
    """Return the step of each member; of a rank that recorded none, the step of the same collective on other ranks."""
    step = graph.activities.step[activity].astype(np.int64)
    has = marked(place[step >= 0], len(graph.ranks))
    shared = np.full(int(collective.max(initial=-1)) + 1, -1, np.int64)
    np.maximum.at(shared, collective, step)
    return np.where(has[place], step, shared[collective])


def _begin_of_step(graph: DependencyGraph, step: int) -> npt.NDArray[np.float64]:
    """Return when a step begins on each rank, ns; NaN where it does not."""
    acts = graph.activities
    rows = np.flatnonzero((acts.kind == ActivityKind.STEP) & (acts.step == step))
    place = np.searchsorted(graph.ranks, acts.rank[rows])
    return -_latest(graph.origin_ns - graph.time[2 * rows], place, len(graph.ranks))


def _latest(time: Array, cell: Array, count: int) -> npt.NDArray[np.float64]:
    """Return the latest time in each of some cells; NaN for cells without any."""
    latest = np.full(count, -np.inf)
    np.maximum.at(latest, cell, time.astype(np.float64))
    latest[np.isinf(latest)] = np.nan
    return latest


def _between(time: Array, activity: Array, place: Array, ranks: int) -> npt.NDArray[np.float64]:
    """Return the time from the first to the last arrival of each rank, as a column; NaN without two arrivals."""
    at = time[2 * activity]
    own = _latest(at, place, ranks) + _latest(-at, place, ranks)
    own[~(own > 0)] = np.nan
    return own[:, None]
