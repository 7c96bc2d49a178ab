"""Save a graph to a folder, and open it again: everything that it answers afterwards is equal.

The parts of a graph are JSON and a list of arrays, without pickle: only the classes in `_CLASSES` are ever made.
JSON's texts, numbers, lists, true, false and null stand for themselves; everything else is an object with one key
that says what it is. Classes are stored field by field, so a field that is added to one of them is stored without a
change here.

A file has a head of 64 bytes (`_HEAD`: magic word, format, where the manifest is, its digest; then the head's own
digest), the arrays, each on a multiple of 64 bytes, then the manifest: JSON with the caller's part and a row per array.
Plain JSON and plain numbers only, so that reading a file never runs code that it brings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from types import GenericAlias, UnionType
from typing import IO, Any, Final, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import GraphError, Issue, StoredGraphError, TraceError, check_type
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Activities, Edges, Lane
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import Matches
from htagraph.graph.tree import Tree
from htagraph.trace.columns import (
    MAX_RANKS,
    TEXTS,
    Device,
    Events,
    Facts,
    Flows,
    Group,
    NodeDependencies,
    SparseColumn,
    Trace,
)
from htagraph.trace.discover import TracePaths, rank_files
from htagraph.trace.remote import RemotePath, TracePath, fingerprint, is_url

try:  # three times as fast as zlib
    from isal.isal_zlib import crc32
except ImportError:  # processors that isal has no package for
    from zlib import crc32

__all__ = [
    "GRAPH_FILE", "SCHEMA", "are_within", "open", "pack", "read_file", "read_graph", "refuse", "save", "unpack",
    "write_file", "write_graph", "write_whole",
]  # fmt: skip

GRAPH_FILE: Final = "graph.htagraph"
"""Name of the file inside the folder."""

_MANY_TEXTS: Final = 16
"""Texts from which they lie in one array instead of the manifest. Chosen: two rows of arrays are as long as a dozen
names. Doubled, manifests of many ranks grow by a few percent."""
_PLAIN_BITS: Final = 63
"""Bits of integers that are JSON numbers: others would be refused by Python's limit on digits if they are very long."""


def save(graph: DependencyGraph, folder: str | os.PathLike[str]) -> Path:
    """Write a graph to a folder and return the path of its file; `htagraph.open` opens the graph again.

    The file is there either whole or as it was before, also if several processes write it at once.

    Args:
        graph: any graph.
        folder: where to write; it is made if it is not there.

    Returns:
        The file's path.

    Raises:
        GraphError: the graph holds something that cannot be stored.
        OSError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = hg.save(hg.load("data/demo"), folder)
        ...     hg.open(folder)
        DependencyGraph(4 ranks, 9,526 activities, 21,990 edges)
    """
    check_type(graph, DependencyGraph, "htagraph.save takes a graph (of a job on workers: job.load([0, 1]))")
    path = Path(folder) / GRAPH_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_graph(graph, path, durable=True)
    return path


def write_graph(graph: DependencyGraph, path: Path, *, durable: bool, most_bytes: int | None = None) -> None:
    """Write a graph to a file in a folder that is there; with `durable`, wait until the disk has it.

    Raises:
        GraphError: the graph holds something that cannot be stored, or its arrays take more than `most_bytes`.
        OSError: the file cannot be written.
    """
    try:
        content, arrays = pack({"graph": graph, "tree": graph.tree})  # every analysis asks for the tree
    except (RecursionError, TypeError) as error:
        msg = f"this graph cannot be saved: {error}"
        raise GraphError(msg) from error
    if most_bytes is not None and sum(array.nbytes for array in arrays) > most_bytes:
        msg = f"this graph takes more than {most_bytes} bytes"
        raise GraphError(msg)
    write_file(path, {"schema": SCHEMA, "parts": content}, arrays, durable=durable)


def open(folder: str | os.PathLike[str], traces: TracePaths | None = None) -> DependencyGraph:
    r"""Return the graph that `htagraph.save` wrote to a folder.

    Its arrays are mapped into memory: they cannot be written, and processes that open the same graph share them. No
    code of the file is run. `DependencyGraph.event`, overlays and some arguments read the traces again. Traces that the
    graph names are read only from disks of this machine, and only if their size and time of change are as recorded;
    addresses (``s3://…``, ``https://…``, ``\\host\share``) are not followed, since anyone may have written them.

    Args:
        folder: the folder, or the file in it.
        traces: where the traces are now, as a path for `htagraph.load`: needed if the traces were moved, or lie in a
            store.

    Returns:
        The graph, equal to the one that was saved.

    Raises:
        StoredGraphError: there is no saved graph, it is damaged, or another release wrote it.
        TraceError: a file in `traces` has not the size that the file of its rank had.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = hg.save(graph, folder)
        ...     hg.open(folder).names == graph.names
        True
    """
    path = Path(folder)
    file = path / GRAPH_FILE if path.is_dir() else path
    graph = read_graph(file)
    _verify(file, graph)
    given = {each.rank: each.path for each in rank_files(traces)} if traces is not None else {}
    own: Any = graph.traces  # a dict that only this graph has
    for rank, trace in graph.traces.items():
        elsewhere = replace(trace, path=_not_followed(trace.path, file))
        own[rank] = _placed(trace, given[rank]) if rank in given else elsewhere
    return graph


def _placed(trace: Trace, path: TracePath) -> Trace:
    """Return a trace whose file is where the user says, and has the size that it had."""
    now = fingerprint(path)
    if now[0] != trace.fingerprint[0]:
        msg = f"{path}: is not the file of rank {trace.rank}: it has {now[0]:,} bytes, not {trace.fingerprint[0]:,}"
        raise TraceError(msg)
    return replace(trace, path=path, fingerprint=now)


def _not_followed(path: TracePath, graph_file: Path) -> TracePath:
    """Return a path that a saved graph names: one that leads to another machine is not followed."""
    text = path.url if isinstance(path, RemotePath) else str(path)
    elsewhere = isinstance(path, RemotePath) or text.replace("\\", "/").startswith("//")
    return RemotePath(text, named_by=str(graph_file)) if elsewhere else path


def read_graph(path: Path) -> DependencyGraph:
    """Return the graph in a file."""
    try:
        content, arrays = read_file(path)
    except OSError as error:
        msg = f"{path}: cannot be opened ({error.strerror or error}); is it a folder that htagraph.save wrote?"
        raise StoredGraphError(msg) from error
    try:
        if content["schema"] != SCHEMA:
            refuse(path, "another release of htagraph wrote it")
        parts = unpack(content["parts"], arrays)
        graph, tree = parts["graph"], parts["tree"]
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        refuse(path, f"it holds no graph ({error})")
    if not isinstance(graph, DependencyGraph) or not isinstance(tree, Tree):
        refuse(path, "it holds no graph")
    vars(graph)["tree"] = tree  # where the property keeps what it has computed
    return graph


def _verify(path: Path, graph: DependencyGraph) -> None:
    """Refuse a graph that no release has saved: whoever wrote the file can have made digests that fit."""
    if not _is(graph, DependencyGraph) or not _is(graph.tree, Tree):
        refuse(path, "a part of it is of another type or length")
    acts, tree = graph.activities, graph.tree
    if len(tree.parent) != len(acts) or not are_within(_references(graph)):
        refuse(path, "its parts do not belong together")
    try:
        graph.check()
    except GraphError as error:
        refuse(path, str(error))
    above = tree.parent, acts.parent, np.where(acts.on_device & (acts.parent < 0), acts.cause, acts.parent)
    if not all(_climbs_end(each, tree.first) for each in above):
        refuse(path, "an activity is above itself")


def _references(graph: DependencyGraph) -> Iterator[tuple[Array, int, int]]:
    """Yield numbers that stand for something, and how many of it there are: compiled code walks along them."""
    acts, edges, tree, count = graph.activities, graph.edges, graph.tree, len(graph.activities)
    own: tuple[tuple[Array, int, int], ...] = (
        (acts.lane[: acts.ranked], 0, len(graph.lanes)), (acts.rank, -1, MAX_RANKS), (edges.activity, -1, count),
        (acts.kind, 0, len(ActivityKind)), (edges.kind, 0, len(EdgeKind)), (edges.provenance, 0, len(Provenance)),
        (tree.parent, -1, count), (tree.order, 0, count), (tree.first, 0, count), (tree.stop, 1, count + 1),
        *((ns, -1 << 61, 1 << 61) for ns in (acts.start, acts.duration, edges.lag)),  # nearer ones add up in 64 bits
    )  # fmt: skip
    yield from own
    tables: list[tuple[Any, Any]] = [(acts, graph)]
    for trace in graph.traces.values():
        tables += [(trace.events, trace), (trace.instants, trace)]
        yield trace.flows.lane, 0, len(trace.lanes)
    for table, of in tables:
        names = len(of.names)
        yield from ((table.name, 0, names), (table.category, 0, len(getattr(of, "categories", of.names))))
        yield from ((table.lane, -1, len(of.lanes)), *((each.rows, 0, len(table)) for each in table.args.values()))
        yield from ((each.values, -1, names) for name, each in table.args.items() if name in TEXTS)
    if (members := graph.matches) is not None:
        yield from ((each, -1, count) for each in (members.activity, members.join, members.feeds))
        yield members.collective, 0, members.count


def _is(value: Any, hint: Any) -> bool:  # noqa: ANN401
    """Return whether a value is what an annotation says, in every field; columns of an object are equally long."""
    kind, inner = get_origin(hint), get_args(hint)
    if hint is Any or kind in (Union, UnionType):
        return hint is Any or any(_is(value, each) for each in inner)
    if not isinstance(value, kind or hint):
        return False
    if kind is Mapping:
        value, kind, inner = tuple(value.items()), tuple, (GenericAlias(tuple, inner), ...)
    if kind is tuple:
        if ... in inner:  # of plain values, one of each type is enough
            plain = not get_args(inner[0]) and inner[0] not in _CLASSES.values()
            value = list({type(each): each for each in value}.values()) if plain else value
            inner = inner[:1] * len(value)
        return len(value) == len(inner) and all(map(_is, value, inner))
    if kind is np.ndarray:
        of = get_args(inner[1])[0]
        return of is Any or (value.ndim == 1 and value.dtype.type is of)
    fields = _hints(hint) if hint in _CLASSES.values() else {}
    return all(_is(getattr(value, name), of) for name, of in fields.items()) and _are_even(value, fields)


def _are_even(value: Any, fields: dict[str, Any]) -> bool:  # noqa: ANN401
    whole = ("op", "group", "key", "size") if isinstance(value, Matches) else ()  # a row per collective, not per member
    columns = [name for name, of in fields.items() if get_origin(of) is np.ndarray and name not in whole]
    return all(len({len(getattr(value, name)) for name in names}) < 2 for names in (whole, columns))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, localns={**_CLASSES, **vars(sys.modules[kind.__module__])})


def _climbs_end(parent: Array, first: Array) -> bool:
    """Return whether no activity is above itself: walks from parent to parent would not end.

    `first` is the position of each activity in the tree; where parents come first, that proves it at once.
    """
    if bool(np.all((parent < 0) | (first[parent] < first))):
        return True
    jump = np.append(parent, -1)
    for _ in range(len(jump).bit_length()):  # each round twice as far up
        jump = jump[jump]
    return not bool((jump >= 0).any())


Json: TypeAlias = Any

_CLASSES: Final[dict[str, type[Any]]] = {
    each.__name__: each
    for each in (
        Activities, Clock, DependencyGraph, Edges, Flows, Issue, Lane, Matches, NodeDependencies, SparseColumn, Events,
        Trace, Tree, Device, Facts, Group,
    )
}  # fmt: skip

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
    """Return the value of which `pack` made this."""
    blob, ends = arrays[content["texts"] : content["texts"] + 2]
    text = blob.tobytes().decode("utf-8", "surrogatepass")  # as `_Packer.texts` made it
    texts = [text[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
    return _Unpacker(arrays, texts).unpack(content["value"])


def are_within(references: Iterable[tuple[Array, int, int]]) -> bool:
    """Return whether what stored numbers refer to is there: all of each array are from one bound up to another.

    Each array comes with the least number that it may hold, and the number above the largest one.

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
            fields = SCHEMA[kind.__name__]
            return {"object": [kind.__name__, {field: self.pack(getattr(value, field)) for field in fields}]}
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


class _Unpacker:
    def __init__(self, arrays: Sequence[Array], texts: Sequence[str]) -> None:
        self._by_key: dict[str, Callable[[Any], Any]] = {
            "array": arrays.__getitem__, "int": lambda text: int(text, 16),
            "map": lambda pairs: {self.unpack(key): self.unpack(each) for key, each in pairs},
            "object": self._object, "objects": self._objects,
            "path": lambda text: RemotePath(text) if is_url(text) else Path(text),
            "texts": lambda number: tuple(map(texts.__getitem__, arrays[number].tolist())),
            "tuple": lambda parts: tuple(map(self.unpack, parts)),
        }  # fmt: skip

    def unpack(self, value: Json) -> Any:  # noqa: ANN401
        if isinstance(value, list):
            return [self.unpack(each) for each in value]
        if isinstance(value, dict):
            ((key, inner),) = value.items()
            return self._by_key[key](inner)
        return value

    def _object(self, parts: tuple[str, dict[str, Json]]) -> Any:  # noqa: ANN401
        name, fields = parts
        _same_fields(name, fields)
        return _CLASSES[name](**{field: self.unpack(each) for field, each in fields.items()})

    def _objects(self, parts: tuple[str, dict[str, list[Json]]]) -> tuple[Any, ...]:
        name, columns = parts
        _same_fields(name, columns)
        rows = zip(*(map(self.unpack, columns[field]) for field in SCHEMA[name]), strict=True)
        return tuple(_CLASSES[name](*row) for row in rows)


def _same_fields(name: str, fields: Iterable[str]) -> None:
    if set(fields) != set(SCHEMA[name]):
        msg = f"{name} has other fields in this release"
        raise TypeError(msg)


_MAGIC = b"htagraph"
_FORMAT = 2
"""Number of the layout. It grows with every change after which older files would be misread."""
_HEAD = struct.Struct("<8sQQQ16s")
"""Magic word, format, place and length of the manifest (bytes), digest of the manifest; the head's digest follows."""
_DIGEST_BYTES = 16
"""Bytes of a digest: 128 bits, so that no damage goes unnoticed. Doubled, the head would not fit into `_ALIGNMENT`."""
_ALIGNMENT = 64
"""Bytes: every array begins at a multiple of this, as wide as the widest vectors of a processor, and of a cache line.
Doubled, files grow by 32 bytes per array."""
_PLAIN_KINDS = "biuf"
"""Kinds of numbers that arrays may have: truth, integers, floating point. Objects would be pickled."""


def write_file(path: Path, content: Any, arrays: Sequence[Array], *, durable: bool) -> None:  # noqa: ANN401 - JSON
    """Write arrays of plain numbers and a value of JSON to a file, which is there either whole or as it was.

    The file's folder must be there. Unless the call waits until the disk has the file (`durable`), a crash of the
    machine may leave a damaged file, which `read_file` refuses.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
        TypeError: an array does not hold plain numbers, or the content is not JSON.
    """
    write_whole(path, lambda file: _write(file, content, arrays), durable=durable)


def write_whole(path: Path, write: Callable[[IO[bytes]], object], *, durable: bool) -> None:
    """Write a file beside its place and move it there, so that nobody sees a part of it."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105 - the name is text
    except BaseException:
        with suppress(OSError):  # the error that stopped the writing is the one to see
            os.unlink(name)  # noqa: PTH108 - the name is text
        raise


def _write(file: IO[bytes], content: Any, arrays: Sequence[Array]) -> None:  # noqa: ANN401 - JSON
    at, rows = _ALIGNMENT, []
    file.write(bytes(_ALIGNMENT))
    for array in arrays:
        if array.dtype.kind not in _PLAIN_KINDS:
            msg = f"an array of {array.dtype} cannot be stored"
            raise TypeError(msg)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        file.write(data.data)
        file.write(bytes(-len(data) % _ALIGNMENT))
        rows.append([array.dtype.str, list(array.shape), at, crc32(data)])
        at += len(data) + -len(data) % _ALIGNMENT
    manifest = json.dumps({"content": content, "arrays": rows}, separators=(",", ":")).encode()
    file.write(manifest)
    head = _HEAD.pack(_MAGIC, _FORMAT, at, len(manifest), _digest(manifest))
    file.seek(0)
    file.write(head + _digest(head))


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def read_file(path: Path) -> tuple[Any, list[Array]]:
    """Return the content and the arrays of a file; the arrays are mapped, so that processes share their memory.

    Args:
        path: a file that `write_file` wrote.

    Raises:
        StoredGraphError: the file is damaged or cut short, of another format, or something else; a digest of the
            manifest and a checksum of each array say so.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _ALIGNMENT:
            refuse(path, "is too short")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    magic, number, at, length, digest = _HEAD.unpack_from(mapped)
    if magic != _MAGIC:
        refuse(path, "is no saved graph")
    if _digest(mapped[: _HEAD.size]) != mapped[_HEAD.size : _HEAD.size + _DIGEST_BYTES]:
        refuse(path, "its head is damaged")
    if number != _FORMAT:
        refuse(path, f"has format {number}, this release reads format {_FORMAT}")
    if at + length != size or _digest(mapped[at:]) != digest:
        refuse(path, "its manifest is damaged or cut short")
    data = np.frombuffer(mapped, np.uint8)
    try:  # whoever wrote the file can have made digests that fit
        manifest = json.loads(mapped[at:])
        return manifest["content"], [_array(path, data[:at], row) for row in manifest["arrays"]]
    except (LookupError, OverflowError, RecursionError, TypeError, ValueError):
        refuse(path, "its manifest is no list of arrays")


def _array(path: Path, data: Array, row: list[Any]) -> Array:
    """Return one array of the mapped bytes; it cannot be written."""
    word, shape, at, checksum = row
    dtype = np.dtype(word)
    if dtype.kind not in _PLAIN_KINDS or not dtype.isnative or at % _ALIGNMENT or min(shape, default=0) < 0:
        refuse(path, "has an array that this machine cannot read")
    part = data[at : at + dtype.itemsize * int(np.prod(shape, dtype=object))]
    if crc32(part) != checksum:
        refuse(path, "an array is damaged")
    return part.view(dtype).reshape(shape)


def refuse(path: Path, why: str) -> NoReturn:
    """Raise the error that says why a file cannot be opened."""
    msg = f"{path}: cannot be opened: {why}; load the traces and save the graph again"
    raise StoredGraphError(msg)
