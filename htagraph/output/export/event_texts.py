"""Recorded events taken apart into the texts of their values: what is not changed goes from file to file as text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from htagraph.output.export.trace_writer import RawEvent
from htagraph.trace.kineto.decode import BlockDecoder
from htagraph.trace.kineto.scan.scanner import Block

__all__ = ["EventText", "EventTexts", "as_event", "slice_text"]

_NOTHING = msgspec.Raw(b"")


class EventText(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event with the keys that profilers write; each value is JSON, and no text at all where the key is absent."""

    ph: str
    name: msgspec.Raw = _NOTHING
    cat: msgspec.Raw = _NOTHING
    pid: msgspec.Raw = _NOTHING
    tid: msgspec.Raw = _NOTHING
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    args: msgspec.Raw = _NOTHING
    id: msgspec.Raw = _NOTHING
    bp: msgspec.Raw = _NOTHING
    s: msgspec.Raw = _NOTHING


_KEYS = EventText.__struct_fields__[1:]
_decoded = msgspec.json.Decoder(Any, float_hook=Decimal).decode


class EventTexts:
    """Decodes the text of a JSON array of events, numbered as in bulk decoding."""

    def __init__(self) -> None:
        self._strict = BlockDecoder()
        self._apart = msgspec.json.Decoder(list[EventText])
        self._whole = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal)

    def __call__(self, text: bytes) -> list[EventText | RawEvent]:
        """Return the events, as dicts where one has other keys, or where a text is none that can be passed on."""
        self._strict(text)  # refuse what bulk decoding refuses, so that both number the events alike
        try:
            if not text.isascii():
                text.decode()
            return list[EventText | RawEvent](self._apart.decode(text))
        except (msgspec.ValidationError, UnicodeDecodeError):
            return list[EventText | RawEvent](self._whole.decode(text))

    def scan(self, text: memoryview, offset: int) -> Block | None:
        """Return the events of a text as rows of numbers, see `BlockDecoder.scan`; None if it must go to `__call__`."""
        try:
            if not (whole := bytes(text)).isascii():
                whole.decode()
        except UnicodeDecodeError:
            return None
        return self._strict.scan(text, offset)


def as_event(event: EventText) -> RawEvent:
    """Return an event as a dict; numbers with a fraction are exact decimals."""
    values = ((key, bytes(getattr(event, key))) for key in _KEYS)
    return {"ph": event.ph} | {key: _decoded(value) for key, value in values if value}


def slice_text(event: EventText, where: bytes, ts: str, dur: str, critical_us: str = "") -> bytes | None:
    """Return a slice as JSON with its new place and times; None where it takes more than that to write it.

    Args:
        event: the event.
        where: its process and track, as JSON without the brackets.
        ts: its start, µs.
        dur: its duration, µs.
        critical_us: for how long it is on the critical path, µs; empty for not at all.
    """
    name, args = bytes(event.name), bytes(event.args)
    if not name.startswith(b'"'):
        return None
    if critical_us:
        if not args.startswith(b"{") or b'"critical_us"' in args:
            return None
        some = args[1:-1].strip()
        args = b'{%b%b"critical_us":%b}' % (some, b"," if some else b"", critical_us.encode())
    text = b'{"ph":"X",%b,"name":%b,"ts":%b,"dur":%b' % (where, name, ts.encode(), dur.encode())
    for key, value in ((b"cat", bytes(event.cat)), (b"args", args)):
        if value:
            text += b',"%b":%b' % (key, value)
    if b"\\" in text or event.id or event.bp or event.s:
        return None
    return text + b"}"
