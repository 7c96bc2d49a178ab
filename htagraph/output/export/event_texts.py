"""Recorded events taken apart into the texts of their values: what is not changed goes from file to file as text."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from htagraph.output.export.trace_writer import RawEvent
from htagraph.trace.reading.decode import BlockDecoder

__all__ = ["EventText", "as_event", "event_texts_decoder", "event_texts_scan", "slice_text"]

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
_apart = msgspec.json.Decoder(list[EventText]).decode
_whole = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode


def event_texts_decoder() -> Callable[[bytes], list[EventText | RawEvent]]:
    """Return a decoder of a JSON array of events, numbered as in bulk decoding.

    It gives dicts where an event has other keys, or where a text is none that can be passed on.
    """
    strict: Callable[[bytes], object] = BlockDecoder()

    def decode(text: bytes) -> list[EventText | RawEvent]:
        strict(text)  # refuse what bulk decoding refuses, so that both number the events alike
        return _taken_apart(text)

    return decode


def event_texts_scan() -> Callable[[bytes, int], list[EventText | RawEvent] | None]:
    """Return what gives the same for most texts of events without brackets, in less time; None for the rest."""
    from htagraph.trace.reading.scan.texts import EventTextScanner  # loads compiled code, which small files do not need

    scanner = EventTextScanner()

    def scan(text: bytes, offset: int) -> list[EventText | RawEvent] | None:
        return None if scanner(text, offset) is None else _taken_apart(b"[%b]" % text)

    return scan


def _taken_apart(text: bytes) -> list[EventText | RawEvent]:
    try:
        if not text.isascii():
            text.decode()
        return [*_apart(text)]
    except (msgspec.ValidationError, UnicodeDecodeError):
        return [*_whole(text)]


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
