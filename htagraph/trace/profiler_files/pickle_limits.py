"""Refusing pickles that would take far more memory or time than their size suggests, before they are loaded.

Python's unpickler makes room for any memo index it is given, up to 64 GB for five bytes. A tuple that holds one tuple
twice, which holds one twice, and so on, takes time that doubles with each level once it is the key of a dict.
"""

from __future__ import annotations

import pickle
from typing import Final

from htagraph.core.errors import NotATraceError

__all__ = ["MAX_BYTES", "refuse_excessive"]

MAX_BYTES = 8 << 30
"""Bytes of memory that a pickle may take by a rough estimate. Chosen: snapshots of 300 MB stay below. Doubled, larger
snapshots are read, and hostile files of such sizes take twice the memory."""
_OPCODE_BYTES = 64  # of an object that an opcode makes, or of its place in a list or dict
_SET_BYTES = 224  # of an empty set: the object that takes most for one byte of a pickle
_CHAR_BYTES = 4  # at most, in Python's texts

_LINE, _BYTE, _INT32, _INT64 = -1, -2, -3, -4
_LENGTHS: Final = {_BYTE: 1, _INT32: 4, _INT64: 8}


def _table(groups: dict[int, tuple[bytes, ...]]) -> dict[int, int]:
    return {opcode[0]: length for length, opcodes in groups.items() for opcode in opcodes}


_SCALARS: Final = _table(
    {
        0: (pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.EMPTY_TUPLE),
        1: (pickle.BININT1,),
        2: (pickle.BININT2,),
        4: (pickle.BININT,),
        8: (pickle.BINFLOAT,),
        _LINE: (pickle.INT, pickle.LONG, pickle.FLOAT, pickle.STRING, pickle.UNICODE),
        _BYTE: (pickle.LONG1, pickle.SHORT_BINSTRING, pickle.SHORT_BINBYTES, pickle.SHORT_BINUNICODE),
        _INT32: (pickle.LONG4, pickle.BINSTRING, pickle.BINBYTES, pickle.BINUNICODE),
        _INT64: (pickle.BINBYTES8, pickle.BINUNICODE8),
    }
)
_OTHERS: Final = _table(
    {
        0: (
            pickle.MARK, pickle.POP, pickle.POP_MARK, pickle.EMPTY_LIST, pickle.EMPTY_DICT, pickle.EMPTY_SET,
            pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS, pickle.LIST, pickle.DICT,
            pickle.FROZENSET, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.MEMOIZE,
        ),
        1: (pickle.PROTO, pickle.BINGET, pickle.BINPUT),
        4: (pickle.LONG_BINGET, pickle.LONG_BINPUT),
        8: (pickle.FRAME,),
        _LINE: (pickle.GET, pickle.PUT),
        _INT64: (pickle.BYTEARRAY8,),
    }
)  # fmt: skip
_TUPLES: Final = {pickle.TUPLE1[0]: 1, pickle.TUPLE2[0]: 2, pickle.TUPLE3[0]: 3, pickle.TUPLE[0]: 0}
_PUTS: Final = frozenset(opcode[0] for opcode in (pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT))
_GETS: Final = frozenset(opcode[0] for opcode in (pickle.GET, pickle.BINGET, pickle.LONG_BINGET))
_SETS: Final = frozenset((pickle.EMPTY_SET[0], pickle.FROZENSET[0]))
_MARK, _MEMOIZE = pickle.MARK[0], pickle.MEMOIZE[0]


def refuse_excessive(data: bytes, path: object) -> None:
    """Raise an error for a pickle that takes far more memory or time than its size suggests.

    It stops without an error at whatever pickles of plain values do not have: there, the unpickler refuses them.

    Args:
        data: the pickle.
        path: of the file, for the error.

    Raises:
        NotATraceError: it numbers its values beyond their count, repeats tuples in tuples, or takes too much memory.
    """
    # scalars: how many values without parts came last; marked: True if only such came since the last mark;
    # tuple_of_others: True if the last value is a tuple that may hold other tuples; nested: memo indices of those
    at = opcode = opcodes = cost = memos = scalars = 0
    length: int | None = 0
    marked = tuple_of_others = False
    nested: set[int] = set()
    while at < len(data):
        opcode = data[at]
        at, opcodes = at + 1, opcodes + 1
        length = _SCALARS.get(opcode)
        if length is not None:
            scalars += 1
            tuple_of_others = False
            first, at = at, _behind(data, at, length)
            cost += _CHAR_BYTES * (at - first)
            continue
        length = _OTHERS.get(opcode)
        if length is None:
            break
        first, at = at, _behind(data, at, length)
        if opcode == _MEMOIZE or opcode in _PUTS:
            index = memos if opcode == _MEMOIZE else _index(data[first:at], is_text=length == _LINE)
            if not 0 <= index <= opcodes:
                raise _refusal(path, f"it numbers value {index}, but has {opcodes} before it")
            memos += 1
            (nested.add if tuple_of_others else nested.discard)(index)
            continue
        if opcode in _GETS and _index(data[first:at], is_text=length == _LINE) in nested:
            raise _refusal(path, "it repeats tuples in tuples")
        if opcode in _TUPLES:
            tuple_of_others = not (marked if opcode == pickle.TUPLE[0] else scalars >= _TUPLES[opcode])
        else:
            tuple_of_others = False
        marked = opcode == _MARK
        scalars = 0
        cost += _SET_BYTES if opcode in _SETS else 0
    if length is None and opcode == pickle.DUP[0]:
        raise _refusal(path, "it repeats values as no writer of snapshots does")
    cost += _OPCODE_BYTES * opcodes
    if cost > MAX_BYTES:
        raise _refusal(path, f"it may take {cost >> 20:,} MiB of memory, more than {MAX_BYTES >> 20:,} MiB")


def _behind(data: bytes, at: int, length: int) -> int:
    """Return the position behind an opcode's argument."""
    if length >= 0:
        return at + length
    if length == _LINE:
        line = data.find(b"\n", at)
        return len(data) if line < 0 else line + 1
    size = _LENGTHS[length]
    return at + size + int.from_bytes(data[at : at + size], "little")


def _index(argument: bytes, *, is_text: bool) -> int:
    if not is_text:
        return int.from_bytes(argument, "little")
    digits = argument.strip()
    return int(digits) if digits.isdigit() and len(digits) < 20 else -1


def _refusal(path: object, why: str) -> NotATraceError:
    return NotATraceError(f"{path}: not a memory snapshot that can be loaded safely: {why}")
