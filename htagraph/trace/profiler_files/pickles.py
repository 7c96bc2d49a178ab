"""Pickles of plain values (dicts, lists, tuples, numbers, text). Anything else is refused, so no code can run."""

from __future__ import annotations

import io
import pickle
import pickletools
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.trace.profiler_files.files import content

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_ODD_KEYS", "read_plain_pickle", "refuse_excessive"]


class _Refused(pickle.UnpicklingError):
    """The pickle names a class or function."""


class _PlainUnpickler(pickle.Unpickler):
    """Loads built-in values only: refuses every class, function and external object that a pickle can name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        msg = f"{module}.{name}"
        raise _Refused(msg)

    def persistent_load(self, pid: object) -> NoReturn:
        msg = f"persistent object {pid!r}"
        raise _Refused(msg)


def read_plain_pickle(path: str | Path) -> Any:  # noqa: ANN401 - whatever was pickled
    """Return the value in a pickle file (gzipped or not) that holds built-in values only.

    Pickles that name a class or function (no code of it was run), and those that would take far more memory than their
    size suggests, raise a NotATraceError.
    """
    data = content(path)
    refuse_excessive(data, path)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _Refused as error:
        msg = f"{path}: the pickle names {error}; memory snapshots hold plain values only, so it was not loaded"
        raise NotATraceError(msg) from None
    except EOFError:
        msg = f"{path}: the pickle ends early; was the job killed while it dumped the snapshot?"
        raise DamagedTraceError(msg) from None
    except Exception as error:  # noqa: BLE001 - damaged opcodes can raise any exception
        msg = f"{path}: not a readable pickle ({type(error).__name__}: {str(error)[:100]})"
        raise NotATraceError(msg) from None


MAX_BYTES = 8 << 30
"""Bytes of memory that a pickle may take by a rough estimate. Chosen: snapshots of 300 MB stay below. Doubled, larger
snapshots are read, and hostile files of such sizes take twice the memory."""
MAX_DEPTH = 100
"""Levels of tuples in tuples. Chosen: snapshots have none, and Python's stack has room for thousands. Doubled, deeper
ones are loaded."""
MAX_ODD_KEYS = 10_000
"""Keys of dicts and members of sets whose hashes a stranger can choose: neither text nor short numbers. Chosen:
snapshots have none, and comparing so many with one another takes a second. Doubled, it takes four."""
_COMPILED_FROM = 1 << 19
"""Bytes from which the scan is compiled. Measured: Python scans them in as much time as loading numba takes, 0.25 s.
Doubled, files between take as long again."""
_OPCODE_BYTES = 64
"""Memory of an object that an opcode makes, or of its place in a list or dict, as CPython has it at most."""
_SET_BYTES = 224
"""Memory of an empty set in CPython: the object that takes most for one byte of a pickle."""
_CHAR_BYTES = 4
"""Memory of a letter of a text in CPython, at most."""
_FARTHEST = 1 << 48
"""Larger numbers in a pickle count as this one, which is beyond any file."""
_NEWLINE, _ZERO = 10, 48  # as bytes
_SHORT_BYTES = 8
"""Of a number and its length: numbers below 2^61 are their own hashes."""

# Sorts of values: the lowest bits of a word; above them is how many parts a flat tuple has, or levels a nested one. A
# word of 0 is no value.
_PLAIN, _ODD, _FLAT, _NESTED, _MARKED = 1, 2, 3, 4, 5
_SORT_BITS = 3
"""Bits of a word that say its sort."""
_SORTS = (1 << _SORT_BITS) - 1

# What opcodes do: put a value of one of these sorts on the stack, or one of these
_NUMBER, _TUPLE, _NOTHING, _PUT, _MEMOIZE, _GET, _END, _FORBIDDEN = range(6, 14)
_LINE, _BYTE, _INT32, _INT64 = 101, 102, 103, 104  # lengths of arguments that are not fixed
_TO_MARK, _ANY = 201, 202  # how many values an opcode takes from the stack, where it is no fixed number of values
_LENGTHS: Final = {
    pickletools.UP_TO_NEWLINE: _LINE, pickletools.TAKEN_FROM_ARGUMENT1: _BYTE, pickletools.TAKEN_FROM_ARGUMENT4: _INT32,
    pickletools.TAKEN_FROM_ARGUMENT4U: _INT32, pickletools.TAKEN_FROM_ARGUMENT8U: _INT64,
}  # fmt: skip
_OPCODES: Final = {
    _PLAIN: (
        "NONE NEWTRUE NEWFALSE EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET LIST DICT BININT1 BININT2 BININT STRING "
        "UNICODE SHORT_BINSTRING SHORT_BINBYTES SHORT_BINUNICODE BINSTRING BINBYTES BINUNICODE BINBYTES8 BINUNICODE8 "
        "BYTEARRAY8"
    ),
    _ODD: "BINFLOAT FLOAT LONG4",
    _NUMBER: "INT LONG LONG1",
    _MARKED: "MARK",
    _TUPLE: "TUPLE1 TUPLE2 TUPLE3 TUPLE FROZENSET",
    _NOTHING: "POP POP_MARK APPEND APPENDS SETITEM SETITEMS ADDITEMS PROTO FRAME",
    _PUT: "BINPUT LONG_BINPUT PUT",
    _MEMOIZE: "MEMOIZE",
    _GET: "BINGET LONG_BINGET GET",
    _FORBIDDEN: "DUP BUILD READONLY_BUFFER",  # no writer of snapshots, and yet no class
}
"""Opcodes by what they do. The scan ends at all others: the unpickler ends there too, or refuses them."""
_TAKES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "SETITEM": 2, "APPEND": 1, "POP": _ANY} | dict.fromkeys(
    ("TUPLE", "FROZENSET", "LIST", "DICT", "POP_MARK", "APPENDS", "SETITEMS", "ADDITEMS"), _TO_MARK
)
_KEY_EVERY: Final = {"SETITEM": 2, "SETITEMS": 2, "DICT": 2, "ADDITEMS": 1, "FROZENSET": 1}
"""Which of the values taken are keys: every first, or every second."""
_ACTION, _LENGTH, _TAKEN, _KEY, _COST, _COST_OF_BYTE, _COLUMNS = range(7)


def _table() -> list[int]:
    """Return a row per opcode: what it does, its argument's length, what it takes, which are keys, bytes it makes."""
    rows = [[_END, 0, 0, 0, _OPCODE_BYTES, 0] for _ in range(256)]
    actions = {name: action for action, names in _OPCODES.items() for name in names.split()}
    for opcode in pickletools.opcodes:
        name = opcode.name
        if (action := actions.get(name)) is not None:
            length = opcode.arg.n if opcode.arg else 0
            cost = _OPCODE_BYTES + (_SET_BYTES if name in ("EMPTY_SET", "FROZENSET") else 0)
            of_byte = _CHAR_BYTES if action in (_PLAIN, _ODD, _NUMBER) else 0
            taken, keys = _TAKES.get(name, 0), _KEY_EVERY.get(name, 0)
            rows[ord(opcode.code)] = [action, _LENGTHS.get(length, length), taken, keys, cost, of_byte]
    return [number for row in rows for number in row]


_TABLE: Final = _table()
_STRANGE, _UNNUMBERED, _REPEATED = range(1, 4)  # what may be wrong; 0 is nothing


def refuse_excessive(data: bytes, path: object) -> None:
    """Raise an error for a pickle that takes far more memory or time than its size suggests.

    It stops without an error at whatever pickles of plain values do not have: there, the unpickler refuses them.
    """
    fault, number, cost, keys, levels = _scanned(data)
    if fault == _UNNUMBERED:
        raise _refusal(path, f"it numbers value {number}, but has fewer before it")
    if fault == _REPEATED:
        raise _refusal(path, "it repeats tuples in tuples")
    if fault == _STRANGE:
        raise _refusal(path, "it repeats values or changes them as no writer of snapshots does")
    if levels > MAX_DEPTH:
        raise _refusal(path, f"it has tuples in tuples {levels:,} levels deep, more than {MAX_DEPTH:,}")
    if keys > MAX_ODD_KEYS:
        raise _refusal(path, f"{keys:,} of its keys are neither text nor short numbers, more than {MAX_ODD_KEYS:,}")
    if cost > MAX_BYTES:
        raise _refusal(path, f"it may take {cost >> 20:,} MiB of memory, more than {MAX_BYTES >> 20:,} MiB")


def _refusal(path: object, why: str) -> NotATraceError:
    return NotATraceError(f"{path}: not a memory snapshot that can be loaded safely: {why}")


def _scanned(data: bytes) -> tuple[int, int, int, int, int]:
    """Return what `_scan` returns, in the quicker of two ways."""
    room = len(data) + 1  # the stack and the memo hold at most a value per opcode
    if room <= _COMPILED_FROM:
        return _scan(data, _TABLE, [0] * room, [0] * room)
    import numpy as np

    from htagraph.core.compiled import for_reading

    return _compiled()(
        for_reading(np.frombuffer(data, np.uint8), np.uint8), for_reading(np.array(_TABLE), np.int64),
        np.zeros(room, np.int64), np.zeros(room, np.int64),
    )  # fmt: skip


@cache
def _compiled() -> Any:  # noqa: ANN401 - numba has no types
    """Return `_scan`, compiled; numba is loaded here because small files do without it."""
    from numba.extending import register_jitable

    from htagraph.core.compiled import njit

    for function in (_behind, _number, _from, _made, _levels, _odd_keys):
        register_jitable(function)
    return njit(cache=True, nogil=True)(_scan)


def _scan(data: Any, table: Any, stack: Any, memo: Any) -> tuple[int, int, int, int, int]:  # noqa: ANN401
    """Return (what is wrong, at which number, bytes it may take, keys with chosen hashes, levels of tuples)."""
    at = top = cost = opcodes = memos = keys = levels = 0
    while at < len(data):
        row = data[at] * _COLUMNS
        action, length, taken = table[row], table[row + _LENGTH], table[row + _TAKEN]
        first, opcodes = at + 1, opcodes + 1
        at = _behind(data, first, length)
        cost += table[row + _COST] + table[row + _COST_OF_BYTE] * (at - first)
        if action >= _END:
            return action - _END, 0, cost, keys, levels
        if action >= _PUT:
            index = memos if action == _MEMOIZE else _number(data, first, at, length)
            if not 0 <= index <= opcodes:
                return _UNNUMBERED, index, cost, keys, levels
            if action != _GET:
                memos += memo[index] == 0
                memo[index] = stack[top - 1]
                continue
            word = memo[index]
            if word & _SORTS == _NESTED:
                return _REPEATED, index, cost, keys, levels
            cost += _OPCODE_BYTES * (word >> _SORT_BITS)  # hashing takes as long as if its parts were there again
        else:
            begin = _from(stack, top, taken)
            if begin < 0:
                break
            keys += _odd_keys(stack, begin, top, table[row + _KEY])
            word = _made(action, at - first, stack, begin, top)
            levels = max(levels, _levels(word))
            top = begin - (taken == _TO_MARK)
        if word:
            stack[top] = word
            top += 1
    return 0, 0, cost, keys, levels


def _behind(data: Any, first: int, length: int) -> int:  # noqa: ANN401
    """Return the position behind an opcode's argument, which begins at `first`."""
    if length < _LINE:
        return first + length
    if length == _LINE:
        while first < len(data) and data[first] != _NEWLINE:
            first += 1
        return first + 1
    size = 1 if length == _BYTE else 4 if length == _INT32 else 8
    return first + size + _number(data, first, min(first + size, len(data)), 0)


def _number(data: Any, first: int, stop: int, length: int) -> int:  # noqa: ANN401
    """Return the number in an argument, little-endian or a line of digits; -1 for any other line."""
    number = 0
    if length != _LINE:
        for at in range(min(stop, len(data)) - 1, first - 1, -1):
            number = min(number * 256 + data[at], _FARTHEST)
        return number
    if first >= stop - 1:
        return -1
    for at in range(first, min(stop - 1, len(data))):
        if not _ZERO <= data[at] < _ZERO + 10:
            return -1
        number = min(number * 10 + data[at] - _ZERO, _FARTHEST)
    return number


def _from(stack: Any, top: int, taken: int) -> int:  # noqa: ANN401
    """Return where the values begin that an opcode takes from the stack; below 0 if they are not there."""
    if taken == _ANY:
        return top - 1
    begin = top
    while begin > 0 and (taken == _TO_MARK or top - begin < taken) and stack[begin - 1] != _MARKED:
        begin -= 1
    complete = (begin > 0) if taken == _TO_MARK else (top - begin == taken)
    return begin if complete else -1


def _made(action: int, length: int, stack: Any, begin: int, top: int) -> int:  # noqa: ANN401
    """Return the word of what an opcode makes, from its argument's length or the values from `begin` to `top`."""
    if action == _NUMBER:
        return _PLAIN if length <= _SHORT_BYTES else _ODD
    if action != _TUPLE:
        return 0 if action == _NOTHING else action
    levels = 0
    for at in range(begin, top):
        levels = max(levels, _levels(stack[at]))
    return ((levels + 1) << _SORT_BITS) + _NESTED if levels else ((top - begin) << _SORT_BITS) + _FLAT


def _levels(word: int) -> int:
    """Return how many levels of tuples a value has."""
    sort = word & _SORTS
    return word >> _SORT_BITS if sort == _NESTED else int(sort == _FLAT)


def _odd_keys(stack: Any, begin: int, top: int, every: int) -> int:  # noqa: ANN401
    """Return how many keys have hashes that a stranger can choose, among each `every`-th value, or none if it is 0."""
    if every == 0:
        return 0
    odd = 0
    for at in range(begin, top, every):
        odd += stack[at] != _PLAIN
    return odd
