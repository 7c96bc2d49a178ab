"""The parts of a graph ↔ JSON and a list of arrays, without pickle: only the classes in `_CLASSES` are ever made.

JSON's texts, numbers, lists, true, false and null stand for themselves; everything else is an object with one key that
says what it is. Classes are stored field by field, so a field that is added to one of them is stored without a change
here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.issues import Issue
from htagraph.graph.activities import Activities, Edges, Lane
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import Matches
from htagraph.graph.tree import Tree
from htagraph.trace.columns import Flows, SparseColumn, Table, Trace
from htagraph.trace.facts import Device, Facts, Group
from htagraph.trace.remote import RemotePath, TracePath, is_url

__all__ = ["SCHEMA", "are_within", "pack", "unpack"]

Json: TypeAlias = Any

_CLASSES: Final[dict[str, type[Any]]] = {
    each.__name__: each
    for each in (
        Activities, Clock, DependencyGraph, Edges, Flows, Issue, Lane, Matches, SparseColumn, Table, Trace, Tree,
        Device, Facts, Group,
    )
}  # fmt: skip
_MANY_TEXTS: Final = 16
"""Texts from which they lie in one array instead of the manifest. Chosen: two rows of arrays are as long as a dozen
names. Doubled, manifests of many ranks grow by a few percent."""
_PLAIN_BITS: Final = 63
"""Bits of integers that are JSON numbers: others would be refused by Python's limit on digits if they are very long."""


SCHEMA: Final = {name: [each.name for each in dataclasses.fields(cls)] for name, cls in _CLASSES.items()}
"""The fields of each class that is stored: what is stored under another schema is another graph's."""


def pack(value: Any) -> tuple[Json, list[Array]]:  # noqa: ANN401 - a graph or a part of one
    """Return a value as JSON, and the arrays that it refers to by number; equal objects share one.

    Raises:
        TypeError: it holds something that is neither plain nor of a known class; the message names the class.
    """
    packer = _Packer()
    content = packer.pack(value)
    return {"value": content, "texts": len(packer.arrays)}, [*packer.arrays, *packer.texts()]


def unpack(content: Json, arrays: Sequence[Array]) -> Any:  # noqa: ANN401 - a graph or a part of one
    """Return the value of which `pack` made this.

    Raises:
        LookupError, TypeError, ValueError: nothing was packed like this.
    """
    first = content["texts"]
    return _Unpacker(arrays, _split(*arrays[first : first + 2])).unpack(content["value"])


def are_within(references: Iterable[tuple[Array, int, int]]) -> bool:
    """Return whether what stored numbers refer to is there: all of each array are from one bound up to another.

    Args:
        references: arrays of integers, each with the least number that it may hold and that above the largest one.

    Example:
        >>> are_within([(np.array([-1, 2]), -1, 3)]), are_within([(np.array([0, 3]), 0, 3)])
        (True, False)
    """
    return all(
        not len(each) or bool(least <= int(each.min()) and int(each.max()) < most) for each, least, most in references
    )


class _Packer:
    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[int, int] = {}
        self._codes: dict[str, int] = {}

    def texts(self) -> tuple[Array, Array]:
        """Return the distinct texts of all long tuples: their bytes one after another, and where each ends.

        Ranks have mostly the same names. Ends count characters, because slicing texts is quicker than decoding each.
        """
        # names may hold halves of surrogate pairs, which JSON can spell and UTF-8 cannot
        blob = np.frombuffer("".join(self._codes).encode("utf-8", "surrogatepass"), np.uint8)
        return blob, np.fromiter(accumulate(map(len, self._codes)), np.int64, len(self._codes))

    def pack(self, value: Any) -> Json:  # noqa: ANN401
        kind = type(value)
        if value is None or kind in (bool, float, str):
            return value
        if kind is int:
            return value if value.bit_length() <= _PLAIN_BITS else {"int": hex(value)}
        if isinstance(value, np.generic):
            return self.pack(value.item())
        if kind.__name__ in _CLASSES and _CLASSES[kind.__name__] is kind:
            return self._object(value)
        return self._collection(value)

    def _collection(self, value: Any) -> Json:  # noqa: ANN401
        if isinstance(value, np.ndarray):
            return {"array": self._number(value)}
        if isinstance(value, tuple):
            return self._tuple(value)
        if isinstance(value, list):
            return [self.pack(each) for each in value]
        if isinstance(value, Mapping):
            return {"map": [[self.pack(key), self.pack(each)] for key, each in value.items()]}
        if isinstance(value, Path | RemotePath):
            return {"path": str(value)}
        msg = f"{type(value).__name__} cannot be stored with a graph"
        raise TypeError(msg)

    def _object(self, value: Any) -> Json:  # noqa: ANN401
        name = type(value).__name__
        return {"object": [name, {field: self.pack(getattr(value, field)) for field in SCHEMA[name]}]}

    def _tuple(self, value: tuple[Any, ...]) -> Json:
        kinds = {type(each) for each in value}
        if kinds == {str} and len(value) >= _MANY_TEXTS:
            codes = self._codes
            numbers = [codes.setdefault(text, len(codes)) for text in value]
            return {"texts": self._number(np.array(numbers, np.int32))}
        name = next(iter(kinds)).__name__ if len(kinds) == 1 else ""
        if name in _CLASSES and _CLASSES[name] in kinds:
            columns = [[self.pack(getattr(each, field)) for each in value] for field in SCHEMA[name]]
            return {"objects": [name, dict(zip(SCHEMA[name], columns, strict=True))]}
        return {"tuple": [self.pack(each) for each in value]}

    def _number(self, array: Array) -> int:
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)  # which also keeps its id from being used again
        return self._numbers[id(array)]


def _split(blob: Array, ends: Array) -> list[str]:
    """Return the texts of which `_Packer.texts` made this."""
    text = blob.tobytes().decode("utf-8", "surrogatepass")
    return [text[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


def _path(text: str) -> TracePath:
    return RemotePath(text) if is_url(text) else Path(text)


class _Unpacker:
    def __init__(self, arrays: Sequence[Array], texts: Sequence[str]) -> None:
        self._arrays = arrays
        self._texts = texts
        self._by_key: dict[str, Callable[[Any], Any]] = {
            "array": self._array, "int": lambda text: int(text, 16), "map": self._map,
            "object": self._object, "objects": self._objects, "path": _path, "texts": self._tuple_of_texts,
            "tuple": self._tuple,
        }  # fmt: skip

    def unpack(self, value: Json) -> Any:  # noqa: ANN401
        if isinstance(value, list):
            return [self.unpack(each) for each in value]
        if isinstance(value, dict):
            ((key, inner),) = value.items()
            return self._by_key[key](inner)
        return value

    def _array(self, number: int) -> Array:
        return self._arrays[number]

    def _map(self, pairs: Iterable[tuple[Json, Json]]) -> dict[Any, Any]:
        return {self.unpack(key): self.unpack(each) for key, each in pairs}

    def _tuple(self, parts: Iterable[Json]) -> tuple[Any, ...]:
        return tuple(self.unpack(each) for each in parts)

    def _object(self, parts: tuple[str, dict[str, Json]]) -> Any:  # noqa: ANN401
        name, fields = parts
        _same_fields(name, fields)
        return _CLASSES[name](**{field: self.unpack(each) for field, each in fields.items()})

    def _objects(self, parts: tuple[str, dict[str, list[Json]]]) -> tuple[Any, ...]:
        name, columns = parts
        _same_fields(name, columns)
        rows = zip(*(map(self.unpack, columns[field]) for field in SCHEMA[name]), strict=True)
        return tuple(_CLASSES[name](*row) for row in rows)

    def _tuple_of_texts(self, number: int) -> tuple[str, ...]:
        return tuple(map(self._texts.__getitem__, self._arrays[number].tolist()))


def _same_fields(name: str, fields: Iterable[str]) -> None:
    if set(fields) != set(SCHEMA[name]):
        msg = f"{name} has other fields in this release"
        raise TypeError(msg)
