"""Skeleton: a small DAG over the moments that ranks share, whose times are those of the whole graph to the ns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core import traverse
from htagraph.core.arrays import Array, inverse_of
from htagraph.core.contraction import contract as contraction
from htagraph.core.kinds import TRANSFERS
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import Matches
from htagraph.graph.measures.steps import Steps
from htagraph.queries import time_classes
from htagraph.queries.time_classes import END, LAST, Classes, Factors, TimeClasses, WeightedPaths
from htagraph.queries.weights import State

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MatchedMembers", "Skeleton", "contract", "members_of", "skeleton_of"]


def contract(
    job: DependencyGraph | State, classes: Classes | None = None, *, most: int | None = None, keep: Array | None = None
) -> Skeleton:
    """Return the skeleton of a job: a small DAG with the same times at the moments that ranks share.

    These moments are the arrivals at collectives, sends and receives, the JOINs where the last member has arrived,
    their ends, the starts and ends of steps, and the end of the job. Contracting takes time in proportion to the number
    of edges.

    With classes, one skeleton gives the times for any factors, because the weight of each edge is kept by class. A
    change whose effect no factor describes (`fix_straggler`, `set_duration`, `jitter`) makes another graph: contract
    the state after this change.

    Args:
        job: the graph, or a state of it, such as ``hg.what_if(graph).fix_straggler().state``.
        classes: the classes of time that factors can multiply: by name, criteria as `htagraph.whatif.changes.scale`
            takes them, or a state of the same graph to which a factor of 0 switches, such as
            ``hg.what_if(graph).remove_sync().state``. Where selections overlap, the factors of both multiply.
        most: the largest factor that will be used; the skeleton is then smaller than with None, which allows any
            factor.
        keep: other vertices of the graph that stay as terminals: 2 i is the start of activity i, 2 i + 1 its end.

    Returns:
        `Skeleton` with ``times()``, ``makespan_ns()``, ``step_times()``, ``waits()``, ``slack_ns()`` and
        ``critical_edges()``, each for any factors, and ``to_bytes()``. Times are exact: they are summed in parts of a
        ns and rounded once, while a `Scenario` rounds each edge.

    Raises:
        SelectionError: nothing meets the criteria of a class, or two classes cannot be combined.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> skeleton = hg.contract(graph, {"kernels": {"kind": "computation"}})
        >>> len(skeleton.source) < len(graph.edges) / 20
        True
        >>> skeleton.makespan_ns() == hg.replay(graph).makespan_ns
        True
        >>> skeleton.makespan_ns({"kernels": 0.5}) < skeleton.makespan_ns()
        True
    """
    graph = time_classes.state_of(job).graph
    return replace(skeleton_of(time_classes.paths_of(job, classes, most), graph, keep), members=members_of(graph))


def skeleton_of(paths: WeightedPaths, graph: DependencyGraph, keep: Array | None = None) -> Skeleton:
    """Return the skeleton of dependencies that are already divided into classes, with steps but without collectives."""
    terminal = _terminals(graph)
    terminal[np.zeros(0, np.int64) if keep is None else keep] = True
    made = contraction.contract(
        paths.order, paths.source, paths.target, paths.weights, terminal=terminal, bounds=paths.classes.bounds
    )
    return Skeleton(
        paths.origin_ns, paths.vertex[made.vertex], terminal[made.vertex], made.source, made.target, made.weight,
        paths.classes, graph.step_spans, MatchedMembers.none(),
    )  # fmt: skip


def _terminals(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which vertices are moments that ranks share, starts or ends of steps, or `START`, `END`, `LAST`."""
    terminal = np.zeros(graph.vertex_count + 3, np.bool_)
    terminal[-3:] = True
    edges, steps = graph.edges, graph.step_spans
    meets = np.isin(edges.kind, TRANSFERS)
    for vertex in (edges.source[meets], edges.target[meets], steps.start, steps.end, 2 * members_of(graph).activity):
        terminal[vertex] = True
    return terminal


def members_of(graph: DependencyGraph) -> MatchedMembers:
    """Return the members of the matched collectives, and the JOINs that they wait for."""
    matches = Matches.none() if graph.matches is None else graph.matches
    join, feeds = (np.where(each >= 0, 2 * each.astype(np.int64), -1) for each in (matches.join, matches.feeds))
    activity = matches.activity.astype(np.int64)
    rank = graph.activities.rank[activity].astype(np.int64)
    return MatchedMembers(activity, matches.collective.astype(np.int64), rank, join, feeds)


@dataclass(frozen=True, eq=False)
class MatchedMembers:
    """The members of matched collectives, by collective and arrival."""

    activity: npt.NDArray[np.int64]
    collective: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]
    join: npt.NDArray[np.int64]
    """The JOIN that its end waits for, as a number of `Skeleton.vertex`; -1 if it waits for no other member."""
    feeds: npt.NDArray[np.int64]
    """The first JOIN that waits for its arrival, in the same way; -1 if none does."""

    @staticmethod
    def none() -> MatchedMembers:
        """Return those of a job without collectives."""
        return MatchedMembers(*np.zeros((5, 0), np.int64))


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A small DAG over terminals: moments at which ranks meet, steps start or end, or the job ends.

    Between any two terminals, a longest path is as long as in the whole graph, whatever the factors of the classes are.
    A few other vertices stay where the skeleton would need more edges without them. Made by `htagraph.contract`.
    """

    origin_ns: int
    """The moment of the first vertex, `START`, ns on the common clock."""
    vertex: npt.NDArray[np.int64]
    """The graph's number of each vertex, in topological order; `START`, `END` and `LAST` for those that are added."""
    terminal: npt.NDArray[np.bool_]
    """Which vertices are terminals."""
    source: npt.NDArray[np.int32]
    """Of each edge, by (target, source): a position in `vertex`."""
    target: npt.NDArray[np.int32]
    weight: npt.NDArray[np.int64]
    """One row per edge, ns: in column 0 time of no class, then that of each component of `classes`."""
    classes: TimeClasses
    steps: Steps
    members: MatchedMembers

    def __repr__(self) -> str:
        classes = f", classes {', '.join(self.classes.names)}" if self.classes.names else ""
        return f"Skeleton({len(self.vertex):,} vertices, {len(self.source):,} edges{classes})"

    def times(self, factors: Factors | None = None) -> npt.NDArray[np.int64]:
        """Return the moment of each vertex, ns on the common clock.

        Args:
            factors: for each class, the factor of its time, at least 0; 1 for a class that is not named.

        Raises:
            SelectionError: there is no such class.
            ChangeError: a factor is out of range.
        """
        time, unit = self._times(factors)
        return self.origin_ns + time_classes.as_nanoseconds(time, unit)

    def makespan_ns(self, factors: Factors | None = None) -> int:
        """Return the makespan, ns: from the first moment of the job to the last end of a thread or stream.

        Args:
            factors: as in `times`.
        """
        return int(self.times(factors)[self.positions(np.array([END]))[0]]) - self.origin_ns

    def step_times(self, factors: Factors | None = None) -> pd.DataFrame:
        """Return the start and end of each step; the columns are those of `htagraph.step_times`.

        Args:
            factors: as in `times`.
        """
        import pandas as pd

        time, steps = self.times(factors) - self.origin_ns, self.steps
        return pd.DataFrame(steps.columns(*(time[self.positions(vertex)] for vertex in (steps.start, steps.end))))

    def slack_ns(self, factors: Factors | None = None) -> npt.NDArray[np.int64]:
        """Return how much later each vertex may happen without the job ending later, ns; rounded down.

        Args:
            factors: as in `times`.
        """
        time, unit = self._times(factors)
        weight, count = self._lengths(factors), len(self.vertex)
        offsets, leaving = traverse.counting_order(self.source, count)
        last = int(self.positions(np.array([LAST]))[0])
        late = traverse.latest(
            np.arange(count), offsets, self.target[leaving], weight[leaving], np.zeros(count, np.int64), int(time[last])
        )
        return (late - time) // unit

    def critical_edges(self, factors: Factors | None = None) -> npt.NDArray[np.int64]:
        """Return the edges of a longest path from `START` to `END`, in order; one path where several are equally long.

        Args:
            factors: as in `times`.
        """
        time, _ = self._times(factors)
        binding = np.flatnonzero(time[self.source] + self._lengths(factors) == time[self.target])
        into = np.full(len(self.vertex), -1, np.int64)
        into[self.target[binding][::-1]] = binding[::-1]  # on ties the first edge
        at, path = int(self.positions(np.array([END]))[0]), []
        while into[at] >= 0:
            path.append(into[at])
            at = int(self.source[path[-1]])
        return np.array(path[::-1], np.int64)

    def waits(self, factors: Factors | None = None) -> pd.DataFrame:
        """Return how long each member of a collective waits for the last arrival that its end depends on.

        Args:
            factors: as in `times`.

        Returns:
            One row per member, by collective and recorded arrival: ``activity``, ``collective``, ``rank`` (int64),
            ``arrival_us`` (float64, since the job's first activity), ``wait_us`` (float64: 0 for the last one, and for
            members that wait for no other), ``late`` (int64: the activity that arrived last of those it waits for,
            itself if none did later; -1 if it waits for no other member). Time in which the thread of an asynchronous
            send or receive runs other work is part of the wait here.
        """
        import pandas as pd

        time, members = self.times(factors) - self.origin_ns, self.members
        arrival = time[self.positions(2 * members.activity)]
        waiting = members.join >= 0
        wait = np.zeros(len(arrival), np.int64)
        wait[waiting] = np.maximum(time[self.positions(members.join[waiting])] - arrival[waiting], 0)
        late = np.where(waiting & (wait > 0), _last_arrivals(members, arrival), members.activity)
        return pd.DataFrame({
            "activity": members.activity, "collective": members.collective, "rank": members.rank,
            "arrival_us": arrival / 1000, "wait_us": wait / 1000, "late": np.where(waiting, late, -1),
        })  # fmt: skip

    def to_bytes(self) -> bytes:
        """Return the skeleton as few bytes; `htagraph.queries.skeleton_bytes` says in which format."""
        from htagraph.queries.skeleton_bytes import to_bytes

        return to_bytes(self)

    @staticmethod
    def from_bytes(data: bytes) -> Skeleton:
        """Return the skeleton that `to_bytes` wrote.

        Raises:
            HtagraphError: the bytes are no skeleton.
        """
        from htagraph.queries.skeleton_bytes import from_bytes

        return from_bytes(data)

    def positions(self, vertex: Array) -> npt.NDArray[np.int64]:
        """Return the positions of some vertex numbers in `vertex`."""
        order, numbers = self._by_number
        at = np.minimum(np.searchsorted(numbers, vertex), max(len(numbers) - 1, 0))
        if (numbers[at] != vertex).any():
            msg = f"vertex {int(np.asarray(vertex)[numbers[at] != vertex][0])} is not in this skeleton"
            raise KeyError(msg)
        return order[at]

    @cached_property
    def _by_number(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        order = np.argsort(self.vertex, kind="stable")
        return order, self.vertex[order]

    @cached_property
    def _longest(self) -> list[int]:
        """Return the weight of the heaviest path in each component alone, ns."""
        return [int(self._schedule(np.maximum(column, 0)).max(initial=0)) for column in self.weight.T]

    def _lengths(self, factors: Factors | None) -> npt.NDArray[np.int64]:
        return self.weight @ self.classes.numerators(factors)[0]

    def _times(self, factors: Factors | None) -> tuple[npt.NDArray[np.int64], int]:
        """Return (the moment of each vertex since the origin in parts of a ns, how many parts make a ns)."""
        numerators, unit = self.classes.numerators(factors)
        self.classes.refuse_overflow(self._longest, numerators)
        return self._schedule(self.weight @ numerators), unit

    def _schedule(self, weight: Array) -> npt.NDArray[np.int64]:
        count = len(self.vertex)
        nothing = np.zeros(count, np.int64)
        offsets = np.searchsorted(self.target, np.arange(count + 1))
        edges = np.arange(len(self.target))
        return traverse.schedule(
            np.arange(count), offsets, edges, self.source, np.ascontiguousarray(weight), nothing, nothing
        )


def _last_arrivals(members: MatchedMembers, arrival: Array) -> npt.NDArray[np.int64]:
    """Return the activity that arrived last of those that each member waits for; -1 where it waits for none."""
    # the JOINs of a collective follow each other by number: each waits for what the ones before wait for
    rows = np.concatenate([np.flatnonzero(members.feeds >= 0), np.flatnonzero(members.join >= 0)])
    asks = np.arange(len(rows)) >= (members.feeds >= 0).sum()
    join = np.where(asks, members.join[rows], members.feeds[rows])
    # by collective and JOIN, arrivals before those who ask
    order = np.lexsort((asks, join, members.collective[rows]))
    rows, asks = rows[order], asks[order]
    by_arrival, count = np.lexsort((-members.activity, arrival)), len(arrival) + 1  # on ties the first activity
    place = np.where(asks, 0, 1 + inverse_of(by_arrival, len(arrival))[rows])
    latest = np.maximum.accumulate(members.collective[rows] * count + place) % count
    last = np.full(len(arrival), -1, np.int64)
    last[rows[asks]] = members.activity[by_arrival[latest[asks] - 1]]
    return last
