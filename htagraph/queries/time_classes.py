"""The dependencies of a job as one DAG whose weights are divided into classes of time, each with a factor.

A class is a selection, whose time its factor multiplies, or a change that a factor of 0 switches on. Factors are whole
numbers of parts of a ns, so that sums along paths are exact. A vertex `START` precedes every moment without
predecessors, `END` follows every end on a thread or stream that takes part in the job, and `LAST` follows every moment.
The weight of an edge is its lag and the gap at its target.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, joined, marked
from htagraph.core.contraction.net import UNBOUNDED, Weights
from htagraph.core.errors import NothingMeetsError, SelectionError
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import NEVER, ChangeError, State, checked, entries_of, initial, own_time

__all__ = [
    "END", "LAST", "START", "ClassParts", "Classes", "Factors", "Parts", "TimeClasses", "WeightedPaths",
    "as_nanoseconds", "class_parts", "paths_of", "paths_of_parts", "state_of",
]  # fmt: skip

Factors: TypeAlias = Mapping[str, float]
"""By class, the factor that its time is multiplied by; 1 where a class is not named."""

_MAX_DENOMINATOR = 1_000_000
"""Parts of a ns in which times are summed, at most. Chosen: factors of up to six decimals, and fractions such as 1/3,
are exact, others are off by 0.0000005 at most. Doubled, that halves, and so does the longest job (half an hour)."""

Classes: TypeAlias = Mapping[str, "Mapping[str, Any] | State"]
"""By name: the criteria of a selection, as `scale` takes them; or a state, to which a factor of 0 switches."""
_SWITCHED_OFF = 16_000_000_000_000
"""By how much a switch shortens an edge that it takes away, ns. Chosen: 4.4 hours, longer than any path that goes
around it, while the sum of a hundred thousand of them fits into int64; and whole seconds, so that weights of a
recording in µs stay multiples of 1,000 ns, which take fewer bytes. It is a mark: no result depends on its size."""
_ALONE = "contract the state with that change instead, or give the changes as one state"
_NONE: Array = np.zeros(0, np.int64)
START, END, LAST = -1, -2, -3
"""What stands for the vertices that are added, where others have their number in the graph."""


@dataclass(frozen=True)
class TimeClasses:
    """The classes whose time a factor multiplies, and the components of weights that they make.

    Where the selections of several classes overlap, their common time is a component of its own, which is multiplied
    by the factors of all of them: components are the disjoint atoms of all selections.
    """

    names: tuple[str, ...] = ()
    limits: tuple[int, ...] = ()
    """Of each class, the largest factor or `UNBOUNDED`."""
    switches: tuple[bool, ...] = ()
    """Of each class, whether its factor is 1 (as recorded) or 0 (with a change), and nothing between."""
    parts: tuple[tuple[int, ...], ...] = ()
    """Of each component but the first, which is time of no class: the classes that it belongs to."""

    @property
    def bounds(self) -> npt.NDArray[np.int64]:
        """The largest product of factors of each component, or `UNBOUNDED`; that of the first one is not read."""
        limits = [[self.limits[number] for number in part] for part in self.parts]
        return np.array([1, *(UNBOUNDED if UNBOUNDED in part else math.prod(part) for part in limits)], np.int64)

    def numerators(self, factors: Factors | None) -> tuple[npt.NDArray[np.int64], int]:
        """Return (what each component is multiplied by to give parts of a ns, how many of these make a ns).

        Raises:
            SelectionError: there is no such class.
            ChangeError: a factor is negative, not finite or larger than its class allows.
        """
        given = {name: self._factor(name, value) for name, value in (factors or {}).items()}
        values = [given.get(name, Fraction(1)) for name in self.names]
        each = [math.prod((values[number] for number in part), start=Fraction(1)) for part in self.parts]
        unit = min(math.lcm(*(value.denominator for value in each)), _MAX_DENOMINATOR)
        return np.array([unit, *(round(value * unit) for value in each)], np.int64), unit

    def _factor(self, name: str, value: float) -> Fraction:
        if name not in self.names:
            msg = f"no class {name!r}: choose from {', '.join(self.names) or 'none (there are no classes)'}"
            raise SelectionError(msg)
        number = self.names.index(name)
        factor = checked(value, name, most=1e6 if self.limits[number] == UNBOUNDED else self.limits[number])
        if self.switches[number] and factor not in {0.0, 1.0}:
            msg = f"{name}={value}: give 1 (as recorded) or 0 (with that change)"
            raise ChangeError(msg)
        return Fraction(factor).limit_denominator(_MAX_DENOMINATOR)

    def refuse_overflow(self, longest: Sequence[int], numerators: npt.NDArray[np.int64]) -> None:
        """Raise an error if times may not fit into 64 bits."""
        total = sum(length * times for length, times in zip(longest, numerators.tolist(), strict=True))
        if total > 1 << 61:  # twice as many fit into int64
            msg = "these factors make the job too long to be computed exactly: give smaller ones, or fewer decimals"
            raise ChangeError(msg)


def as_nanoseconds(time: npt.NDArray[np.int64], unit: int) -> npt.NDArray[np.int64]:
    """Return times in parts of a ns, `unit` of which make one, as ns: rounded to the nearest, halves up."""
    return time if unit == 1 else (2 * time + unit) // (2 * unit)


@dataclass(eq=False)
class Parts:
    """Some numbers, each divided into what belongs to no class and amounts that belong to classes."""

    rest: npt.NDArray[np.int64]
    """What belongs to no class, ns; `NEVER` for an edge that constrains nothing."""
    mask: npt.NDArray[np.int64]
    """The classes that multiply `amount`, a bit for each."""
    amount: npt.NDArray[np.int64]
    """ns."""
    also: list[tuple[Array, int, Array]] = field(default_factory=list)
    """Other amounts: (positions, mask, amounts)."""
    divided: set[int] = field(default_factory=set)
    """Positions of which a change takes more than other classes multiply."""
    written: list[Array] = field(default_factory=list)
    """Positions, or masks, of the numbers that `fix` and `let` set."""

    @staticmethod
    def of(values: Array, *, classed: bool = True) -> Parts:
        """Return numbers of which nothing belongs to a class yet, or ever."""
        none = np.zeros(len(values), np.int64) if classed else np.broadcast_to(np.int64(0), len(values))
        return Parts(values.astype(np.int64), none, none.copy() if classed else none)

    def multiply(self, rows: Array, amount: Array, number: int) -> None:
        """Let the factor of a class multiply an amount of some numbers."""
        new = self.mask[rows] == 0
        self.amount[rows] = np.where(new, amount, self.amount[rows])
        self.rest[rows] -= np.where(new, amount, 0)
        self.mask[rows] |= np.int64(1) << number

    def fix(self, rows: Array, value: Array | int) -> None:
        """Let some numbers, by position or mask, be others that no class multiplies."""
        self.let(rows, value)
        if self.mask.flags.writeable:
            self.amount[rows], self.mask[rows] = 0, 0

    def let(self, rows: Array, rest: Array | int) -> None:
        """Let what belongs to no class be other numbers, by position or mask."""
        self.rest[rows] = rest
        self.written.append(rows)

    def restored(self, before: Array) -> tuple[Array, Array]:
        """Return (the positions that were written, what is there), and write what was there before."""
        written = (np.flatnonzero(each) if each.dtype == np.bool_ else each for each in self.written)
        rows = np.unique(np.concatenate([_NONE, *written]))
        rest = self.rest[rows]
        self.rest[rows] = before[rows]
        self.written.clear()
        return rows, rest

    def switch(self, before: Array, after: Array, number: int) -> None:
        """Let some numbers be others where the factor of a class is 0."""
        there, then = before > NEVER, after > NEVER
        gone, come, other = (np.flatnonzero(rows) for rows in (there & ~then, ~there & then, there & then))
        self.rest[gone] -= _SWITCHED_OFF
        self.also.append((gone, 1 << number, np.full(len(gone), _SWITCHED_OFF)))
        if (self.rest[come] > NEVER).any():
            msg = f"two changes add the same dependency: {_ALONE}"
            raise SelectionError(msg)
        self.rest[come] = after[come]
        self.also.append((come, 1 << number, np.full(len(come), -_SWITCHED_OFF)))
        self._let_fall(other, before[other] - after[other], number)

    def _let_fall(self, rows: Array, fall: Array, number: int) -> None:
        """Let numbers be less by `fall` where the factor of a class is 0."""
        rows, fall = rows[fall != 0], fall[fall != 0]
        new = self.amount[rows] == 0
        first, taken = rows[new], fall[new]
        self.amount[first], self.mask[first] = taken, 0
        self.rest[first] -= taken
        rows, more = rows[~new], fall[~new] - self.amount[rows[~new]]
        if (more < 0).any() or self.divided.intersection(rows.tolist()):
            msg = f"a change leaves some of the time that another class multiplies: {_ALONE}"
            raise SelectionError(msg)
        rest, more = rows[more > 0], more[more > 0]
        self.rest[rest] -= more
        self.also.append((rest, 1 << number, more))
        self.divided.update(rest.tolist())
        for each in (first, rows):
            self.mask[each] |= np.int64(1) << number

    def amounts(self) -> tuple[Array, Array, Array]:
        """Return all amounts that are not 0 as (position, mask, amount)."""
        rows = np.flatnonzero(self.amount)
        every = [(rows, self.mask[rows], self.amount[rows])]
        if not self.also:
            return every[0]
        every += [(rows, np.full(len(rows), mask), amount) for rows, mask, amount in self.also]
        position, masks, amount = joined(every, 3)
        some = amount != 0
        return position[some], masks[some], amount[some]


@dataclass(frozen=True, eq=False)
class ClassParts:
    """The weights of a job as parts."""

    source: npt.NDArray[np.int32]
    """Of the edges: those of the graph, then those that switches add."""
    target: npt.NDArray[np.int32]
    lag: Parts
    """By edge."""
    gap: Parts
    """By vertex."""
    head: Parts
    """By vertex: its moment, ns since the origin; `NEVER` where predecessors decide it."""
    switches: tuple[bool, ...]
    """Of each class, whether it is a state."""
    waits: Edges | None = None
    """More edges, if a reading of the recording adds some."""
    added: tuple[Array, Array, Array] = (_NONE, _NONE, _NONE)
    """Of the lags of these edges, the first columns of `Parts`, ns."""

    def joined(self) -> ClassParts:
        """Return the weights with the edges that a reading adds behind the others."""
        if self.waits is None:
            return self
        rest, mask, amount = map(
            np.concatenate, zip((self.lag.rest, self.lag.mask, self.lag.amount), self.added, strict=True)
        )
        source, target = np.append(self.source, self.waits.source), np.append(self.target, self.waits.target)
        return replace(self, source=source, target=target, lag=Parts(rest, mask, amount, self.lag.also), waits=None)


def class_parts(state: State, classes: Classes, *, may_lack: bool = False) -> ClassParts:
    """Return which part of a state's weights belongs to which classes; with `may_lack`, some may have no time."""
    states = {number: what for number, what in enumerate(classes.values()) if isinstance(what, State)}
    graph = state.graph
    if any(each.graph.vertex_count != graph.vertex_count for each in states.values()):
        msg = "a class is the state of another graph: give states of the graph that is contracted"
        raise SelectionError(msg)
    keys = np.unique(np.concatenate([_keys(each) for each in (state, *states.values())])) if states else None
    lag = Parts.of(np.maximum(state.lag, NEVER) if keys is None else _lags(state, keys))
    gap, head = Parts.of(state.gap), Parts.of(_heads(state))
    at = np.arange(len(state.lag)) if keys is None else np.searchsorted(keys, _keys(state))
    for number, what in enumerate(classes.values()):
        if isinstance(what, State):
            continue
        with suppress(*([NothingMeetsError] if may_lack else [])):
            time = own_time(state, dict(what))
            lag.multiply(at[time.edges], np.maximum(state.lag[time.edges] - time.fixed, 0), number)
            gap.multiply(time.gaps, np.maximum(state.gap[time.gaps], 0), number)
    source, target = graph.edges.source, graph.edges.target
    if keys is not None:
        width = np.int64(max(graph.vertex_count, 1))
        source, target = (keys // width).astype(np.int32), (keys % width).astype(np.int32)
        for number, changed in states.items():
            lag.switch(_lags(state, keys), _lags(changed, keys), number)
            gap.switch(state.gap, changed.gap, number)
            head.switch(_heads(state), _heads(changed), number)
        _refuse_orphans(state, states, keys)
    return ClassParts(source, target, lag, gap, head, tuple(number in states for number in range(len(classes))))


def _keys(state: State) -> npt.NDArray[np.int64]:
    """Return a number for the two vertices of each edge; they ascend."""
    edges = state.graph.edges
    return edges.source * np.int64(max(state.graph.vertex_count, 1)) + edges.target


def _lags(state: State, keys: Array) -> npt.NDArray[np.int64]:
    lag = np.full(len(keys), NEVER, np.int64)
    lag[np.searchsorted(keys, _keys(state))] = np.maximum(state.lag, NEVER)
    return lag


def _heads(state: State) -> npt.NDArray[np.int64]:
    graph = state.graph
    return np.where(np.diff(graph.in_offsets) == 0, state.head - graph.origin_ns, NEVER)


def _refuse_orphans(state: State, states: Mapping[int, State], keys: Array) -> None:
    """Raise an error if two changes together take all predecessors from a vertex, which neither does alone."""
    if len(states) < 2:
        return
    target = keys % np.int64(max(state.graph.vertex_count, 1))
    before = _lags(state, keys) > NEVER
    gone = [before & (_lags(changed, keys) <= NEVER) for changed in states.values()]
    left = marked(target[before & ~np.any(gone, axis=0)], state.graph.vertex_count)
    by = np.zeros(state.graph.vertex_count, np.int64)
    for each in gone:
        by[np.unique(target[each])] += 1
    if ((by > 1) & ~left).any():
        msg = f"two changes together leave a moment without anything that it follows: {_ALONE}"
        raise SelectionError(msg)


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


def paths_of(
    job: DependencyGraph | State, classes: Classes | None = None, most: int | None = None, *, may_lack: bool = False
) -> WeightedPaths:
    """Return the dependencies of a job as one DAG with classed weights; `may_lack` is that of `class_parts`."""
    state, classes = state_of(job), classes or {}
    _refuse_many(classes)
    return paths_of_parts(state, class_parts(state, classes, may_lack=may_lack), tuple(classes), most)


def paths_of_parts(state: State, parts: ClassParts, names: tuple[str, ...], most: int | None = None) -> WeightedPaths:
    """Return the dependencies of a job as one DAG, with weights that are already divided into classes.

    Each class has a name and a largest factor: any if `most` is None.
    """
    _refuse_many(names)
    parts = parts.joined()
    limits = tuple(1 if switch else UNBOUNDED if most is None else int(most) for switch in parts.switches)
    source, target, rest, amounts = _edges(parts, state.graph.vertex_count)
    masks = np.unique(amounts[1])  # few; to have their places from `unique` too would sort all
    each = tuple(tuple(number for number in range(len(names)) if mask >> number & 1) for mask in masks.tolist())
    weights = _weights(rest, amounts[0], np.searchsorted(masks, amounts[1]).astype(np.int16) + 1, amounts[2])
    made = TimeClasses(names, limits, parts.switches, each)
    same_edges = len(parts.source) == len(state.graph.edges) and not any(parts.switches)
    return _with_ends(state, source, target, weights, made, same_edges=same_edges)


def _refuse_many(classes: Sized) -> None:
    if len(classes) > 62:  # a bit of a mask each
        msg = f"{len(classes)} classes: give at most 62"
        raise SelectionError(msg)


def _edges(parts: ClassParts, count: int) -> tuple[Array, Array, Array, tuple[Array, Array, Array]]:
    """Return the edges of the graph and those from `START`: (sources, targets, rests, their amounts as a tuple)."""
    from htagraph.core.traverse import counting_order

    alive = parts.lag.rest > NEVER
    every = bool(alive.all())
    live: Any = slice(None) if every else np.flatnonzero(alive)
    heads = np.flatnonzero(parts.head.rest > NEVER)
    source = np.concatenate([parts.source[live], np.full(len(heads), count, np.int32)])
    target = np.concatenate([parts.target[live], heads.astype(np.int32)])
    rest = np.concatenate([parts.lag.rest[live] + parts.gap.rest[parts.target[live]], parts.head.rest[heads]])
    edge, mask, amount = parts.lag.amounts()
    at_head, head_mask, head_amount = parts.head.amounts()
    vertex, gap_mask, gap_amount = parts.gap.amounts()
    several, into = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(vertex):
        offsets, entering = counting_order(target[: len(target) - len(heads)], count)
        several = np.diff(offsets)[vertex]
        into = entries_of(offsets, entering, vertex)
    position, masks, amounts = joined(
        [
            (edge if every else np.searchsorted(live, edge), mask, amount),
            (into, np.repeat(gap_mask, several), np.repeat(gap_amount, several)),
            (len(target) - len(heads) + np.searchsorted(heads, at_head), head_mask, head_amount),
        ],
        3,
    )
    return source, target, rest, (position, masks, amounts)


def _weights(rest: Array, edge: Array, component: Array, amount: Array) -> Weights:
    from htagraph.core.traverse import counting_order

    offsets, order = counting_order(edge, len(rest))
    return Weights(rest, offsets, component[order], amount[order])


def _with_ends(
    state: State, source: Array, target: Array, weights: Weights, classes: TimeClasses, *, same_edges: bool
) -> WeightedPaths:
    from htagraph.core.contraction.contract import relevant_ends
    from htagraph.core.traverse import counting_order, topological_order

    graph, count = state.graph, state.graph.vertex_count
    offsets, leaving = counting_order(source, count + 1)
    if same_edges:
        order = np.concatenate([np.array([count], np.int32), graph.topological_order])
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
    more, (end, after) = len(last) + len(final), np.array([[count + 1], [count + 2]], np.int32)
    return WeightedPaths(
        graph.origin_ns,
        np.concatenate([np.arange(count), [START, END, LAST]]),
        np.concatenate([order, end, after]),
        np.concatenate([source, last, final]),
        np.concatenate([target, np.repeat(end, len(last)), np.repeat(after, len(final))]),
        Weights(
            np.concatenate([weights.base, np.zeros(more, np.int64)]),
            np.concatenate([weights.offsets, np.full(more, weights.offsets[-1])]),
            weights.component, weights.amount,
        ),
        classes,
    )  # fmt: skip
