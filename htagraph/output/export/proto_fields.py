"""Messages of Protocol Buffers, field by field: for the few packets that are not worth a compiled pass."""

from __future__ import annotations

__all__ = ["field", "message", "varint"]


def varint(number: int) -> bytes:
    """Return a number that is not negative in groups of seven bits, the lowest first.

    Example:
        >>> varint(300).hex()
        'ac02'
    """
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: int | str | bytes) -> bytes:
    r"""Return a field of a message: a number, a text, or a message as bytes.

    Example:
        >>> field(2, "ab"), field(1, 5)
        (b'\x12\x02ab', b'\x08\x05')
    """
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    # Perfetto ends a text at its first NUL
    data = value.replace("\0", "␀").encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    r"""Return a message of some fields: numbers and values.

    Example:
        >>> message((1, 5), (2, "ab"))
        b'\x08\x05\x12\x02ab'
    """
    return b"".join(field(number, value) for number, value in fields)
