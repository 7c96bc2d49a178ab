"""JSON text of events → events. The decoder's types are generated from the models in `events`: one schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from htagraph.trace.kineto.events import HOST_BACKENDS, BulkField, call_columns, columns
from htagraph.trace.kineto.times import EXACT_FLOAT_US

if TYPE_CHECKING:
    from htagraph.trace.kept import Frames
    from htagraph.trace.kineto.scan.scanner import Block, Scanner

__all__ = [
    "ENVELOPE",
    "UNDECODABLE",
    "BlockDecoder",
    "RawEvent",
    "attribute",
    "event_decoder",
    "event_text_decoder",
    "plain_events",
]

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that a decoder raises for text that it cannot read."""
RawEvent = Any  # the generated struct: attributes ph, name, cat, pid, tid, ts, dur, id, args
T = TypeVar("T")
_Label = int | float | str | None  # no list or object: those cannot be dictionary keys
ENVELOPE: list[Any] = [
    ("ph", str, ""), ("name", Any, ""), ("cat", _Label, None), ("pid", _Label, ""), ("tid", _Label, ""),
]  # fmt: skip
"""The fields of an event whose types bulk decoding checks: whoever numbers events alike must refuse others, too."""


class BlockDecoder:
    """Decodes the text of a JSON array of events.

    Times are floats until one would lose nanoseconds; from that block on, they are exact decimals. Arguments of calls
    (`call_columns`) are decoded only if the file's header names a backend that communicates on host threads. The header
    (root keys before the events) is complete when the first block comes; `frames` decides which calls of Python
    functions `scan` leaves without a name.
    """

    def __init__(self, header: Mapping[str, Any] | None = None, frames: Frames | None = None) -> None:
        self._header, self._frames = header, frames
        self.exact = False

    def __call__(self, text: bytes) -> list[RawEvent]:
        """Return the events of a JSON array."""
        if not self.exact:
            events: list[RawEvent] = self._fast.decode(text)
            self.exact = _need_text([event.ts for event in events])
            if not self.exact:
                return events
        return self._exact.decode(text)

    def scan(self, text: bytes | memoryview, offset: int) -> Block | None:
        """Return the events of a text that holds events with commas between them; None if it must go to `__call__`.

        `offset` is the position of the text in the document; `exact` reads times as decimals.
        """
        block, too_large = self._scanner.scan(text, offset, exact=self.exact)
        if too_large:
            block, _ = self._scanner.scan(text, offset, exact=True)
            self.exact = block is not None  # else `__call__` finds out from which event on
        return block

    @cached_property
    def _scanner(self) -> Scanner:
        from htagraph.trace.kineto.scan.scanner import Scanner  # loads compiled code, which small files do not need

        return Scanner(calls=self._of_calls, frames=self._frames)

    @cached_property
    def _fast(self) -> msgspec.json.Decoder[list[RawEvent]]:
        return _decoder(Any, calls=self._of_calls)

    @cached_property
    def _exact(self) -> msgspec.json.Decoder[list[RawEvent]]:
        return _decoder(msgspec.Raw, calls=self._of_calls)

    @cached_property
    def _of_calls(self) -> bool:
        job = str((self._header or {}).get("distributedInfo", ""))
        return any(backend in job for backend in HOST_BACKENDS)


def plain_events(text: bytes, *, exact: bool, calls: bool) -> list[RawEvent]:
    """Return the events of a JSON array; the text is one that the compiled scan has accepted.

    `exact` keeps times as text; `calls` are the arguments of calls of host-side communication.
    """
    decoder = _decoder(msgspec.Raw if exact else Any, calls=calls)
    return decoder.decode(text)


@cache
def _decoder(time: type, *, calls: bool) -> msgspec.json.Decoder[list[RawEvent]]:
    return msgspec.json.Decoder(list[_event_struct(time, calls=calls)])  # type: ignore[misc]


def event_decoder() -> Callable[[bytes], list[dict[str, Any]]]:
    """Return a decoder of complete events as dicts; numbers with a fraction become exact decimals."""
    from decimal import Decimal

    return _numbered_alike(msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode)


def event_text_decoder() -> Callable[[bytes], list[msgspec.Raw]]:
    """Return a decoder that splits a JSON array into one text per event, numbered as in bulk decoding."""
    return _numbered_alike(msgspec.json.Decoder(list[msgspec.Raw]).decode)


def _numbered_alike(decode: Callable[[bytes], list[T]]) -> Callable[[bytes], list[T]]:
    """Return a decoder that refuses what bulk decoding refuses, so that both number the events alike."""
    strict = BlockDecoder()

    def decode_strictly(text: bytes) -> list[T]:
        strict(text)
        return decode(text)

    return decode_strictly


def _need_text(times: list[Any]) -> bool:
    """Return True if a time would lose nanoseconds as a float, or is text."""
    kinds = set(map(type, times))
    return str in kinds or (float in kinds and any(type(t) is float and abs(t) >= EXACT_FLOAT_US for t in times))


@cache
def _event_struct(time: type, *, calls: bool) -> type[msgspec.Struct]:
    """Return the struct type of an event: the envelope, and in `args` all arguments that have a column."""
    args = _args_struct(calls=calls)
    absent = msgspec.Raw(b"") if time is msgspec.Raw else None
    envelope = [*ENVELOPE, ("ts", time, absent), ("dur", time, absent), ("id", Any, None), ("args", args, args())]
    return msgspec.defstruct("BulkEvent", envelope, gc=False)


@cache
def _args_struct(*, calls: bool) -> type[msgspec.Struct]:
    keys = {attribute(bulk, i): key for bulk in columns() for i, key in enumerate(bulk.keys)}
    fields: list[Any] = [
        (attribute(bulk, i), Any, bulk.column.missing) for bulk in columns() for i in range(len(bulk.keys))
    ]
    for bulk in call_columns() if calls else ():
        fields.append((attribute(bulk, 0), msgspec.Raw, msgspec.Raw(b"")))  # their text, not decoded
        keys[attribute(bulk, 0)] = bulk.keys[0]
    fields.append(("thread_name", Any, ""))  # the args of metadata events
    keys["thread_name"] = "name"
    return msgspec.defstruct("BulkArgs", fields, rename=keys, gc=False, frozen=True)


def attribute(bulk: BulkField, number: int) -> str:
    """Return the name of an argument under one of its keys, in `args` of an event."""
    return bulk.column.name if number == 0 else f"{bulk.column.name}_{number}"
