"""JSON grammar for the compiled scan: bytes and words at addresses, white space, strings, numbers, skipped values.

Positions are addresses of bytes. Arrays would cost four times as long: each call passes seven numbers and counts a
reference per array, and each byte is checked for an index from the end. Whoever passes an address keeps its array alive
and knows its length. Each function of the grammar takes an address and returns that behind what it read, or `REFUSED`.
The text ends with `PADDING`: a zero byte is part of no JSON, so every loop ends there, and eight bytes may be read at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from htagraph.core.compiled import njit
from htagraph.trace.kineto.times import SURE_DIGITS

__all__ = [
    "DECIMAL", "INTEGER", "PADDING", "REFUSED", "SCIENTIFIC", "Int", "blank", "byte", "compiled", "first_byte",
    "float_of", "key_end", "number", "put", "rows_address", "skip_value", "string_end", "text_address",
    "value_behind", "with_padding", "word",
]  # fmt: skip

Bytes: TypeAlias = npt.NDArray[np.uint8]
Int: TypeAlias = Any
"""An integer of compiled code, signed or not."""
F = TypeVar("F", bound=Callable[..., Any])


_BITS = {1: ir.IntType(8), 8: ir.IntType(64)}


def compiled(function: F) -> F:
    """Compile a function that compiled functions alone call: without the wrappers that Python would call it by.

    Those take as long to compile as the function itself.
    """
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def _intrinsic(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - its callers are compiled, and give no first argument
    return intrinsic(function)


def _pointer(builder: Any, address: Any, size: int) -> Any:  # noqa: ANN401 - objects of llvmlite
    return builder.inttoptr(address, _BITS[size].as_pointer())


@_intrinsic
def byte(typing_context: Any, address: Any) -> Any:  # noqa: ANN401 - numba's interface
    """Return the byte at an address, as an integer."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        value = builder.load(_pointer(builder, arguments[0], 1))
        return builder.zext(value, _BITS[8])

    return types.int64(types.int64), code


@_intrinsic
def word(typing_context: Any, address: Any) -> Any:  # noqa: ANN401
    """Return the eight bytes at an address, the first one lowest."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.load(_pointer(builder, arguments[0], 8), align=1)

    return types.uint64(types.int64), code


@_intrinsic
def put(typing_context: Any, address: Any, value: Any) -> Any:  # noqa: ANN401
    """Write a 64-bit integer at an address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        builder.store(arguments[1], _pointer(builder, arguments[0], 8), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@_intrinsic
def first_byte(typing_context: Any, marks: Any) -> Any:  # noqa: ANN401
    """Return which byte of a word, from 0 on, has the lowest bit that is set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(_BITS[8], 3))

    return types.int64(types.uint64), code


PADDING = bytes(16)
"""What follows a text: whoever reads eight bytes at its end reads at most seven more, and then eight again."""


def with_padding(content: bytes | memoryview | npt.NDArray[Any], memory: npt.NDArray[np.uint8] | None = None) -> Bytes:
    """Return the bytes of a text, or of an array that is compared as text, with `PADDING` behind them.

    Args:
        content: The bytes.
        memory: Memory to copy the bytes into, of just this size; new memory if it is None.

    Example:
        >>> with_padding(b"ab").tobytes() == b"ab" + PADDING
        True
    """
    given = np.frombuffer(content, np.uint8)
    if memory is None:
        memory = np.empty(len(given) + len(PADDING), np.uint8)
    memory[: len(given)] = given
    memory[len(given) :] = 0
    return memory


def text_address(text: Bytes) -> int:
    """Return the address of a text for compiled code, which may read as far as `PADDING` reaches.

    Raises:
        ValueError: the text does not end with `PADDING`.

    Example:
        >>> text_address(np.zeros(3, np.uint8))
        Traceback (most recent call last):
            ...
        ValueError: compiled code reads behind this text: it needs PADDING
    """
    if text[-len(PADDING) :].tobytes() != PADDING:
        msg = "compiled code reads behind this text: it needs PADDING"
        raise ValueError(msg)
    return text.ctypes.data


def rows_address(rows: npt.NDArray[np.int64]) -> int:
    """Return the address of rows of integers, of which compiled code reads and writes whole integers only."""
    return rows.ctypes.data


REFUSED = 0
"""Address that stands for text which is not understood."""
INTEGER, DECIMAL, SCIENTIFIC = range(3)
"""How a number is written: without a point, with one, with an exponent."""
_MAX_DEPTH = 60
"""Brackets inside one another that are followed. Their kinds are bits of one word, so 63 at most: deeper text is
refused, and doubling it is not possible."""
_MAX_EXPONENT = 10_000
"""Limit of exponents while they are read, so that they cannot overflow. Chosen: far beyond float64; doubling it changes
nothing."""
_EXACT_MANTISSA = np.uint64(2**53)
"""Integers up to it are float64 without rounding: a property of float64."""
_EXACT_POWER = 22
"""Largest power of ten that is a float64 without rounding: a property of float64."""
_POWERS = 10.0 ** np.arange(_EXACT_POWER + 1)
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _PLUS, _POINT, _ZERO, _NINE = b'"\\,:-+.09'
_SPACE, _NEWLINE, _RETURN, _TAB = b" \n\r\t"
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"
_UPPER_E, _LOWER_E, _LOWER_U, _LOWER_T, _LOWER_F, _LOWER_N = b"EeutfN"[:5] + b"n"
_SURROGATES, _LOW_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xDC00, 0xE000
_TRUE, _ALSE, _NULL = (np.uint64(int.from_bytes(text, "little")) for text in (b"true", b"alse", b"null"))
_FOUR_BYTES = np.uint64(2**32 - 1)
_ONE = np.uint64(1)
_EACH = int.from_bytes(b"\1" * 8, "little")  # multiplied by a byte: that byte eight times
_ONES, _TOPS = np.uint64(_EACH), np.uint64(0x80 * _EACH)
_SPACES, _QUOTES, _BACKSLASHES = (np.uint64(letter * _EACH) for letter in (_SPACE, _QUOTE, _BACKSLASH))


@compiled
def blank(at: Int) -> Int:
    """Return the address of the first byte from `at` on that is not white space."""
    while True:
        first = byte(at)
        if first > _SPACE:
            return at
        if first == _SPACE:
            others = word(at) ^ _SPACES
            at += first_byte(others) if others else 8
        elif first in (_NEWLINE, _RETURN, _TAB):
            at += 1
        else:
            return at


@compiled
def _odd(at: Int) -> Int:
    """Return the address of the first byte from `at` on that is not plain text: a quote, a backslash, or below 32."""
    while True:
        text = word(at)
        quotes, slashes = text ^ _QUOTES, text ^ _BACKSLASHES
        # the top bit of a byte is set where it is less than 32, or zero: exact for the lowest such byte of a word
        marks = ((text - _SPACES) & ~text) | ((quotes - _ONES) & ~quotes) | ((slashes - _ONES) & ~slashes)
        marks &= _TOPS
        if marks:
            return at + first_byte(marks)
        at += 8


@compiled
def string_end(at: Int) -> Int:
    """Return the address behind the closing quote of the string at `at`."""
    if byte(at) != _QUOTE:
        return REFUSED
    at = _odd(at + 1)
    while byte(at) == _BACKSLASH:
        at = _escape_end(at)
        if at == REFUSED:
            return REFUSED
        at = _odd(at)
    return at + 1 if byte(at) == _QUOTE else REFUSED


@compiled
def key_end(at: Int) -> Int:
    """Return the address behind the closing quote of the string at `at`, which has no escapes."""
    if byte(at) != _QUOTE:
        return REFUSED
    at = _odd(at + 1)
    return at + 1 if byte(at) == _QUOTE else REFUSED


@compiled
def _escape_end(at: Int) -> Int:
    """Return the address behind an escape, whose backslash is at `at`."""
    letter = byte(at + 1)
    if letter == _LOWER_U:
        unit = _code_unit(at + 2)
        if unit < _SURROGATES or unit >= _BEHIND_SURROGATES:
            return at + 6 if unit >= 0 else REFUSED
        paired = unit < _LOW_SURROGATES and byte(at + 6) == _BACKSLASH and byte(at + 7) == _LOWER_U
        return at + 12 if paired and _LOW_SURROGATES <= _code_unit(at + 8) < _BEHIND_SURROGATES else REFUSED
    for known in (34, 92, 47, 98, 102, 110, 114, 116):  # of "\\/bfnrt
        if letter == known:
            return at + 2
    return REFUSED


@compiled
def _code_unit(at: Int) -> Int:
    """Return what four hexadecimal digits say, -1 if there are others."""
    unit = 0
    for i in range(4):
        digit = byte(at + i)
        if _ZERO <= digit <= _NINE:
            unit = 16 * unit + digit - _ZERO
        elif 97 <= digit | 0x20 <= 102:  # a letter from a to f
            unit = 16 * unit + (digit | 0x20) - 87
        else:
            return -1
    return unit


@compiled
def value_behind(at: Int) -> Int:
    """Return the address of the value whose key ends before `at`."""
    at = blank(at)
    return blank(at + 1) if byte(at) == _COLON else REFUSED


@compiled
def number(at: Int) -> tuple[Int, bool, Int, Int, Int]:
    """Return (address behind, True if negative, digits, scale, how it is written): the value is digits · 10^scale."""
    negative = byte(at) == _MINUS
    at += negative
    digits, first, scale, written = np.uint64(0), at, 0, INTEGER
    while _ZERO <= byte(at) <= _NINE:
        digits = digits * np.uint64(10) + np.uint64(byte(at) - _ZERO)
        at += 1
    count = at - first
    if count == 0 or (count > 1 and byte(first) == _ZERO):
        return REFUSED, negative, digits, scale, written
    if byte(at) == _POINT:
        at += 1
        first, written = at, DECIMAL
        while _ZERO <= byte(at) <= _NINE:
            digits = digits * np.uint64(10) + np.uint64(byte(at) - _ZERO)
            at += 1
        scale = first - at
        count -= scale
        if scale == 0:
            return REFUSED, negative, digits, scale, written
    if byte(at) == _UPPER_E or byte(at) == _LOWER_E:
        at, exponent = _exponent(at + 1)
        scale, written = scale + exponent, SCIENTIFIC
    return REFUSED if count > SURE_DIGITS else at, negative, digits, scale, written


@compiled
def _exponent(at: Int) -> tuple[Int, Int]:
    """Return (address behind an exponent, its value)."""
    down = byte(at) == _MINUS
    at += down or byte(at) == _PLUS
    first, exponent = at, 0
    while _ZERO <= byte(at) <= _NINE:
        exponent = min(exponent * 10 + byte(at) - _ZERO, _MAX_EXPONENT)
        at += 1
    return REFUSED if at == first else at, -exponent if down else exponent


@compiled
def float_of(digits: Int, scale: Int) -> tuple[bool, Int]:
    """Return (True if it is certain, the float64 nearest to digits · 10^scale).

    One division or multiplication of two numbers that are exact rounds once (Clinger, 1990).
    """
    if digits > _EXACT_MANTISSA or abs(scale) > _EXACT_POWER:
        return False, 0.0
    if scale < 0:
        return True, np.float64(digits) / _POWERS[-scale]
    return True, np.float64(digits) * _POWERS[scale]


@compiled
def skip_value(at: Int) -> Int:
    """Return the address behind the JSON value at `at`, of any kind, after checking its grammar."""
    depth, kinds = 0, np.uint64(0)  # the lowest bit is 1 inside an object, 0 inside a list
    while at != REFUSED:
        first = byte(at)
        opens = first in (_OPEN_LIST, _OPEN_OBJECT)
        inner = blank(at + 1) if opens else at
        if opens and byte(inner) != first + 2:  # not the closing bracket, in ASCII
            depth, kinds = depth + 1, (kinds << _ONE) | np.uint64(first == _OPEN_OBJECT)
            at = _next_value(inner, kinds) if depth <= _MAX_DEPTH else REFUSED
            continue
        at, depth, kinds = _closed(inner + 1 if opens else _scalar_end(at), depth, kinds)
        if depth == 0:
            return at
        at = _next_value(blank(at + 1), kinds) if byte(at) == _COMMA else REFUSED
    return REFUSED


@compiled
def _closed(at: Int, depth: Int, kinds: Int) -> tuple[Int, Int, Int]:
    """Return (address behind the brackets that close right after a value, depth, kinds that are still open)."""
    while at != REFUSED and depth:
        at = blank(at)
        if byte(at) != (_CLOSE_OBJECT if kinds & _ONE else _CLOSE_LIST):
            break
        at, depth, kinds = at + 1, depth - 1, kinds >> _ONE
    return at, 0 if at == REFUSED else depth, kinds


@compiled
def _next_value(at: Int, kinds: Int) -> Int:
    """Return the address of the next value of what is open: behind a key in an object."""
    if not kinds & _ONE:
        return at
    at = string_end(at)
    return value_behind(at) if at != REFUSED else REFUSED


@compiled
def _scalar_end(at: Int) -> Int:
    """Return the address behind the string, number or word at `at`."""
    first = byte(at)
    if first == _QUOTE:
        return string_end(at)
    if first == _LOWER_T:
        return at + 4 if word(at) & _FOUR_BYTES == _TRUE else REFUSED
    if first == _LOWER_F:
        return at + 5 if word(at + 1) & _FOUR_BYTES == _ALSE else REFUSED
    if first == _LOWER_N:
        return at + 4 if word(at) & _FOUR_BYTES == _NULL else REFUSED
    return _number_end(at)


@compiled
def _number_end(at: Int) -> Int:
    """Return the address behind a number of any length."""
    at += byte(at) == _MINUS
    first = at
    while _ZERO <= byte(at) <= _NINE:
        at += 1
    if at == first or (at > first + 1 and byte(first) == _ZERO):
        return REFUSED
    if byte(at) == _POINT:
        at += 1
        first = at
        while _ZERO <= byte(at) <= _NINE:
            at += 1
        if at == first:
            return REFUSED
    if byte(at) == _UPPER_E or byte(at) == _LOWER_E:
        return _exponent(at + 1)[0]
    return at
