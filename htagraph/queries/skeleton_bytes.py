"""A skeleton as few bytes, and back: differences of neighbours as variable-length numbers, compressed.

The bytes are one zlib stream. Inside it, every number is a LEB128 variable-length number; one that may be negative is
written as ``2 n`` or ``-2 n - 1``. In this order:

1. the version of this format, the origin (ns), the length of the description, and the description: JSON in UTF-8 with
   the ``classes`` (``names``, ``limits``, ``switches``, ``parts``, as in `TimeClasses`);
2. the number of vertices, of terminals, and of edges;
3. the vertices' numbers, each as the difference to the one before;
4. which vertices are terminals, each as the difference to the one before;
5. how many edges enter each vertex;
6. of each edge, by (target, source), how far its source lies before its target in the list of vertices;
7. of each edge the first component of its weight (ns), each as the number itself;
8. of each further component, the number of edges where it is not 0, these edges as differences, and the components;
9. the number of steps, and of members; the columns of `Steps`, then those of `MatchedMembers`, each value as the
   difference to the one before.

A reader in another language needs nothing else; `Skeleton.times` is a loop over the edges in this order.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, fields

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.errors import HtagraphError
from htagraph.graph.measures.steps import Steps
from htagraph.queries.skeleton import MatchedMembers, Skeleton
from htagraph.queries.time_classes import END, LAST, TimeClasses
from htagraph.trace.profiler_files.files import inflated

__all__ = ["Numbers", "differences", "from_bytes", "packed", "to_bytes", "unpacked"]

_VERSION = 1
"""Of the bytes; it rises where older ones can no longer be read."""
_MAX_BYTES = 1 << 30
"""The most bytes that a skeleton is unpacked to. Chosen: a hundred million edges. Reading takes some 50 bytes of memory
for each; doubled, damaged or hostile bytes take twice as much before they are refused."""


def to_bytes(skeleton: Skeleton) -> bytes:
    """Return a skeleton as bytes; see the module for the format.

    Example:
        >>> import htagraph as hg
        >>> skeleton = hg.contract(hg.load("data/demo"))
        >>> from_bytes(to_bytes(skeleton)).makespan_ns() == skeleton.makespan_ns()
        True
    """
    text = json.dumps(asdict(skeleton.classes), separators=(",", ":")).encode()
    terminals = np.flatnonzero(skeleton.terminal)
    entering = np.bincount(skeleton.target, minlength=len(skeleton.vertex))
    amounts = []
    for column in skeleton.weight.T[1:]:
        some = np.flatnonzero(column)
        amounts += [[len(some)], differences(some), signed_numbers(column[some])]
    tables = [getattr(table, each.name) for table in (skeleton.steps, skeleton.members) for each in fields(table)]
    parts = [
        [_VERSION], signed_numbers([skeleton.origin_ns]), [len(text)], np.frombuffer(text, np.uint8),
        [len(skeleton.vertex), len(terminals), len(skeleton.source)],
        differences(skeleton.vertex), differences(terminals), entering,
        skeleton.target - skeleton.source, signed_numbers(skeleton.weight[:, 0]), *amounts,
        [len(skeleton.steps.rank), len(skeleton.members.rank)], *(differences(column) for column in tables),
    ]  # fmt: skip
    return zlib.compress(packed(np.concatenate([np.asarray(part).astype(np.uint64) for part in parts])), 9)


def from_bytes(data: bytes) -> Skeleton:
    """Return the skeleton that `to_bytes` wrote."""
    try:
        return _read(Numbers(unpacked(inflated(data, _MAX_BYTES))))
    except (zlib.error, LookupError, RecursionError, TypeError, ValueError) as error:
        msg = f"no skeleton: {error}; give the bytes that Skeleton.to_bytes wrote"
        raise HtagraphError(msg) from error


class Numbers:
    """Numbers that are read one after the other."""

    def __init__(self, numbers: Array) -> None:
        self.numbers, self.at = numbers, 0

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next numbers."""
        if not 0 <= count <= len(self.numbers) - self.at:
            msg = "the bytes end early"
            raise ValueError(msg)
        self.at += count
        return self.numbers[self.at - count : self.at]

    def one(self) -> int:
        """Return the next number."""
        return int(self.take(1)[0])

    def signed(self, count: int) -> npt.NDArray[np.int64]:
        """Return the next numbers, which may be negative."""
        number = self.take(count)
        half = (number >> np.uint64(1)).astype(np.int64)
        return np.where(number & np.uint64(1), -half - 1, half)

    def sums(self, count: int) -> npt.NDArray[np.int64]:
        """Return the numbers whose differences come next."""
        return np.cumsum(self.signed(count))


def _read(numbers: Numbers) -> Skeleton:
    if numbers.one() != _VERSION:
        msg = "another version of the format"
        raise ValueError(msg)
    origin = int(numbers.signed(1)[0])
    found = json.loads(numbers.take(numbers.one()).astype(np.uint8).tobytes())
    parts = tuple(tuple(part) for part in found["parts"])
    classes = TimeClasses(tuple(found["names"]), tuple(found["limits"]), tuple(found["switches"]), parts)
    vertices, terminals, edges = (int(number) for number in numbers.take(3))
    vertex, terminal = numbers.sums(vertices), np.zeros(vertices, np.bool_)
    terminal[numbers.sums(terminals)] = True
    target = np.repeat(np.arange(vertices), numbers.take(vertices).astype(np.int64))
    source = target - numbers.take(edges).astype(np.int64)
    weight = np.zeros((edges, 1 + len(parts)), np.int64)
    weight[:, 0] = numbers.signed(edges)
    for column in weight.T[1:]:
        count = numbers.one()
        some = numbers.sums(count)
        column[some] = numbers.signed(count)
    if len(source) != edges or (source < 0).any() or (source >= target).any():
        msg = "edges do not lead forwards"
        raise ValueError(msg)
    steps, members = (int(number) for number in numbers.take(2))
    read = Skeleton(
        origin, vertex, terminal, source.astype(np.int32), target.astype(np.int32), weight, classes,
        Steps(*(numbers.sums(steps) for _ in fields(Steps))),
        MatchedMembers(*(numbers.sums(members) for _ in fields(MatchedMembers))),
    )  # fmt: skip
    meant = read.steps.start, read.steps.end, 2 * read.members.activity, read.members.join[read.members.join >= 0]
    read.positions(np.concatenate([[END, LAST], *meant]))  # which complains of a vertex that is not there
    return read


def signed_numbers(numbers: Array | Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return numbers as such that are not negative: 2 n, or -2 n - 1."""
    values = np.asarray(numbers, np.int64)
    return ((values << 1) ^ (values >> 63)).astype(np.uint64)


def differences(numbers: Array) -> npt.NDArray[np.uint64]:
    """Return the difference of each number to the one before as a number that is not negative; sums wrap around."""
    return signed_numbers(np.diff(numbers.astype(np.int64), prepend=np.int64(0)))


def packed(numbers: npt.NDArray[np.uint64]) -> bytes:
    """Return numbers in variable length: seven bits a byte, the lowest first, the top bit set if more follow."""
    digits = (numbers[:, None] >> np.arange(0, 7 * 10, 7, dtype=np.uint64)).astype(np.uint8) & np.uint8(127)
    used = np.maximum(10 - (digits[:, ::-1] != 0).argmax(axis=1), 1)
    used[numbers == 0] = 1
    place = np.arange(10)
    digits[place < used[:, None] - 1] |= np.uint8(128)
    return digits[place < used[:, None]].tobytes()


def unpacked(data: bytes) -> npt.NDArray[np.uint64]:
    """Return the numbers that `packed` wrote."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 128)
    if not len(raw) or last[-1:].tolist() != [len(raw) - 1]:
        msg = "the bytes end within a number"
        raise ValueError(msg)
    first = np.concatenate([[0], last[:-1] + 1])
    place = np.arange(len(raw)) - np.repeat(first, last - first + 1)
    if place.max() >= 10:
        msg = "a number is too long"
        raise ValueError(msg)
    return np.add.reduceat((raw & np.uint8(127)).astype(np.uint64) << (7 * place).astype(np.uint64), first)
