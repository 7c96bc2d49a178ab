"""Contraction of a job's graph to its skeleton, in one piece or rank by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.contraction import contract as contraction
from htagraph.core.contraction.vectors import Weights, sparse
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import TRANSFERS
from htagraph.core.traverse import counting_order, topological_order
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import Steps
from htagraph.queries.skeleton import Members, Skeleton
from htagraph.queries.time_classes import Classes, TimeClasses, WeightedPaths, paths_of, state_of
from htagraph.queries.weights import State

__all__ = ["contract", "joined", "members_of", "rank_parts", "skeleton_of", "terminal_skeleton"]


def contract(
    job: DependencyGraph | State, classes: Classes | None = None, *, most: int | None = None, keep: Array | None = None
) -> Skeleton:
    """Return the skeleton of a job: a small DAG with the same times at the moments that ranks share.

    These moments are the arrivals at collectives, sends and receives, the JOINs where the last member has arrived,
    their ends, the starts and ends of steps, and the end of the job. Its time is in proportion to the number of edges.

    With classes, one skeleton gives the times of any factors: the weight of each edge is kept by class. A change whose
    effect no factor describes (`fix_straggler`, `set_duration`, `jitter`) makes another graph: contract its state.

    Args:
        job: the graph, or a state of it, such as ``hg.what_if(graph).fix_straggler().state``.
        classes: by name, whose time a factor multiplies: criteria as `htagraph.whatif.changes.scale` takes them, or a
            state of the same graph to which a factor of 0 switches, such as
            ``hg.what_if(graph).remove_sync().state``. Where selections overlap, the factors of both multiply.
        most: the largest factor that will be asked for; the skeleton is smaller than if any may be (None).
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
    graph = state_of(job).graph
    return replace(
        terminal_skeleton(job, classes, most=most, keep=keep), steps=graph.step_spans, members=members_of(graph)
    )


def terminal_skeleton(
    job: DependencyGraph | State, classes: Classes | None = None, *, most: int | None = None, keep: Array | None = None
) -> Skeleton:
    """Return what `contract` does, without the steps of the job and the members of its collectives.

    Args:
        job: as in `contract`.
        classes: as in `contract`.
        most: as in `contract`.
        keep: as in `contract`.
    """
    state = state_of(job)
    terminal = _terminals(state.graph)
    terminal[np.zeros(0, np.int64) if keep is None else keep] = True
    return _contracted(paths_of(state, classes, most), terminal)


def skeleton_of(paths: WeightedPaths, graph: DependencyGraph) -> Skeleton:
    """Return the skeleton of dependencies that are already divided into classes, with steps but without collectives.

    Args:
        paths: the dependencies, such as those of another reading of the recording.
        graph: the graph whose vertices they connect.
    """
    return replace(_contracted(paths, _terminals(graph)), steps=graph.step_spans)


def rank_parts(
    job: DependencyGraph | State, classes: Classes | None = None, *, most: int | None = None
) -> list[Skeleton]:
    """Return the skeleton of each rank alone, and of what is between ranks; `joined` makes one of them.

    The moments at which dependencies lead from or to another rank, or a JOIN, are terminals too.

    Args:
        job: as in `contract`.
        classes: as in `contract`.
        most: as in `contract`.
    """
    state = state_of(job)
    graph, paths = state.graph, paths_of(state, classes, most)
    rank = np.append(np.repeat(graph.activities.rank, 2), [-1, -1, -1])
    added = paths.vertex < 0
    ends = np.where(added[paths.source], rank[paths.target], rank[paths.source])
    other = np.where(added[paths.target], ends, rank[paths.target])
    own = np.where(ends == other, ends, -1)
    terminal = _terminals(graph)
    across = own < 0
    terminal[paths.source[across]] = True
    terminal[paths.target[across]] = True
    order = np.argsort(own, kind="stable")
    bounds = np.searchsorted(own[order], [-1, *graph.ranks, np.iinfo(np.int32).max])
    chosen = [order[first:last] for first, last in pairwise(bounds.tolist())]
    steps, members = graph.step_spans, members_of(graph)
    parts = [_contracted(*_of_edges(paths, terminal, edges)) for edges in chosen]
    return [
        replace(part, steps=_where(steps, steps.rank == each), members=_where(members, members.rank == each))
        for part, each in zip(parts, (-1, *graph.ranks), strict=True)
    ]


def joined(parts: Sequence[Skeleton]) -> Skeleton:
    """Return the skeleton of a whole job from those of its parts, such as of its ranks and of what is between them.

    Its terminals are the steps, the collectives' moments, and the ends; other vertices that parts have in common stay
    only where leaving them out would take more edges.

    Args:
        parts: skeletons with one origin and the same classes; vertices with one number are one vertex.

    Raises:
        SelectionError: the parts have different origins or classes, or there are none.
    """
    if not parts or len({part.origin_ns for part in parts}) > 1 or len({part.classes.names for part in parts}) > 1:
        msg = "give the parts of one job: skeletons with the same origin and the same classes"
        raise SelectionError(msg)
    classes, weight = _common(parts)
    vertex, inverse = np.unique(np.concatenate([part.vertex for part in parts]), return_inverse=True)
    number = np.split(inverse.ravel().astype(np.int32), np.cumsum([len(part.vertex) for part in parts])[:-1])
    source, target = (
        np.concatenate([each[getattr(part, end)] for each, part in zip(number, parts, strict=True)])
        for end in ("source", "target")
    )
    terminal = np.zeros(len(vertex), np.bool_)
    for each, part in zip(number, parts, strict=True):
        terminal[each[part.terminal]] = True
    offsets, leaving = counting_order(source, len(vertex))
    order = topological_order(offsets, target[leaving])
    if len(order) < len(vertex):
        msg = "the parts together have a cycle: they are not of one job"
        raise SelectionError(msg)
    made = _contracted(
        WeightedPaths(parts[0].origin_ns, vertex, order, source, target, sparse(weight), classes), terminal
    )
    return replace(
        made, steps=_together([part.steps for part in parts], "step", "rank"),
        members=_together([part.members for part in parts], "rank", "collective"),
    )  # fmt: skip


def _common(parts: Sequence[Skeleton]) -> tuple[TimeClasses, npt.NDArray[np.int64]]:
    """Return the components of all parts, and the weights of all edges with a column for each."""
    every = sorted({each for part in parts for each in part.classes.parts})
    rows = []
    for part in parts:
        weight = np.zeros((len(part.source), 1 + len(every)), np.int64)
        weight[:, [0, *(1 + every.index(each) for each in part.classes.parts)]] = part.weight
        rows.append(weight)
    return replace(parts[0].classes, parts=tuple(every)), np.concatenate(rows)


def _contracted(paths: WeightedPaths, terminal: Array) -> Skeleton:
    """Return the skeleton of a DAG, without steps and members."""
    made = contraction.contract(
        paths.order, paths.source, paths.target, paths.weights, terminal=terminal, bounds=paths.classes.bounds
    )
    none = np.zeros(0, np.int64)
    return Skeleton(
        paths.origin_ns, paths.vertex[made.vertex], terminal[made.vertex], made.source, made.target, made.weight,
        paths.classes, Steps(none, none, none, none), Members(none, none, none, none, none),
    )  # fmt: skip


def _of_edges(paths: WeightedPaths, terminal: Array, edges: Array) -> tuple[WeightedPaths, npt.NDArray[np.bool_]]:
    """Return (the DAG of some edges and their vertices, which of these are terminals)."""
    count = len(paths.vertex)
    place = np.empty(count, np.int32)
    place[paths.order] = np.arange(count, dtype=np.int32)
    used = np.unique(place[np.concatenate([paths.source[edges], paths.target[edges], np.arange(count - 3, count)])])
    used = paths.order[used]
    number = np.zeros(count, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    weights = paths.weights
    several = np.diff(weights.offsets)[edges]
    amounts = np.repeat(weights.offsets[edges] - np.cumsum(several) + several, several) + np.arange(several.sum())
    part = replace(
        paths, vertex=paths.vertex[used], order=np.arange(len(used), dtype=np.int32),
        source=number[paths.source[edges]], target=number[paths.target[edges]],
        weights=Weights(
            weights.base[edges], np.concatenate([[0], np.cumsum(several)]), weights.component[amounts],
            weights.amount[amounts],
        ),
    )  # fmt: skip
    return part, terminal[used]


def _terminals(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which vertices are moments that ranks share, starts or ends of steps, or `START`, `END`, `LAST`."""
    terminal = np.zeros(graph.vertex_count + 3, np.bool_)
    terminal[-3:] = True
    edges, steps = graph.edges, graph.step_spans
    meets = np.isin(edges.kind, TRANSFERS)
    for vertex in (edges.source[meets], edges.target[meets], steps.start, steps.end, 2 * members_of(graph).activity):
        terminal[vertex] = True
    return terminal


def members_of(graph: DependencyGraph) -> Members:
    """Return the members of the matched collectives, and the JOINs that they wait for."""
    matches = graph.matches
    if matches is None:
        none = np.zeros(0, np.int64)
        return Members(none, none, none, none, none)
    join, feeds = (np.where(each >= 0, 2 * each.astype(np.int64), -1) for each in (matches.join, matches.feeds))
    activity = matches.activity.astype(np.int64)
    rank = graph.activities.rank[activity].astype(np.int64)
    return Members(activity, matches.collective.astype(np.int64), rank, join, feeds)


Columns = TypeVar("Columns", Steps, Members)


def _where(columns: Columns, rows: Array) -> Columns:
    return type(columns)(*(getattr(columns, each.name)[rows] for each in fields(columns)))


def _together(parts: Sequence[Columns], *by: str) -> Columns:
    """Return the rows of all parts, ordered by columns, the last of which counts most."""
    names = [each.name for each in fields(parts[0])]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.lexsort([columns[name] for name in by])
    return type(parts[0])(*(columns[name][order] for name in names))
