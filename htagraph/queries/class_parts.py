"""Which part of each lag, gap and head belongs to which classes of time, so that a product of factors multiplies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.queries.weights import NEVER, State, own_time

__all__ = ["SWITCHED_OFF", "ClassParts", "Classes", "Parts", "class_parts"]

Classes: TypeAlias = Mapping[str, "Mapping[str, Any] | State"]
"""By name: the criteria of a selection, as `scale` takes them; or a state, to which a factor of 0 switches."""

SWITCHED_OFF = 16_000_000_000_000
"""By how much a switch shortens an edge that it takes away, ns. Chosen: 4.4 hours, longer than any path that goes
around it, while the sum of a hundred thousand of them fits into int64; and whole seconds, so that weights of a
recording in µs stay multiples of 1,000 ns, which take fewer bytes. It is a mark: no result depends on its size."""
_ALONE = "contract the state with that change instead, or give the changes as one state"


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

    @staticmethod
    def of(values: Array) -> Parts:
        """Return numbers of which nothing belongs to a class yet."""
        return Parts(values.astype(np.int64), np.zeros(len(values), np.int64), np.zeros(len(values), np.int64))

    def multiply(self, rows: Array, amount: Array, number: int) -> None:
        """Let the factor of a class multiply an amount of some numbers."""
        new = self.mask[rows] == 0
        self.amount[rows] = np.where(new, amount, self.amount[rows])
        self.rest[rows] -= np.where(new, amount, 0)
        self.mask[rows] |= np.int64(1) << number

    def switch(self, before: Array, after: Array, number: int) -> None:
        """Let some numbers be others where the factor of a class is 0.

        Raises:
            SelectionError: of a number that another class multiplies, something else than all or nothing would be left.
        """
        there, then = before > NEVER, after > NEVER
        gone, come, other = (np.flatnonzero(rows) for rows in (there & ~then, ~there & then, there & then))
        self.rest[gone] -= SWITCHED_OFF
        self.also.append((gone, 1 << number, np.full(len(gone), SWITCHED_OFF)))
        if (self.rest[come] > NEVER).any():
            msg = f"two changes add the same dependency: {_ALONE}"
            raise SelectionError(msg)
        self.rest[come] = after[come]
        self.also.append((come, 1 << number, np.full(len(come), -SWITCHED_OFF)))
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
        every += [(rows, np.full(len(rows), mask), amount) for rows, mask, amount in self.also]
        position, masks, amount = (np.concatenate(column).astype(np.int64) for column in zip(*every, strict=True))
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


def class_parts(state: State, classes: Classes) -> ClassParts:
    """Return which part of a state's weights belongs to which classes.

    Raises:
        SelectionError: nothing meets the criteria of a class, or two classes cannot be combined.
    """
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
    left = np.zeros(state.graph.vertex_count, np.bool_)
    left[target[before & ~np.any(gone, axis=0)]] = True
    by = np.zeros(state.graph.vertex_count, np.int64)
    for each in gone:
        by[np.unique(target[each])] += 1
    if ((by > 1) & ~left).any():
        msg = f"two changes together leave a moment without anything that it follows: {_ALONE}"
        raise SelectionError(msg)
