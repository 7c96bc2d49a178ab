"""A digest as few bytes, and back: plain numbers and texts in one zlib stream, so that reading it runs no code.

Inside the stream: the length of a description (8 bytes, the lowest first), the description (JSON in UTF-8), then the
arrays that it refers to, each as the differences of its values from one to the next: as many bytes a number as the
largest difference needs, all lowest bytes first, then all second ones, because these compress best.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.errors import HtagraphError
from htagraph.core.inflated import inflated
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.construction.build import TEXTS
from htagraph.graph.storage.saved import are_within, pack, unpack
from htagraph.queries.rank_digests.digest import RankDigest
from htagraph.queries.rank_digests.work_sums import WorkSums
from htagraph.queries.time_classes import TimeClasses

__all__ = ["from_bytes", "to_bytes"]

_VERSION: Final = 1
_MAX_BYTES: Final = 1 << 28
"""The most bytes that a digest is unpacked to. Chosen: a thousand times a large one. Doubled, damaged or hostile bytes
may take 512 MiB of memory before they are refused."""
_PART: Final = ("activities", "names", "lanes", "rest", "steps", "issues")
_ARRAYS: Final = ("linked", "source", "target", "weight", "inside", "owner")


def to_bytes(digest: RankDigest) -> bytes:
    """Return a digest as bytes; see the module for the format.

    Example:
        >>> import htagraph as hg
        >>> data = to_bytes(hg.digest(hg.load("data/demo", ranks=[1])))
        >>> from_bytes(data).rank
        1
    """
    classes = digest.classes
    content, arrays = pack({
        "part": {name: getattr(digest.part, name) for name in _PART},
        "arrays": {name: getattr(digest, name) for name in _ARRAYS}, "sums": tuple(digest.sums),
        "classes": (classes.names, classes.limits, classes.switches, classes.parts),
    })  # fmt: skip
    tables, raw = [], []
    for array in arrays:
        width, data = _packed(array)
        tables.append([array.dtype.str, list(array.shape), width])
        raw.append(data)
    text = json.dumps({
        "version": _VERSION, "criteria": {name: dict(each) for name, each in digest.criteria.items()},
        "content": content, "arrays": tables,
    }, separators=(",", ":")).encode("utf-8", "surrogatepass")  # fmt: skip
    return zlib.compress(len(text).to_bytes(8, "little") + text + b"".join(raw), 9)


def from_bytes(data: bytes) -> RankDigest:
    """Return the digest that `to_bytes` wrote.

    Raises:
        HtagraphError: these are no bytes of a digest, or of another version of this format.
    """
    try:
        return _read(inflated(data, _MAX_BYTES))
    except (zlib.error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"no digest of a rank: {error}; give the bytes that RankDigest.to_bytes wrote"
        raise HtagraphError(msg) from error


def _read(raw: bytes) -> RankDigest:
    end = 8 + int.from_bytes(raw[:8], "little")
    found = json.loads(raw[8:end].decode("utf-8", "surrogatepass"))
    if found["version"] != _VERSION:
        msg = "another version of the format"
        raise ValueError(msg)
    arrays = []
    for word, shape, width in found["arrays"]:
        array, end = _unpacked(raw, end, np.dtype(word), tuple(shape), width)
        arrays.append(array)
    parts = unpack(found["content"], arrays)
    none = np.zeros(0, np.int32)
    kept = parts["part"]
    part = RankPart(
        kept["activities"], kept["names"], kept["lanes"], none, none, kept["rest"], kept["steps"], kept["issues"]
    )  # fmt: skip
    digest = RankDigest(
        part, **parts["arrays"], classes=TimeClasses(*parts["classes"]), criteria=found["criteria"],
        sums=WorkSums(*parts["sums"]),
    )  # fmt: skip
    if not _fits(digest):
        msg = "its parts do not belong together"
        raise ValueError(msg)
    return digest


def _fits(digest: RankDigest) -> bool:
    """Return whether columns have equal lengths and numbers refer to what is there."""
    part, acts = digest.part, digest.part.activities
    count, names = len(acts), len(part.names)
    columns = [getattr(acts, each.name) for each in fields(acts) if each.name != "args"]
    texts = [acts.name, acts.category, *(column.values for name, column in acts.args.items() if name in TEXTS)]
    references = [(each, -1, names) for each in texts]
    references += [(acts.lane, -1, len(part.lanes)), (acts.parent, -1, count), (acts.cause, -1, count)]
    references += [(column.rows, 0, count) for column in acts.args.values()]
    moments = [digest.source, digest.target, *digest.inside[:2]]
    references += [*((each, 0, 2 * count) for each in moments), (digest.owner, 0, count)]
    sums = digest.sums
    lengths = [
        [*map(len, columns), len(digest.linked)], [*map(len, (digest.source, digest.target, digest.weight))],
        [*map(len, digest.inside), len(digest.owner)], [*map(len, (sums.program, sums.instances))],
        [*map(len, (sums.device, sums.name, sums.step, sums.calls, sums.total))],
        *([len(column.rows), len(column.values)] for column in acts.args.values()),
    ]  # fmt: skip
    shapes = len(digest.inside) == 3 and digest.weight.shape[1:] == (1 + len(digest.classes.parts),)
    return shapes and all(min(each) == max(each) for each in lengths) and are_within(references)


def _packed(array: Array) -> tuple[int, bytes]:
    """Return (bytes a number, the bytes of an array); differences wrap around as the numbers of a machine do."""
    values = array.reshape(-1).astype(np.uint64) if array.dtype.kind != "i" else array.reshape(-1).astype(np.int64)
    change: npt.NDArray[np.int64] = np.diff(values.view(np.int64), prepend=np.int64(0)).view(np.int64)
    even = ((change << 1) ^ (change >> 63)).view(np.uint64)  # 2 n, or -2 n - 1
    width = (int(even.max(initial=0)).bit_length() + 7) // 8
    return width, np.ascontiguousarray(even.view(np.uint8).reshape(-1, 8)[:, :width].T).tobytes()


def _unpacked(raw: bytes, at: int, dtype: np.dtype[Any], shape: tuple[int, ...], width: int) -> tuple[Array, int]:
    """Return (the array whose bytes begin at a place, where they end)."""
    if dtype.kind not in "biu" or not 0 <= width <= 8 or min(shape, default=0) < 0:
        msg = "an array of another kind"
        raise ValueError(msg)
    count = int(np.prod(shape, dtype=object))
    if count * max(width, 1) > _MAX_BYTES:
        msg = "an array that is too large"
        raise ValueError(msg)
    end = at + count * width
    digits = np.zeros((count, 8), np.uint8)
    digits[:, :width] = np.frombuffer(raw[at:end], np.uint8).reshape(width, count).T
    even = digits.reshape(-1).view(np.uint64)
    half = (even >> np.uint64(1)).view(np.int64)
    values = np.cumsum(np.where(even & np.uint64(1), -half - 1, half), dtype=np.int64)
    return values.view(np.uint64).astype(dtype).reshape(shape) if dtype.kind != "i" else values.astype(dtype).reshape(
        shape
    ), end
