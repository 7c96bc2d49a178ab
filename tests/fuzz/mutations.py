"""Random damage to files: to their values, their text and their compressed bytes, with checksums that fit."""

from __future__ import annotations

import copy
import gzip
import json
import random
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from htagraph.graph.storage.saved import read_file, write_file

__all__ = ["mutated"]

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, -(2**31) - 1, 2**53, 2**63, 2**64, -(2**63) - 1, 10**30, 1e308,
    -1e-300, 0.5, 1e18,
    "", " ", "0", "-1", "--5.1", "1e400", "5.²", "²", "nan", "inf", "N/A", "0x10", "12%", "x" * 300,
    "9" * 5000, "\ud800",
    "\x1b[31m", "\u202e", "\0", "=1+1", "a\"b", "a\\", "\n", [], {}, [[]], [1, "a", None], {"a": {"b": 1}},
    [[[[[[[[]]]]]]]],
    "X", "B", "E", "i", "s", "f", "M", "C", "b", "e", "n", "kernel", "cpu_op", "cuda_runtime",
    "user_annotation", "Trace",
    "python_function", "gpu_memcpy", "cuda_sync", "ProfilerStep#1", "ProfilerStep#99999999999999999999",
    "cudaLaunchKernel",
    "ncclDevKernel_AllReduce", "aten::mm", "Record Window End", "gloo:all_reduce", "[0, 1, 2, ..., 7]", "default_pg",
)  # fmt: skip
_KEYS = (
    "ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "s", "bp", "args", "correlation", "External id",
    "stream", "device",
    "Collective name", "Group size", "Process Group Name", "Process Group Ranks", "In msg nelems", "dtype", "Python id",
    "Python parent id", "Sequence number", "traceEvents", "schemaVersion", "distributedInfo", "baseTimeNanoseconds",
    "deviceProperties", "rank", "world_size", "pg_config", "ranks", "traceName", "wait_on_stream",
    "est. achieved occupancy %",
)  # fmt: skip
_TEXTS = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"},{", b"]}", b"\n", b" " * 50, b"\xff", b"\x00", b"\xef\xbb\xbf",
    b"inf", b"nan", b"N/A", b'\\"' * 20, b'"traceEvents":[', b'{"schemaVersion":1', b'"name":"a',
    b',"args":{', b"1e999",
    b"9" * 400, b"\\ud800", b"\x1f\x8b", b'{"ph":"X"', b"/*", b"null", b"[" * 200,
)  # fmt: skip


_SAVED, _ZLIB = b"htagraph", b"\x78\xda"
_NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 255, 2**31 - 1, 2**40, 2**63 - 1)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a file's content with a few random changes; gzipped or not, as the content was or not.

    Saved graphs and skeletons are changed behind their checksums: other damage is always found.
    """
    if data.startswith(_SAVED):
        return _graph_changed(data, draw)
    if data.startswith(_ZLIB):
        return zlib.compress(_bytes_changed(zlib.decompress(data), draw), 9)
    packed = data.startswith(b"\x1f\x8b")
    text = gzip.decompress(data) if packed else data
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        text = draw.choice(_CHANGES)(text, draw)
    if packed or draw.random() < 0.1:
        text = gzip.compress(text, 1, mtime=0)
        if draw.random() < 0.3:
            text = _bytes_changed(text, draw)
    return text


def _value_changed(text: bytes, draw: random.Random) -> bytes:
    """Return JSON with one value replaced, repeated, moved or removed; text that is no JSON as it is."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return _text_changed(text, draw)
    places = list(_places(root))
    if not places:
        return text
    parent, key = draw.choice(places)
    how = draw.random()
    if how < 0.5:
        parent[key] = copy.deepcopy(draw.choice(_VALUES))
    elif how < 0.6:
        del parent[key]
    elif how < 0.7 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif how < 0.8:
        other, other_key = draw.choice(places)
        parent[key] = copy.deepcopy(other[other_key])
    elif isinstance(parent, dict):
        parent[draw.choice(_KEYS)] = copy.deepcopy(draw.choice(_VALUES))
    elif isinstance(parent[key], int | float):
        parent[key] *= draw.choice((-1, 1000, 1e-3, 2**40))
    return json.dumps(root, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Return (list or dict, key) of every value below the root."""
    found: list[tuple[Any, Any]] = []
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        if not isinstance(parent, list | dict):
            continue
        pairs = list(enumerate(parent)) if isinstance(parent, list) else list(parent.items())
        found += [(parent, key) for key, _ in pairs]
        waiting += [value for _, value in pairs]
    return found


def _text_changed(text: bytes, draw: random.Random) -> bytes:
    at = draw.randint(0, len(text))
    return text[:at] + draw.choice(_TEXTS) * draw.choice((1, 1, 1, 5)) + text[at + draw.choice((0, 0, 1, 3)) :]


def _bytes_changed(text: bytes, draw: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(draw.choice((1, 2, 10))):
        if changed:
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _piece_moved(text: bytes, draw: random.Random) -> bytes:
    """Return the text with a piece of it removed, or put in again elsewhere, or the end cut off."""
    first, last = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
    if draw.random() < 0.3:
        return text[:last]
    if draw.random() < 0.5:
        return text[:first] + text[last:]
    at = draw.randint(0, len(text))
    return text[:at] + text[first:last] + text[at:]


def _graph_changed(data: bytes, draw: random.Random) -> bytes:
    """Return a saved graph with numbers replaced by odd ones or others of their array, or with its content changed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved")
        path.write_bytes(data)
        content, arrays = read_file(path)
        arrays = [array.copy() for array in arrays]
        for _ in range(draw.choice((1, 1, 2, 8))):
            array = draw.choice([each for each in arrays if each.size])
            values = array.reshape(-1)
            at = draw.randrange(values.size)
            odd = np.array(draw.choice(_NUMBERS) if draw.random() < 0.5 else values[draw.randrange(values.size)])
            values[at] = odd.astype(array.dtype)
        if draw.random() < 0.2:
            content = json.loads(_value_changed(json.dumps(content).encode(), draw))
        write_file(path, content, arrays, durable=False)
        return path.read_bytes()


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_value_changed,) * 6, _text_changed, _text_changed, _bytes_changed, _piece_moved,
)  # fmt: skip
