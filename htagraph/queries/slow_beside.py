"""Which device work is slow beside other device work: executions of one name with a companion and without it.

Executions are compared with executions that do the same: collectives of one operation, group and size, copies of one
name and size, kernels of one name and place in the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, coded, joined, marked, run_starts
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import CHANCE, MOST, SEVERAL, STANDS_OUT, ordered_by, summed, upper_quantile
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.beside import begins_of_work, covered_ns, runs_beside
from htagraph.graph.measures.waits import lacks_members
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.peers import alike

__all__ = ["SlowBeside", "slow_beside"]

_MOST_NAMES = 8
"""How many names of slow work are compared, the names that lose most time. Chosen: more do not fit into a verdict.
Doubled, twice as many comparisons."""
_MOST_COMPANIONS = 8
"""How many names of companions are tried per name of slow work, the names with the most time beside it. Chosen: a
companion that slows work down is beside it for most of its time, so it is among the first. Doubled, twice as many
comparisons."""


@dataclass(frozen=True)
class SlowBeside:
    """Work of one name that takes longer beside a companion than without it."""

    name: int
    """The name of the slow work, an index into `graph.names`."""
    companion: int
    """The name of the work beside it, an index into `graph.names`."""
    op: str
    """The operation of a collective; empty for other work."""
    kind: ActivityKind
    """The kind of the companion."""
    ratio: float
    """How many times as long the work takes beside the companion."""
    sureness: float
    """Standard errors by which the ratio differs from 1, over the standard errors that chance allows; at least 1."""
    slow: Ints
    """The longest member of each execution beside the companion, the slowest first."""
    slow_ns: float
    """The median time of these executions, ns."""
    fast_ns: float
    """The median time of the executions without the companion, ns."""
    count: int
    """How many executions were compared, with and without the companion."""


class _Executions(NamedTuple):
    """Executions that are compared: a row per member of a collective, per copy or kernel."""

    activity: Ints
    number: Ints
    """The execution that the row is a member of."""
    alike: Ints
    """The group of executions that do the same."""


class _WithCompanion(NamedTuple):
    """A comparison of the executions of one name, with and without a companion."""

    longest: Ints
    """The longest member of each execution."""
    companion: int
    time: Array
    """Per execution: the time of the longest member, ns."""
    is_beside: Array
    """Per execution: whether the companion runs beside it."""
    ratio: float
    errors: float
    """Standard errors by which the logarithm of the ratio differs from 0."""
    freedom: float
    """The degrees of freedom of the standard error."""
    sureness: float = 0.0
    """As in `SlowBeside`."""


def slow_beside(graph: DependencyGraph, least_ns: float) -> list[SlowBeside]:
    """Return work that takes at least half as long again beside a companion, the largest loss of time first.

    Two normal distributions of the logarithm of the time, with and without the companion, must explain the times better
    than one does, by more than chance: by the likelihood ratio, which is a t test, of the means of steps. A companion
    runs beside an execution if it covers at least half of it, and of as much of it as a fast execution takes: else
    longer executions would have more beside them because they are long.

    Args:
        graph: the job.
        least_ns: the least time that executions of a name lose on a rank against fast executions, ns.

    Example:
        >>> import htagraph as hg
        >>> slow_beside(hg.load("data/demo"), 1_000_000)
        []
    """
    begin = begins_of_work(graph)
    compared = list[_WithCompanion]()
    for members in _that_lose(graph, begin, least_ns):
        compared += _compared(graph, members, begin)
    best = dict[int, _WithCompanion]()
    for comparison in compared:
        name = int(graph.activities.name[comparison.longest[0]])
        sureness = comparison.errors / upper_quantile(CHANCE / len(compared), comparison.freedom)
        is_sure = comparison.ratio >= STANDS_OUT and sureness >= 1
        if is_sure and (name not in best or sureness > best[name].sureness):
            best[name] = comparison._replace(sureness=sureness)
    results = [_result(graph, comparison) for comparison in best.values()]
    return sorted(results, key=lambda result: -len(result.slow) * (result.slow_ns - result.fast_ns))


def _that_lose(graph: DependencyGraph, begin: Array, least_ns: float) -> list[_Executions]:
    """Return the executions of each name that lose a time worth naming on a rank, against the fast executions.

    Args:
        graph: the job.
        begin: when the work of each activity begins, ns.
        least_ns: the time worth naming, ns.
    """
    kinds = (
        _collectives(graph),
        _copies(graph),
        _kernels(graph),
    )
    present = [kind for kind in kinds if len(kind.activity)]
    if not present:
        return []
    columns = joined(present, len(_Executions._fields))
    members = _Executions(*columns)
    time = graph.time[2 * members.activity + 1] - begin[members.activity]
    lost = time - _fast(time, members.alike)
    rank = graph.activities.rank[members.activity]
    name = graph.activities.name[members.activity]
    lost_ns = np.zeros((max(graph.ranks) + 1, len(graph.names)))
    np.add.at(lost_ns, (rank, name), np.maximum(lost, 0))
    most_ns = lost_ns.max(axis=0)
    names = np.argsort(-most_ns, kind="stable")
    names = names[:_MOST_NAMES]
    names = names[most_ns[names] >= max(least_ns, 1)]
    return [_of_name(members, name == number) for number in names]


def _of_name(members: _Executions, chosen: Array) -> _Executions:
    """Return the chosen members."""
    return _Executions(
        activity=members.activity[chosen],
        number=members.number[chosen],
        alike=members.alike[chosen],
    )


def _fast(time: Array, group: Array) -> Array:
    """Return how long a fast execution of the group of each row takes, ns: the lower quartile."""
    groups, quartile = ordered_by(group, time, lambda count: count // 4)
    place = np.searchsorted(groups, group)
    return quartile[place]


def _collectives(graph: DependencyGraph) -> _Executions:
    """Return the members of collectives on devices whose transfer and size are known."""
    waits = graph.waits
    is_known = (waits.collective >= 0) & (waits.bytes >= 0)
    is_known &= waits.shows_transfer
    is_known &= graph.activities.on_device[waits.activity]
    is_known &= ~lacks_members(graph)[waits.activity]
    rows = np.flatnonzero(is_known)
    if graph.matches is None:
        rows = rows[:0]
    activity = waits.activity[rows]
    collective = waits.collective[rows]
    label = collective
    if graph.matches is not None:
        label = graph.matches.label[collective]
    name = graph.activities.name[activity]
    group = coded(label, waits.bytes[rows], name)
    return _Executions(activity, collective, group)


def _copies(graph: DependencyGraph) -> _Executions:
    """Return the copies whose size is known."""
    acts = graph.activities
    size = acts.arg("bytes")
    is_copy = acts.on_device & (acts.kind == ActivityKind.MEMORY)
    rows = np.flatnonzero(is_copy & (size > 0))
    group = coded(acts.rank[rows], acts.name[rows], size[rows])
    return _alone(graph, rows, group, 1)


def _kernels(graph: DependencyGraph) -> _Executions:
    """Return the kernels of computation that have the same place in several steps."""
    acts = graph.activities
    is_kernel = acts.on_device & (acts.kind == ActivityKind.COMPUTATION)
    rows = np.flatnonzero(is_kernel & (acts.step >= 0))
    if len(graph.steps) < SEVERAL or not _has_streams(graph):
        rows = rows[:0]
    if not len(rows):
        return _alone(graph, rows, rows, 2)
    place = alike(graph)[1][rows]
    is_placed = place >= 0
    return _alone(graph, rows[is_placed], place[is_placed], 2)


def _has_streams(graph: DependencyGraph) -> bool:
    """Return whether any device has several streams, so that work can run beside other work."""
    devices = [(lane.rank, lane.device) for lane in graph.lanes if lane.stream >= 0]
    return len(set(devices)) < len(devices)


def _alone(graph: DependencyGraph, rows: Array, group: Array, kind: int) -> _Executions:
    """Return executions without members on other ranks.

    Numbers of executions, and numbers of the groups of each kind, differ from the numbers of collectives.
    """
    count = len(graph.activities)
    first = 2 * count * kind
    return _Executions(
        activity=rows,
        number=count + rows,
        alike=first + group,
    )


def _compared(graph: DependencyGraph, members: _Executions, begin: Array) -> list[_WithCompanion]:
    """Return the comparisons of executions of one name, one per companion that several executions have."""
    start = begin[members.activity]
    own_ns = graph.time[2 * members.activity + 1] - start
    fast_ns = _fast(own_ns, members.alike)
    order = np.lexsort((-own_ns, members.number))
    first = order[run_starts(members.number[order])]
    place = np.searchsorted(members.number[first], members.number)
    executions = _Executions(
        activity=members.activity[first],
        number=members.number[first],
        alike=coded(members.alike[first]),
    )
    time = np.maximum(own_ns[first], 1)
    comparisons = []
    is_slow = own_ns > STANDS_OUT * fast_ns
    for companion in _companions(graph, members.activity[is_slow]):
        is_companion = graph.activities.name == companion
        is_beside = runs_beside(graph, is_companion)[executions.activity]
        covered = covered_ns(graph, members.activity, start, start + fast_ns, is_companion)
        is_covered = (covered > 0) & (covered >= MOST * fast_ns)
        begins_beside = np.bincount(place, is_covered) > 0
        if not is_beside.any() or not _is_most(time, is_beside & begins_beside, is_beside):
            continue
        comparison = _with_companion(graph, executions, time, is_beside)
        if comparison is not None:
            comparisons.append(comparison._replace(companion=companion))
    return comparisons


def _is_most(time: Array, part: Array, whole: Array) -> bool:
    """Return whether nearly all time of some executions is the time of a part of these."""
    return bool(time[part].sum() >= LIMITS.nearly_all * time[whole].sum())


def _companions(graph: DependencyGraph, slow: Array) -> list[int]:
    """Return the names of work beside slow work on other streams, the name with most time there first."""
    acts = graph.activities
    if not len(slow):
        return []
    is_work = acts.on_device & (acts.duration > 0)
    is_work &= acts.name != acts.name[slow[0]]
    work = np.flatnonzero(is_work)
    begin = graph.time[2 * work]
    end = graph.time[2 * work + 1]
    is_slow = marked(slow, len(acts))
    covered = covered_ns(graph, work, begin, end, is_slow)
    time = np.bincount(acts.name[work], covered)
    order = np.argsort(-time, kind="stable")
    order = order[:_MOST_COMPANIONS]
    return [int(name) for name in order if time[name] > 0]


def _with_companion(
    graph: DependencyGraph,
    executions: _Executions,
    time: Array,
    is_beside: Array,
) -> _WithCompanion | None:
    """Return how much longer executions take beside a companion than without it; None where too few tell.

    Executions of one step may be slow for one reason, so that the mean of a step counts once with the companion and
    once without. Of fewer steps than `SEVERAL`, each execution counts.
    """
    group = executions.alike
    groups = int(group.max()) + 1
    without = summed(np.log(time[~is_beside]), group[~is_beside], groups)
    has_without = without["count"] > 0
    has_beside = np.bincount(group, is_beside) > 0
    tells = (has_without & has_beside)[group]
    if not _is_most(time, is_beside & tells, is_beside):
        return None
    longer = np.log(time[tells]) - without["mean"][group[tells]]
    cell: Array = graph.activities.step[executions.activity[tells]]
    if len(np.unique(cell)) < SEVERAL:
        cell = np.arange(len(longer))
    slow = _means(longer, cell, is_beside[tells])
    fast = _means(longer, cell, ~is_beside[tells])
    if min(len(slow), len(fast)) < SEVERAL:
        return None
    freedom = len(slow) + len(fast) - 2
    resolution = LIMITS.resolution_ns / float(np.median(time))
    variance = (_squares(slow) + _squares(fast)) / freedom + resolution**2
    error = sqrt(variance * (1 / len(slow) + 1 / len(fast)))
    more = float(slow.mean() - fast.mean())
    return _WithCompanion(
        longest=executions.activity,
        companion=-1,
        time=time,
        is_beside=is_beside,
        ratio=exp(more),
        errors=more / error,
        freedom=freedom,
    )


def _squares(values: Array) -> float:
    """Return the sum of squared distances from the mean."""
    return float(((values - values.mean()) ** 2).sum())


def _means(values: Array, cell: Array, chosen: Array) -> Array:
    """Return the means of the chosen values by cell."""
    number = coded(cell[chosen])
    return summed(values[chosen], number, len(np.unique(number)))["mean"]


def _result(graph: DependencyGraph, compared: _WithCompanion) -> SlowBeside:
    """Return the result of the comparison that tells most about a name."""
    acts = graph.activities
    rows = compared.longest[compared.is_beside]
    time = compared.time[compared.is_beside]
    without = compared.time[~compared.is_beside]
    longest = np.argsort(-time, kind="stable")
    is_companion = acts.on_device & (acts.name == compared.companion)
    kind = acts.kind[is_companion.argmax()]
    return SlowBeside(
        name=int(acts.name[rows[0]]),
        companion=compared.companion,
        op=_operation(graph, int(rows[0])),
        kind=ActivityKind(kind),
        ratio=compared.ratio,
        sureness=compared.sureness,
        slow=rows[longest],
        slow_ns=float(np.median(time)),
        fast_ns=float(np.median(without)),
        count=len(compared.time),
    )


def _operation(graph: DependencyGraph, activity: int) -> str:
    """Return the operation of the collective that an activity is a member of; empty for other work."""
    matches = graph.matches
    if matches is None:
        return ""
    collective = matches.collective[matches.activity == activity]
    return matches.op[int(collective[0])] if len(collective) else ""
