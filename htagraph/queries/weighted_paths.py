"""The dependencies of a job as one DAG with a beginning and ends, in which paths are as long as moments are late.

A vertex `START` precedes every moment without predecessors, `END` follows every end on a thread or stream that takes
part in the job, and `LAST` follows every moment. The weight of an edge is its lag and the gap at its target, divided
into classes of time.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.contraction.vectors import UNBOUNDED, Weights
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.class_parts import Classes, ClassParts, class_parts
from htagraph.queries.time_classes import Factors, TimeClasses, as_nanoseconds
from htagraph.queries.weights import NEVER, State, initial

__all__ = [
    "END", "LAST", "START", "WeightedPaths", "amounts_of", "paths_of", "paths_of_parts", "replay_with_factors",
    "state_of", "times_on_paths",
]  # fmt: skip


START, END, LAST = -1, -2, -3
"""What stands for the vertices that are added, where others have their number in the graph."""
_MAX_CLASSES = 62
"""How many classes there may be at most: a bit of a mask each. With more than ten, skeletons are large anyway."""


@dataclass(frozen=True, eq=False)
class WeightedPaths:
    """A DAG with classed weights. Behind the vertices of the graph come `START`, `END` and `LAST`."""

    origin_ns: int
    """The moment of `START`, ns on the common clock."""
    vertex: npt.NDArray[np.int64]
    """The number of each vertex in the graph, or `START`, `END`, `LAST`."""
    order: npt.NDArray[np.int32]
    """All vertices, each after its predecessors."""
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    weights: Weights
    classes: TimeClasses


def state_of(job: DependencyGraph | State) -> State:
    """Return the weights of a job: as recorded, or as a scenario changed them."""
    return job if isinstance(job, State) else initial(job)


def paths_of(job: DependencyGraph | State, classes: Classes | None = None, most: int | None = None) -> WeightedPaths:
    """Return the dependencies of a job as one DAG with classed weights.

    Args:
        job: the graph, or a state of it.
        classes: by name, whose time a factor multiplies.
        most: the largest factor of each class; any if None.

    Raises:
        SelectionError: nothing meets the criteria of a class, or two classes cannot be combined.
    """
    state, classes = state_of(job), classes or {}
    _refuse_many(classes)
    return paths_of_parts(state, class_parts(state, classes), tuple(classes), most)


def paths_of_parts(state: State, parts: ClassParts, names: tuple[str, ...], most: int | None = None) -> WeightedPaths:
    """Return the dependencies of a job as one DAG, with weights that are already divided into classes.

    Args:
        state: the weights of the job.
        parts: which part of them belongs to which classes; edges behind those of the state's graph are added ones.
        names: those of the classes.
        most: the largest factor of each class; any if None.

    Raises:
        SelectionError: there are too many classes, or the edges have a cycle.
    """
    _refuse_many(names)
    limits = tuple(1 if switch else UNBOUNDED if most is None else int(most) for switch in parts.switches)
    source, target, rest, amounts = _edges(parts, state.graph.vertex_count)
    masks, component = np.unique(amounts[1], return_inverse=True)
    each = tuple(tuple(number for number in range(len(names)) if mask >> number & 1) for mask in masks.tolist())
    weights = _weights(rest, amounts[0], component.ravel() + 1, amounts[2])
    made = TimeClasses(names, limits, parts.switches, each)
    same_edges = len(parts.source) == len(state.graph.edges) and not any(parts.switches)
    return _with_ends(state, source, target, weights, made, same_edges=same_edges)


def _refuse_many(classes: Sized) -> None:
    if len(classes) > _MAX_CLASSES:
        msg = f"{len(classes)} classes: give at most {_MAX_CLASSES}"
        raise SelectionError(msg)


def _edges(parts: ClassParts, count: int) -> tuple[Array, Array, Array, tuple[Array, Array, Array]]:
    """Return the edges of the graph and those from `START`: (sources, targets, rests, their amounts as a tuple)."""
    from htagraph.core.traverse import counting_order

    live = np.flatnonzero(parts.lag.rest > NEVER)
    heads = np.flatnonzero(parts.head.rest > NEVER)
    source = np.concatenate([parts.source[live], np.full(len(heads), count, np.int32)])
    target = np.concatenate([parts.target[live], heads.astype(np.int32)])
    rest = np.concatenate([parts.lag.rest[live] + parts.gap.rest[parts.target[live]], parts.head.rest[heads]])
    edge, mask, amount = parts.lag.amounts()
    at_head, head_mask, head_amount = parts.head.amounts()
    vertex, gap_mask, gap_amount = parts.gap.amounts()
    several, into = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(vertex):
        offsets, entering = counting_order(target[: len(live)], count)
        several = np.diff(offsets)[vertex]
        into = entering[np.repeat(offsets[vertex], several) + _ranges(several)]
    return (
        source,
        target,
        rest,
        (
            np.concatenate([np.searchsorted(live, edge), into, len(live) + np.searchsorted(heads, at_head)]),
            np.concatenate([mask, np.repeat(gap_mask, several), head_mask]),
            np.concatenate([amount, np.repeat(gap_amount, several), head_amount]),
        ),
    )


def _ranges(count: Array) -> npt.NDArray[np.int64]:
    """Return the concatenated ranges 0 … n - 1 for each n."""
    return np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)


def _weights(rest: Array, edge: Array, component: Array, amount: Array) -> Weights:
    order = np.argsort(edge, kind="stable")
    offsets = np.zeros(len(rest) + 1, np.int64)
    np.cumsum(np.bincount(edge, minlength=len(rest)), out=offsets[1:])
    return Weights(rest, offsets, component[order].astype(np.int16), amount[order])


def _with_ends(
    state: State, source: Array, target: Array, weights: Weights, classes: TimeClasses, *, same_edges: bool
) -> WeightedPaths:
    from htagraph.core.contraction.collapse import relevant_ends
    from htagraph.core.traverse import counting_order, topological_order

    graph, count = state.graph, state.graph.vertex_count
    offsets, leaving = counting_order(source, count + 1)
    if same_edges:
        order = np.concatenate([[count], graph.topological_order]).astype(np.int32)
    else:  # an edge that is added may agree with no order of the others
        order = topological_order(offsets, target[leaving])
    if len(order) < count + 1:
        msg = "the changes together make an activity wait for itself: give them one by one"
        raise SelectionError(msg)
    ends = np.zeros(count + 1, np.bool_)
    ends[1:count:2] = graph.awake
    ends[count] = True  # without any activity, the job ends as it starts
    every = np.ones(count + 1, np.bool_)
    last, final = (
        np.flatnonzero(relevant_ends(order, offsets, leaving, target, weights, classes.bounds, each)).astype(np.int32)
        for each in (ends, every)
    )
    more = len(last) + len(final)
    return WeightedPaths(
        graph.origin_ns,
        np.concatenate([np.arange(count), [START, END, LAST]]),
        np.concatenate([order, [count + 1, count + 2]]).astype(np.int32),
        np.concatenate([source, last, final]),
        np.concatenate([target, np.full(len(last), count + 1), np.full(len(final), count + 2)]).astype(np.int32),
        Weights(
            np.concatenate([weights.base, np.zeros(more, np.int64)]),
            np.concatenate([weights.offsets, np.full(more, weights.offsets[-1])]),
            weights.component, weights.amount,
        ),
        classes,
    )  # fmt: skip


def replay_with_factors(job: DependencyGraph | State, classes: Classes, factors: Factors) -> npt.NDArray[np.int64]:
    """Return the moment of each vertex with the time of classes multiplied, ns on the common clock.

    Sums are exact: times are added in parts of a ns and rounded once, at the end. `scale` rounds every edge instead, so
    that the predicted graph is one in whole ns; its moments differ by up to half a ns for each edge of a path.

    Args:
        job: the graph, or a state of it.
        classes: by name, the criteria of a selection or a state.
        factors: by name, the factor; 1 where a class is not named.

    Raises:
        SelectionError: there is no such class, or nothing meets the criteria of one.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> time = replay_with_factors(graph, {"kernels": {"kind": "computation"}}, {"kernels": 1.0})
        >>> bool((time == graph.time).all())
        True
    """
    paths = paths_of(job, classes)
    return times_on_paths(paths, factors)[: state_of(job).graph.vertex_count]


def times_on_paths(paths: WeightedPaths, factors: Factors | None = None) -> npt.NDArray[np.int64]:
    """Return the moment of each vertex, ns on the common clock."""
    from htagraph.core import traverse

    count = len(paths.vertex)
    offsets, entering = traverse.counting_order(paths.target, count)
    nothing = np.zeros(count, np.int64)
    numerators, unit = paths.classes.numerators(factors)

    def latest(weight: Array) -> npt.NDArray[np.int64]:
        return traverse.schedule(paths.order, offsets, entering, paths.source, weight, nothing, nothing)

    vectors = amounts_of(paths.weights)
    if len(numerators) > 1:
        longest = [int(latest(np.maximum(column, 0)).max(initial=0)) for column in vectors.T]
        paths.classes.refuse_overflow(longest, numerators)
    return paths.origin_ns + as_nanoseconds(latest(vectors @ numerators), unit)


def amounts_of(weights: Weights) -> npt.NDArray[np.int64]:
    """Return weights as vectors: one row per edge, one column per component."""
    count = len(weights.base)
    size = 1 + int(weights.component.max(initial=0))
    out = np.zeros((count, size), np.int64)
    out[:, 0] = weights.base
    np.add.at(out, (np.repeat(np.arange(count), np.diff(weights.offsets)), weights.component), weights.amount)
    return out
