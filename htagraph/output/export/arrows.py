"""The arrows of a recorded file: which of their ends belong together, and which of these Perfetto can draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.trace.columns import Interner
from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.kineto.from_blocks import BlockColumns
from htagraph.trace.kineto.scan.events import (
    FLAGS,
    ID,
    ID_IS_NUMBER,
    ID_IS_SPAN,
    PHASE,
    START,
    START_ABSENT,
    START_SLIP,
)  # fmt: skip
from htagraph.trace.kineto.scan.scanner import Block, span_text
from htagraph.trace.kineto.times import FractionStyle, decimal_us, numbers_to_ns, text_to_ns

__all__ = ["FLOWS", "ArrowEnds", "Arrows", "start_ns"]


_Met: TypeAlias = Callable[[Array, Array], Array]
FLOWS = ("s", "t", "f")
"""Phases of the ends of arrows."""
_NOT_OTHERS = ("X", "M", *FLOWS)


@dataclass(frozen=True)
class Arrows:
    """Arrows that can be drawn, by the time of their heads."""

    labels: list[tuple[str, str]]
    """Categories and names."""
    label: npt.NDArray[np.int64]
    """Of each arrow, its position in `labels`."""
    tail: npt.NDArray[np.int64]
    """The slice at which it begins."""
    head: npt.NDArray[np.int64]
    ends_left_out: int = 0
    """How many ends of arrows in the file have no partner and are left out."""

    def __len__(self) -> int:
        return len(self.label)

    def __iter__(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield category, name, tail and head of each."""
        for label, tail, head in zip(self.label.tolist(), self.tail.tolist(), self.head.tolist(), strict=True):
            yield *self.labels[label], tail, head


def start_ns(block: Block, which: Array, *, unpadded: bool) -> npt.NDArray[np.int64]:
    """Return when events of a block start, ns since the file's base."""
    start = block.rows[which, START]
    return start - block.rows[which, START_SLIP] if unpadded and block.exact else start


class ArrowEnds:
    """Collects the ends of arrows, and the moments of what is neither slice nor arrow.

    Args:
        columns: what is known of the file: numbers of its lanes and ids.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._labels = Interner[tuple[str, str]]()
        self._ends: list[tuple[Array, ...]] = []  # phase, label, id, lane
        self._moments: list[tuple[Array, Array]] = []  # padded, unpadded
        self._others: list[tuple[Array, Array]] = []

    def add(self, events: list[Any], *, exact: bool) -> None:
        """Take a list of decoded events into account."""
        flows = [event for event in events if event.ph in FLOWS and _is_time(event.ts)]
        others = [event.ts for event in events if event.ph not in _NOT_OTHERS and _is_time(event.ts)]
        columns = self._columns
        rows = [
            (ord(e.ph), self._labels[str(e.cat or ""), str(e.name)], columns.flow_id(e.id), columns.lanes[e.pid, e.tid])
            for e in flows
        ]
        self._ends.append(tuple(np.array(rows, np.int64).reshape(-1, 4).T))
        self._moments.append(_times([event.ts for event in flows], exact=exact))
        self._others.append(_times(others, exact=exact))

    def add_block(self, block: Block, columns: BlockColumns) -> None:
        """Take a scanned block into account; `columns` has it already."""
        phase, has_time = block.rows[:, PHASE], block.rows[:, FLAGS] & START_ABSENT == 0
        is_flow = np.isin(phase, [ord(each) for each in FLOWS])
        others = ~is_flow & ~np.isin(phase, [ord("X"), ord("M")]) & has_time
        where = np.flatnonzero(is_flow & has_time)
        which, pairs = pd.factorize(block.categories[where].astype(np.int64) << 32 | block.names[where])
        labels = [self._label(block, pair >> 32, pair & (2**32 - 1)) for pair in pairs.tolist()]
        label, lane = np.array(labels, np.int64)[which], columns.lane_numbers(block, where)
        self._ends.append((phase[where], label, self._ids(block, where), lane))
        for into, rows in ((self._moments, where), (self._others, np.flatnonzero(others))):
            into.append((start_ns(block, rows, unpadded=False), start_ns(block, rows, unpadded=True)))

    def _label(self, block: Block, category: int, name: int) -> int:
        return self._labels[str(block.values[category] or ""), str(block.values[name])]

    def _ids(self, block: Block, where: Array) -> Array:
        ids, flags = block.rows[where, ID], block.rows[where, FLAGS]
        for at in np.flatnonzero(flags & ID_IS_SPAN).tolist():
            ids[at] = self._columns.flow_id(msgspec.json.decode(span_text(block.text, int(ids[at]))))
        ids[flags & (ID_IS_NUMBER | ID_IS_SPAN) == 0] = self._columns.flow_id(None)
        return ids

    def others(self, *, unpadded: bool) -> Array:
        """Return the times of all other events, ns since the file's base."""
        return _joined([part[unpadded] for part in self._others])

    def arrows(self, start: Array, met: _Met, common: Callable[[Array], Array], *, unpadded: bool) -> Arrows:
        """Return the arrows that can be drawn, from each ``s`` to every ``f`` of its id before the next.

        An arrow without a slice at one of its ends, within one slice, or to one that began earlier, cannot.

        Args:
            start: when each slice starts, on the common clock.
            met: returns the slice of lanes that moments meet, -1 for none.
            common: moves moments since the file's base to the common clock.
            unpadded: whether the fractions of the file's times lack their leading zeros.
        """
        phase, label, number, lane = (_joined([part[at] for part in self._ends]) for at in range(4))
        moment = common(_joined([part[unpadded] for part in self._moments]))
        order = np.lexsort((phase != ord("s"), moment))  # in time, tails first
        slice_ = met(lane, moment)[order]
        phase, label, number = phase[order], label[order], number[order]
        tail = _last_tails(phase, label, number)
        heads = np.flatnonzero((phase != ord("s")) & (tail >= 0) & (slice_ >= 0))
        tails = tail[heads]
        fine = (slice_[tails] >= 0) & (slice_[tails] != slice_[heads])
        fine[fine] = start[slice_[tails[fine]]] <= start[slice_[heads[fine]]]
        heads, tails = heads[fine], tails[fine]
        used = len(np.union1d(heads, tails))
        return Arrows(list(self._labels), label[heads], slice_[tails], slice_[heads], len(phase) - used)


def _last_tails(phase: Array, label: Array, number: Array) -> npt.NDArray[np.int64]:
    """Return, for each end, the last tail of its id before it, -1 for none; ends are in time."""
    count = len(phase)
    order = np.lexsort((np.arange(count), number, label))
    same = np.zeros(count, np.bool_)
    same[1:] = (label[order][1:] == label[order][:-1]) & (number[order][1:] == number[order][:-1])
    group = np.maximum.accumulate(np.where(same, 0, np.arange(count))) if count else np.zeros(0, np.int64)
    place = np.where(phase[order] != ord("f"), np.arange(count), -1)
    before = np.concatenate(([-1], np.maximum.accumulate(place)[:-1])) if count else place
    tails = np.full(count, -1, np.int64)
    has = before >= group
    tails[order[has]] = order[before[has]]
    return tails


def _is_time(value: Any) -> bool:  # noqa: ANN401 - of a decoded event
    """Return whether a value is a time: an arrow or an instant without one costs the others nothing."""
    text = bytes(value).decode("utf-8", "replace") if isinstance(value, msgspec.Raw) else str(value)
    return decimal_us(text.strip('"')) is not None


def _times(values: list[Any], *, exact: bool) -> tuple[Array, Array]:
    if exact or any(isinstance(value, str | msgspec.Raw) for value in values):
        texts = [bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value) for value in values]
        return text_to_ns(texts, FractionStyle())
    times = numbers_to_ns(values) if values else np.zeros(0, np.int64)
    return times, times


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
