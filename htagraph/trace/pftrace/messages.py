"""Messages of packets read one by one in Python: descriptions, interned texts, and arguments of single events."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from htagraph.trace.pftrace.wire import FIXED32, FIXED64, LENGTH, VARINT

__all__ = [
    "Field",
    "Message",
    "UnreadableError",
    "argument_of",
    "fields",
    "named",
    "signed",
    "text_of",
]

Message: TypeAlias = bytes | memoryview

_MAX_DEPTH: Final = 60
"""Arguments inside one another that are read; deeper arguments are shown as `_TOO_DEEP`. Chosen: the same as for JSON.
Doubled, Python's own limit of calls comes near."""
_TOO_DEEP: Final = "…"
_MAX_NUMBER: Final = (1 << 29) - 1
"""The largest number of a field, by the format."""


class UnreadableError(ValueError):
    """A message is no protobuf."""


class Field(NamedTuple):
    """A field of a message."""

    number: int
    value: int
    """The number, unsigned; of a field of a fixed size its bits; of a text or message 0."""
    content: Message
    """The bytes of a text or message."""


def fields(message: Message) -> Iterator[Field]:
    """Yield the fields of a message.

    Raises:
        UnreadableError: the message is cut short, or no protobuf.

    Example:
        >>> [(field.number, field.value) for field in fields(bytes([8, 150, 1]))]
        [(1, 150)]
    """
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if not 0 < tag >> 3 <= _MAX_NUMBER:
            raise UnreadableError
        wire = tag & 7
        value = 0
        content: Message = b""
        if wire == VARINT:
            value, position = _varint(message, position)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            content, position = _bytes(message, position, size)
            value = int.from_bytes(content, "little")
        elif wire == LENGTH:
            size, position = _varint(message, position)
            content, position = _bytes(message, position, size)
        else:
            raise UnreadableError
        yield Field(tag >> 3, value, content)


def _varint(message: Message, position: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if position + place >= len(message):
            break
        bits = message[position + place]
        value |= (bits & 0x7F) << (7 * place)
        if bits < 0x80:
            return value & (2**64 - 1), position + place + 1
    raise UnreadableError


def _bytes(message: Message, position: int, size: int) -> tuple[Message, int]:
    if size > len(message) - position:
        raise UnreadableError
    return message[position : position + size], position + size


def text_of(content: Message) -> str:
    """Return the text of a field; bytes that are no UTF-8 become question marks."""
    return bytes(content).decode("utf-8", "replace")


def named(message: Message, *, number: int, name: int) -> tuple[int, str]:
    """Return the number and the name in a message, given the numbers of their fields.

    Example:
        >>> named(bytes([8, 7, 18, 1, 97]), number=1, name=2)
        (7, 'a')
    """
    value = 0
    text = ""
    for field in fields(message):
        if field.number == number:
            value = signed(field.value)
        elif field.number == name:
            text = text_of(field.content)
    return value, text


def signed(value: int) -> int:
    """Return a number of 64 bits as a signed one.

    Example:
        >>> signed(2**64 - 1), signed(7)
        (-1, 7)
    """
    return value - 2**64 if value >= 2**63 else value


(
    _NAME_IID,
    _BOOL,
    _UNSIGNED,
    _NUMBER,
    _FLOAT,
    _TEXT,
    _POINTER,
    _NESTED,
    _JSON,
    _NAME,
    _ENTRY,
    _ITEM,
) = range(1, 13)
_TEXT_IID: Final = 17
"""Number of a field, as the twelve above."""


def argument_of(
    annotation: Message,
    interned: dict[int, str],
    names: dict[int, str],
    depth: int = 0,
) -> tuple[str, Any]:
    """Return (name, value) of an argument of a track event; a value may be a list or a dict of values.

    Args:
        annotation: the message.
        interned: texts of values by their ids.
        names: names of arguments by their ids.
        depth: arguments that this one is inside of.
    """
    name = ""
    value: Any = None
    items = list[Any]()
    entries = dict[str, Any]()
    is_list = False
    for field in fields(annotation):
        if field.number == _NAME:
            name = text_of(field.content)
        elif field.number == _NAME_IID:
            name = names.get(field.value, "")
        elif field.number in (_ENTRY, _ITEM):
            is_list = field.number == _ITEM
            inner = (
                argument_of(
                    field.content,
                    interned,
                    names,
                    depth + 1,
                )
                if depth < _MAX_DEPTH
                else ("", _TOO_DEEP)
            )
            if is_list:
                items.append(inner[1])
            else:
                entries[inner[0]] = inner[1]
        else:
            value = _plain(field, interned, value)
    if entries:
        return name, entries
    return (
        name,
        items if is_list or value is None else value,
    )


def _plain(
    field: Field,
    interned: dict[int, str],
    before: object,
) -> object:
    """Return the value that a field holds, or the value before if the field holds none."""
    if field.number in (_UNSIGNED, _POINTER, _BOOL):
        return bool(field.value) if field.number == _BOOL else field.value
    if field.number == _NUMBER:
        return signed(field.value)
    if field.number == _FLOAT and len(field.content) == 8:
        return struct.unpack("<d", field.content)[0]
    if field.number in (_TEXT, _JSON):
        return text_of(field.content)
    return interned.get(field.value, "") if field.number == _TEXT_IID else before
