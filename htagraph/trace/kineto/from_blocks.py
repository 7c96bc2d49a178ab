"""Blocks of the compiled scan → columns: what `collecting.add_events` does, on arrays instead of objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.trace.columns import GrowingTable
from htagraph.trace.kineto.collecting import (
    FIRST_NODE_FLOW,
    FORWARD_FLOW,
    LAUNCH_FLOW,
    OPERATOR_FLOW,
    WINDOW_END,
    Columns,
    add_thread_names,
    fields_of,
    is_node_flow,
    note_window_end,
    typed,
)
from htagraph.trace.kineto.decode import RawEvent, plain_events
from htagraph.trace.kineto.events import HOST_CALLS, canonical_category
from htagraph.trace.kineto.scan import events as scan
from htagraph.trace.kineto.scan.scanner import NO_TOKEN, Block, argument_keys, span_text
from htagraph.trace.kineto.times import NO_TIME

__all__ = ["BlockColumns"]

_DECIMAL, _TRAILING_ZERO = 2, 4  # what a fraction shows, see `scan.STYLE_BITS`
_START = scan.START, scan.START_SLIP, scan.START_STYLE  # columns of a time and its slip, bits of its fraction's style
_DURATION = scan.DURATION, scan.DURATION_SLIP, scan.DURATION_STYLE
_OTHER_FLOW, _FORWARD, _LAUNCH, _OPERATOR = range(4)
_FLOW_KINDS = {FORWARD_FLOW: _FORWARD, LAUNCH_FLOW: _LAUNCH}
_STORED = {scan.FLOAT: np.float64, scan.UNSIGNED: np.uint64}


class _Named(NamedTuple):
    """An event, as far as a message about one of its arguments names it."""

    cat: object
    name: object


class BlockColumns:
    """Adds the blocks of one file to its columns."""

    def __init__(self, into: Columns) -> None:
        self._into = into
        self._names, self._categories, self._processes, self._lanes, self._calls, self._flows = (
            _Numbers() for _ in range(6)
        )

    def add(self, position: int, block: Block) -> None:
        """Append a block; `position` is that of its first event in the file."""
        self._into.starts.append((position, block.offset))
        phases = block.rows[:, scan.PHASE]
        counts = np.bincount(phases)
        for phase in np.flatnonzero(counts).tolist():
            self._into.counts[chr(phase) if phase else ""] += int(counts[phase])
        complete = self._sound(block, np.flatnonzero(phases == ord("X")))
        self._add_table(self._into.complete, position, block, complete)
        self._into.note_frames(block.is_frame[complete], block.left_out[complete])
        instants = np.flatnonzero((phases == ord("i")) | (phases == ord("I")))
        categorized = self._sound(block, instants[block.categories[instants] != NO_TOKEN])
        self._add_table(self._into.instant, position, block, categorized)
        names = np.unique(block.names[instants]).tolist()
        of_end = [name for name in names if block.values[name] == WINDOW_END]
        if of_end:
            note_window_end(self._into, _events(block, instants[np.isin(block.names[instants], of_end)]))
        self._add_flows(block, np.flatnonzero((phases == ord("s")) | (phases == ord("f"))))
        add_thread_names(self._into, _events(block, np.flatnonzero(phases == ord("M"))))
        durations = np.flatnonzero((phases == ord("B")) | (phases == ord("E")))
        self._into.durations += zip((durations + position).tolist(), _events(block, durations), strict=True)

    def _add_table(self, part: GrowingTable, position: int, block: Block, where: Array) -> None:
        if not len(where):
            return
        into, values = self._into, block.values
        category = self._category_numbers(block, where)
        starts, durations = self._times(block, where, _START), (np.zeros(len(where), np.int64),) * 2
        if part is into.complete:  # an instant has no duration
            durations = self._times(block, where, _DURATION)
            into.see(category, starts[0], durations[0])
        stays = ~block.left_out[where]
        where, category = where[stays], category[stays]
        lane = self.lane_numbers(block, where)
        names = self._names.of(block.names[where], lambda token: into.names[_text(values[token])])
        rows = (where + position).astype(np.int32), names, category, lane
        first = part.add_rows(rows, _of_rows(starts, stays), _of_rows(durations, stays))
        row_of = np.full(len(block), -1, np.int32)
        row_of[where] = np.arange(len(where), dtype=np.int32)
        self._add_args(part, first, block, row_of, category)
        self._add_call_args(part, first, block, row_of)

    def _category_numbers(self, block: Block, where: Array) -> Array:
        into, values, tokens = self._into, block.values, block.categories[where]
        numbers = np.empty(len(where), np.int32)
        has = tokens != NO_TOKEN
        numbers[has] = self._categories.of(tokens[has], lambda token: into.category(values[token], None))
        processes = block.processes[where][~has]
        numbers[~has] = self._processes.of(processes, lambda token: into.category(None, values[token]))
        return numbers

    def lane_numbers(self, block: Block, where: Array) -> Array:
        """Return the lanes of some events, as the columns number them."""
        return self._lanes.of(block.lanes[where], lambda pair: self._into.lanes[block.lane(pair)])

    def _sound(self, block: Block, where: Array) -> Array:
        """Return those of some events that have times which can be; the scan has refused what is no number."""
        flags = block.rows[where, scan.FLAGS]
        start = np.where(flags & scan.START_ABSENT, NO_TIME, block.rows[where, scan.START])
        is_complete = block.rows[where, scan.PHASE] == ord("X")
        self._into.note_absent(int(np.count_nonzero(is_complete & (flags & scan.DURATION_ABSENT > 0))))
        return where[self._into.sound(start, np.where(is_complete, block.rows[where, scan.DURATION], 0))]

    def _times(self, block: Block, where: Array, time: tuple[int, int, int]) -> tuple[Array, Array]:
        """Return (times, times if fractions turn out to be unpadded) in ns."""
        column, slip, bits = time
        padded = block.rows[where, column]
        if not block.exact:
            return padded, padded
        style, shapes = self._into.style, block.rows[where, scan.FLAGS] >> bits
        style.decimal += int(np.count_nonzero(shapes & _DECIMAL))
        style.trailing_zero += int(np.count_nonzero(shapes & _TRAILING_ZERO))
        unpadded = padded - block.rows[where, slip]
        style.note_times(padded, unpadded)
        return padded, unpadded

    def _add_args(self, part: GrowingTable, first: int, block: Block, row_of: Array, category: Array) -> None:
        allowed = _allowed(tuple(self._into.categories), calls=block.calls)
        for number, key in enumerate(argument_keys(calls=block.calls)):
            if key.kind != scan.RAW and number in block.arguments:
                events, values = _kept(*block.arguments[number], row_of, category, allowed[:, number])
                if key.kind == scan.TEXT:
                    values = self._names.of(values, lambda token: self._into.names[block.values[token]])
                stored = values.view(_STORED.get(key.kind, values.dtype))
                self._into.store(part, key.field.column, row_of[events] + np.int32(first), stored)
            if number in block.odd:
                events, values = _kept(*block.odd[number], row_of, category, allowed[:, number])
                named = [_Named(*block.label(event)) for event in events.tolist()]
                if named:
                    stored = typed(self._into, values.tolist(), key.field, named)
                    self._into.store(part, key.field.column, row_of[events] + np.int32(first), stored)

    def _add_call_args(self, part: GrowingTable, first: int, block: Block, row_of: Array) -> None:
        values = block.values
        for number, key in enumerate(argument_keys(calls=block.calls)):
            if key.kind == scan.RAW and number in block.arguments:
                events, spans = block.arguments[number]
                is_call = self._calls.of(block.names[events], lambda token: _text(values[token]).startswith(HOST_CALLS))
                keep = (row_of[events] >= 0) & (is_call == 1)
                texts = [span_text(block.text, span).decode("utf-8", "replace") for span in spans[keep].tolist()]
                stored = np.array([self._into.names[text] for text in texts], np.int32)
                part.add_args(key.field.column, row_of[events[keep]] + np.int32(first), stored)

    def _add_flows(self, block: Block, where: Array) -> None:
        kind = self._flows.of(block.categories[where], lambda token: _flow_kind(block.values[token]))
        has_id = block.rows[where, scan.FLAGS] & (scan.ID_IS_NUMBER | scan.ID_IS_SPAN) > 0
        self._add_flow_part(self._into.flow_parts, block, where[(kind == _FORWARD) & has_id])
        of_launches = where[((kind == _LAUNCH) | (kind == _OPERATOR)) & has_id]
        as_text = np.flatnonzero(block.rows[of_launches, scan.FLAGS] & scan.ID_IS_SPAN)
        between_nodes = block.rows[of_launches, scan.ID] >= FIRST_NODE_FLOW
        between_nodes[as_text] = [is_node_flow(self._written_id(block, row)) for row in of_launches[as_text].tolist()]
        self._add_flow_part(self._into.node_flow_parts, block, of_launches[between_nodes])
        of_operators = where[(kind == _OPERATOR) & has_id]
        self._add_flow_part(self._into.operator_flow_parts, block, of_operators)

    def _written_id(self, block: Block, row: int) -> object:
        """Return a flow's id that is not a plain number."""
        return msgspec.json.decode(span_text(block.text, int(block.rows[row, scan.ID])))

    def _add_flow_part(self, parts: list[tuple[Array, ...]], block: Block, where: Array) -> None:
        where = self._sound(block, where)
        if not len(where):
            return
        ids = block.rows[where, scan.ID]
        for i in np.flatnonzero(block.rows[where, scan.FLAGS] & scan.ID_IS_SPAN).tolist():
            ids[i] = self._into.flow_id(self._written_id(block, int(where[i])))
        padded, unpadded = self._times(block, where, _START)
        is_start = block.rows[where, scan.PHASE] == ord("s")
        parts.append((ids, is_start, self.lane_numbers(block, where), padded, unpadded))


def _flow_kind(category: object) -> int:
    """Return the number of a flow's category; `_OTHER_FLOW` for one that nothing reads."""
    if str(category).startswith(OPERATOR_FLOW):
        return _OPERATOR
    return _FLOW_KINDS.get(canonical_category(str(category)), _OTHER_FLOW)


class _Numbers:
    """Numbers of tokens in the columns of a file, asked for once each."""

    def __init__(self) -> None:
        self._known = np.full(1, -1, np.int32)

    def of(self, tokens: Array, number: Callable[[int], int]) -> Array:
        """Return the number of each token; `number` returns that of a token which is new."""
        behind = int(tokens.max(initial=0)) + 1
        if behind > len(self._known):
            self._known = np.concatenate([self._known, np.full(2 * behind, -1, np.int32)])
        numbers = self._known[tokens]
        new = tokens[numbers < 0]
        for token in dict.fromkeys(new.tolist()):  # in the file's order, as the general way numbers them
            self._known[token] = number(token)
        return self._known[tokens] if len(new) else numbers


def _events(block: Block, where: Array) -> list[RawEvent]:
    spans = zip(block.rows[where, scan.OFFSET].tolist(), block.rows[where, scan.STOP].tolist(), strict=True)
    texts = [block.text[start:stop].tobytes() for start, stop in spans]
    return plain_events(b"[" + b",".join(texts) + b"]", exact=block.exact, calls=block.calls)


def _of_rows(times: tuple[Array, Array], rows: Array) -> tuple[Array, Array]:
    """Return both readings of some of the times; one array where they are one."""
    padded = times[0][rows]
    return padded, padded if times[1] is times[0] else times[1][rows]


def _text(value: object) -> str:
    """Return a name; an absent one is empty."""
    return "" if value is None else str(value)


def _kept(events: Array, values: Array, row_of: Array, category: Array, allowed: Array) -> tuple[Array, Array]:
    """Return the events that are in a table and whose category has the argument, and their values."""
    rows = row_of[events]
    keep = rows >= 0
    keep[keep] = allowed[category[rows[keep]]]
    return events[keep], values[keep]


@cache
def _allowed(categories: tuple[str, ...], *, calls: bool) -> Array:
    """Return, by category and key, whether events of the category have the argument."""
    of_category = [{field for _, field in fields_of(name)} for name in categories]
    keys = argument_keys(calls=calls)
    return np.array([[key.field in own for key in keys] for own in of_category], bool)
