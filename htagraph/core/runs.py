"""Runs: stretches of a DAG without branches and joins, so that a replay takes one step for each. Compiled by numba.

Nine of ten vertices have one edge in and one edge out. What a change does to the edges of a run it does to their sum:
the end of the DAG with other weights is known from a tenth of it, to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.compiled import for_reading, njit
from htagraph.core.traverse import chain_order, counting_order, schedule

__all__ = ["Runs", "runs_of"]


@dataclass(frozen=True, eq=False)
class Runs:
    """A DAG with its weights, in runs. `multiplied` says when joins happen if some of them are multiplied."""

    lag: Array
    """Of each edge of the DAG, ns."""
    gap: Array
    """Of each vertex of the DAG, ns."""
    run: npt.NDArray[np.int32]
    """The run of each edge; -1 where nothing that ends last comes after it."""
    run_of_gap: npt.NDArray[np.int32]
    """The run that has the gap of each vertex; -1 for none, -2 - n for the n-th of `joins`."""
    offsets: Ints
    """Where the runs into each join begin."""
    source: npt.NDArray[np.int32]
    """The join that each run leaves."""
    length: Ints
    """Of each run, ns."""
    pause: Ints
    """The gap of each join, ns."""
    head: Ints
    """When each join happens that no run enters, ns."""
    last: Ints
    """The joins of which one ends last."""
    joins: npt.NDArray[np.int32]
    """The vertex of each join, each after its predecessors."""
    place: npt.NDArray[np.int32]
    """The number of the join that each vertex is; -1 for none."""
    target: Array
    """Of each edge of the DAG."""
    covers: Mask
    """Which edges show that no end before them is last: as long as neither their lag nor the gap behind is negative."""

    def reweighted(self, lag: Array, gap: Array, head: Array) -> Runs | None:
        """Return the runs with other weights; None where an end that is left out may be the last one then."""
        length, pause = np.zeros_like(self.length), np.zeros_like(self.pause)
        lag, gap, target = for_reading(lag, np.int64), for_reading(gap, np.int64), for_reading(self.target, np.int32)
        covered = _measure(length, pause, lag, gap, self.run, self.run_of_gap, self.covers, target)
        return replace(self, lag=lag, gap=gap, length=length, pause=pause, head=head[self.joins]) if covered else None

    def moments(
        self, edges: Array, lags: Array, vertices: Array, gaps: Array, waits: tuple[Array, Array, Array] | None = None
    ) -> Array | None:
        """Return when each join happens if some edges and vertices have other lags and gaps, each named once.

        `waits` are more edges: sources, targets and lags. None where an end that is left out may be the last one then,
        where the DAG has a cycle then, or where waits are between other vertices than joins.
        """
        if (self.covers[edges] & (lags < 0)).any() or ((gaps < 0) & (self.gap[vertices] >= 0)).any():
            return None
        length, pause = self.length.copy(), self.pause.copy()
        owner = np.concatenate((self.run[edges], self.run_of_gap[vertices]))
        change = np.concatenate((lags - self.lag[edges], gaps - self.gap[vertices]))
        np.add.at(length, owner[owner >= 0], change[owner >= 0])
        np.add.at(pause, -2 - owner[owner < -1], change[owner < -1])
        if waits is None:
            return self._scheduled(length, pause)
        joins = np.arange(len(pause), dtype=np.int32)
        source, to = (self.place[each] for each in waits[:2])
        if min(source.min(initial=0), to.min(initial=0)) < 0:
            return None
        sources = np.concatenate((self.source, source)).astype(np.int32)
        targets = np.concatenate((np.repeat(joins, np.diff(self.offsets)), to)).astype(np.int32)
        if (source >= to).any():
            offsets, leaving = counting_order(sources, len(joins))
            joins = chain_order(offsets, targets[leaving])
        if len(joins) < len(pause):
            return None
        offsets, entering = counting_order(targets, len(pause))
        return schedule(joins, offsets, entering, sources, np.append(length, waits[2]), pause, self.head)

    def after(self, rows: Array, amount: Array, owner: Array) -> Array:
        """Return when each join happens without some rows of amounts of time, ns; `owner` has them as in `run_of_gap`.

        No end that is left out may be the last one then.
        """
        return self._shorter(0.0, (rows, np.zeros(len(rows), np.int64), amount, owner))

    def multiplied(self, edges: Array, fixed: Array, gaps: Array, factor: float) -> Array:
        """Return when each join happens if some lags and gaps are multiplied, each rounded to whole ns.

        Of the lag of each of the `edges`, `fixed` ns stay as they are; `gaps` are the vertices whose gaps are
        multiplied, too.
        """
        of_gaps = gaps, np.zeros(len(gaps), np.int64), self.gap, self.run_of_gap
        return self._shorter(factor, (edges, fixed, self.lag, self.run), of_gaps)

    def _shorter(self, factor: float, *times: tuple[Array, Array, Array, Array]) -> Array:
        length, pause = self.length.copy(), self.pause.copy()
        for *numbers, owner in times:
            rows, fixed, time = (for_reading(each, np.int64) for each in numbers)
            _shorten(length, pause, rows, fixed, time, for_reading(owner, np.int32), factor)
        return self._scheduled(length, pause)

    def _scheduled(self, length: Array, pause: Array) -> Array:
        joins, runs = np.arange(len(pause), dtype=np.int32), np.arange(len(length), dtype=np.int32)
        return schedule(joins, self.offsets, runs, self.source, length, pause, self.head)

    def at(self, vertices: Array, moments: Array | None = None) -> Array:
        """Return the moment of each vertex of the DAG: of some that are joins and of the last end; of others the least.

        `moments` are those of the joins; by default they follow from the weights.
        """
        moments = self._scheduled(self.length, self.pause) if moments is None else moments
        time = np.full(len(self.place), np.iinfo(np.int64).min)
        for known in (vertices, self.joins[self.last]):
            time[known] = moments[self.place[known]]
        return time


def runs_of(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, in_offsets: Array, in_edges: Array, out_offsets: Array, source: Array, target: Array, lag: Array,
    gap: Array, head: Array, ends: Mask, named: Array | None = None,
) -> Runs:  # fmt: skip
    """Return the runs of a DAG.

    `ends` marks the vertices that count for the end of the DAG, one at least; `named` are vertices that shall be joins;
    see `traverse` for the other arguments.
    """
    count = len(order)
    order, in_edges, source, target = (for_reading(each, np.int32) for each in (order, in_edges, source, target))
    in_offsets, out_offsets, lag = (for_reading(each, np.int64) for each in (in_offsets, out_offsets, lag))
    gap, head = (for_reading(each, np.int64) for each in (gap, head))
    is_last = marked([] if named is None else named, count)
    leaves, covered, covers = np.zeros(count, np.int32), np.zeros(count, np.bool_), np.zeros(len(lag), np.bool_)
    _find_last(leaves, is_last, covered, covers, order, out_offsets, target, lag, gap, for_reading(ends, np.bool_))
    run, through = np.full(len(lag), -1, np.int32), np.full(count, -1, np.int32)
    entries, offsets, joins = np.empty(len(lag), np.int32), np.empty(count + 1, np.int32), np.empty(count, np.int32)
    begins, length = np.empty(len(lag), np.int32), np.zeros(len(lag), np.int64)
    place = np.full(count, -1, np.int32)
    runs, kept = _divide(
        run, through, place, entries, offsets, joins, begins, length, order, in_offsets, in_edges, source, lag, gap,
        leaves, is_last,
    )  # fmt: skip
    entries, joins = entries[:runs], joins[:kept]
    number = np.full(runs + 1, -1, np.int32)
    number[entries] = np.arange(runs, dtype=np.int32)
    alone, of_gap = np.diff(in_offsets)[joins] == 1, np.where(through >= 0, number[np.maximum(through, -1)], through)
    return Runs(
        lag, gap, number[run], of_gap, offsets[: kept + 1].astype(np.int64), begins[entries],
        length[entries], np.where(alone, 0, gap[joins]), head[joins], np.flatnonzero((is_last & ends)[joins]), joins,
        place, target, covers,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _find_last(  # noqa: PLR0913, PLR0917 - a graph as arrays
    leaves: Array, is_last: Array, covered: Array, covers: Array, order: Array, out_offsets: Array, target: Array,
    lag: Array, gap: Array, ends: Array,
) -> None:  # fmt: skip
    """Mark the ends after which no other end surely comes, and count the edges of each vertex that lead to one."""
    for i in range(len(order) - 1, -1, -1):
        vertex = order[i]
        later = False
        for edge in range(out_offsets[vertex], out_offsets[vertex + 1]):
            to = target[edge]
            if leaves[to] > 0 or is_last[to]:
                leaves[vertex] += 1
            if not later and covered[to] and lag[edge] >= 0 and gap[to] >= 0:
                later = covers[edge] = True
        is_last[vertex] |= ends[vertex] and not later
        covered[vertex] = ends[vertex] or later


@njit(cache=True, nogil=True)
def _divide(  # noqa: PLR0913, PLR0917 - a graph as arrays
    run: Array, through: Array, place: Array, entries: Array, offsets: Array, joins: Array, begins: Array,
    length: Array, order: Array, in_offsets: Array, in_edges: Array, source: Array, lag: Array, gap: Array,
    leaves: Array, is_last: Array,
) -> tuple[int, int]:  # fmt: skip
    """Write the runs, in the order in which they begin, and the joins; return how many there are of both."""
    runs = kept = entered = 0
    for vertex in order:
        if leaves[vertex] == 0 and not is_last[vertex]:
            continue
        first, last = in_offsets[vertex], in_offsets[vertex + 1]
        alone = last - first == 1
        is_join = not alone or leaves[vertex] != 1 or is_last[vertex]
        if is_join:
            place[vertex], joins[kept], offsets[kept] = kept, vertex, entered
            through[vertex] = -2 - kept if last > first else -1
            kept += 1
        for i in range(first, last):
            edge = in_edges[i]
            number = through[source[edge]]
            if place[source[edge]] >= 0:
                number, begins[runs] = runs, place[source[edge]]
                runs += 1
            run[edge] = number
            length[number] += lag[edge]
            if alone:
                through[vertex] = number
                length[number] += gap[vertex]
            if is_join:
                entries[entered] = number
                entered += 1
    offsets[kept] = entered
    return runs, kept


@njit(cache=True, nogil=True)
def _measure(  # noqa: PLR0913, PLR0917 - a graph as arrays
    length: Array, pause: Array, lag: Array, gap: Array, run: Array, run_of_gap: Array, covers: Array, target: Array
) -> bool:
    """Sum up runs and joins; return False where an edge does not cover what it did."""
    for edge in range(len(lag)):
        if covers[edge] and (lag[edge] < 0 or gap[target[edge]] < 0):
            return False
        if run[edge] >= 0:
            length[run[edge]] += lag[edge]
    for vertex in range(len(gap)):
        number = run_of_gap[vertex]
        if number >= 0:
            length[number] += gap[vertex]
        elif number < -1:
            pause[-2 - number] = gap[vertex]
    return True


@njit(cache=True, nogil=True)
def _shorten(  # noqa: PLR0913, PLR0917 - times as arrays
    length: Array, pause: Array, rows: Array, fixed: Array, time: Array, owner: Array, factor: float
) -> None:
    """Take what is saved of some rows of times off the runs and joins that have them."""
    for i in range(len(rows)):
        number, part = owner[rows[i]], time[rows[i]] - fixed[i]
        saved = part - np.int64(np.rint(part * factor))
        if part > 0 and number >= 0:
            length[number] -= saved
        elif part > 0 and number < -1:
            pause[-2 - number] -= saved
