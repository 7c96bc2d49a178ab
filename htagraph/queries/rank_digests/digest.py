"""RankDigest: the few facts about one rank that a job of thousands of ranks needs of it, and its bytes.

The bytes are one zlib stream of plain numbers and texts, so that reading them runs no code. Inside it: the length of a
description (8 bytes, the lowest first), the description (JSON in UTF-8), then numbers as those of a skeleton's bytes:
how many arrays the description refers to, and each array as the differences of its values from one to the next.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.errors import HtagraphError, NothingMeetsError, SelectionError, check_type
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.activities import Activities, Lane
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.storage.saved import are_within, pack, unpack
from htagraph.queries.rank_digests.kept import (
    KeptRows,
    WorkSums,
    header_of,
    kept_activities,
    kept_rows,
    own_tables,
    work_sums,
)
from htagraph.queries.skeleton import Skeleton, terminal_skeleton
from htagraph.queries.skeleton_bytes import MAX_BYTES, VERSION, Numbers, differences, packed, unpacked
from htagraph.queries.time_classes import END, LAST, START, TimeClasses
from htagraph.queries.weights import NEVER, initial, own_time, weighed
from htagraph.trace.columns import TEXTS
from htagraph.trace.profiler_files.files import inflated

__all__ = ["DIGEST_CLASSES", "Criteria", "RankDigest", "digest"]

Criteria: TypeAlias = Mapping[str, Mapping[str, Any]]

DIGEST_CLASSES: Final[Criteria] = {
    "computation": {"kind": "computation"},
    "host": {"kind": "host"},
    "communication": {"kind": ["communication", "host_communication"]},
}
"""Whose time factors multiply if nothing else is asked for: kernels, what the host does, transfers."""
_PART: Final = ("activities", "names", "lanes", "rest", "steps", "issues")
_ARRAYS: Final = ("linked", "source", "target", "weight", "inside", "owner")


@dataclass(frozen=True, eq=False)
class RankDigest:
    """One rank of a job in some kilobytes. Made by `htagraph.digest`; `htagraph.joined_job` joins those of all ranks.

    It holds the skeleton of the rank, in which communication takes no time yet, and what tells with which
    communication of other ranks that belongs together.
    """

    part: RankPart
    """The activities that are kept, numbered anew: those that were recorded, points in time between them, and two that
    span the recording. Only starts and ends of the first `linked` are moments of the job."""
    linked: npt.NDArray[np.bool_]
    """Which activities have moments in the job; the others tell what communication belongs together."""
    source: npt.NDArray[np.int64]
    """Of each edge of the skeleton, a vertex: 2 i is the start of the kept activity i, 2 i + 1 its end."""
    target: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]
    """One row per edge, ns: in column 0 time of no class, then that of each component of `classes`."""
    inside: npt.NDArray[np.int64]
    """Three rows: the sources, targets and lags (ns) of edges inside communication, matched or not."""
    owner: npt.NDArray[np.int64]
    """The communication that each of these edges is the time of."""
    classes: TimeClasses
    criteria: Criteria
    """By class, the criteria of its selection."""
    sums: WorkSums

    @property
    def rank(self) -> int:
        """The rank."""
        return self.part.rest.rank

    @property
    def path(self) -> str:
        """The file that the rank was read from."""
        return str(self.part.rest.path)

    def __repr__(self) -> str:
        return f"RankDigest(rank {self.rank}, {len(self.part.activities):,} activities, {len(self.source):,} edges)"

    def to_bytes(self) -> bytes:
        """Return the digest as few bytes, which hold plain numbers and texts only; the module says in which format."""
        classes = self.classes
        content, arrays = pack({
            "part": {name: getattr(self.part, name) for name in _PART},
            "arrays": {name: getattr(self, name) for name in _ARRAYS}, "sums": tuple(self.sums),
            "classes": (classes.names, classes.limits, classes.switches, classes.parts),
        })  # fmt: skip
        text = json.dumps({
            "version": VERSION, "criteria": {name: dict(each) for name, each in self.criteria.items()},
            "content": content, "arrays": [[each.dtype.str, list(each.shape)] for each in arrays],
        }, separators=(",", ":")).encode("utf-8", "surrogatepass")  # fmt: skip
        numbers = [np.array([len(arrays)], np.uint64), *(differences(each.reshape(-1)) for each in arrays)]
        return zlib.compress(len(text).to_bytes(8, "little") + text + packed(np.concatenate(numbers)), 9)

    @staticmethod
    def from_bytes(data: bytes) -> RankDigest:
        """Return the digest that `to_bytes` wrote; no code in the bytes is ever run.

        Raises:
            HtagraphError: these are no bytes of a digest, or of another version of this format.
        """
        try:
            return _read(inflated(data, MAX_BYTES))
        except (zlib.error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            msg = f"no digest of a rank: {error}; give the bytes that RankDigest.to_bytes wrote"
            raise HtagraphError(msg) from error


def digest(
    graph: DependencyGraph, classes: Criteria | None = None, *, most: int | None = None,
    naming: Naming = DEFAULT_NAMING,
) -> RankDigest:  # fmt: skip
    """Return the digest of one rank: what a job of thousands of ranks needs of it, in 10 to 100 KB.

    A worker reads the file of one rank and sends its digest; `joined_job` joins the digests of all ranks. Step times,
    waits, the critical path, slack and what-ifs of the job are then those of the whole graph.

    Args:
        graph: the graph of one rank alone.
        classes: by name, whose time factors of a what-if multiply, as criteria of `DependencyGraph.select`; by default
            ``computation``, ``host`` and ``communication``. The same for all ranks of a job. With fewer classes a
            digest is smaller; with none (``{}``) smallest.
        most: the largest factor that will be asked for; the digest is smaller than if any may be (None).
        naming: what names mean.

    Returns:
        `RankDigest` with ``rank``, ``path`` and ``to_bytes()``.

    Raises:
        SelectionError: the graph has several ranks, or none; a criterion is unknown.
        TypeError: it is no graph.

    Example:
        >>> import htagraph as hg
        >>> of_rank = digest(hg.load("data/demo", ranks=[2]))
        >>> of_rank.rank, len(of_rank.to_bytes()) < 20_000
        (2, True)
    """
    takes = (
        "htagraph.digest takes the graph of one rank: htagraph.load(path, ranks=[0]), of a job on workers job.load([0])"
    )
    check_type(graph, DependencyGraph, takes)
    if len(graph.ranks) != 1:
        msg = f"a digest is of one rank; this graph has {len(graph.ranks)}: load each file by itself"
        raise SelectionError(msg)
    criteria = DIGEST_CLASSES if classes is None else classes
    rows = kept_rows(graph, naming)
    skeleton, present = _own_skeleton(graph, criteria, rows, most)
    every = np.union1d(rows.linked, rows.matching)
    acts, vertex = _numbered(graph, kept_activities(graph, every), every, skeleton.vertex)
    linked = np.ones(len(acts), np.bool_)
    linked[np.searchsorted(every, rows.matching)] = False
    edges = graph.edges
    ends = [
        2 * np.searchsorted(every, each >> 1) + each % 2
        for each in (edges.source[rows.bodies], edges.target[rows.bodies])
    ]
    return RankDigest(
        _part(graph, acts), linked, vertex[skeleton.source], vertex[skeleton.target], skeleton.weight,
        np.stack([*ends, edges.lag[rows.bodies]]).astype(np.int64),
        np.searchsorted(every, edges.activity[rows.bodies]).astype(np.int64),
        replace(skeleton.classes, **_all_classes(skeleton.classes, criteria, present)), criteria, work_sums(graph),
    )  # fmt: skip


def _own_skeleton(
    graph: DependencyGraph, criteria: Criteria, rows: KeptRows, most: int | None
) -> tuple[Skeleton, list[str]]:
    """Return (the skeleton of a rank without the time of its communication, the classes that the rank has)."""
    state = initial(graph)
    present = []
    for name, of_class in criteria.items():
        try:
            own_time(state, dict(of_class))
        except NothingMeetsError:
            continue  # on other ranks there may be some
        present.append(name)
    inside = weighed(state, rows.bodies, NEVER)
    both = np.concatenate([2 * rows.linked, 2 * rows.linked + 1])
    return terminal_skeleton(inside, {name: criteria[name] for name in present}, most=most, keep=both), present


def _all_classes(classes: TimeClasses, criteria: Criteria, present: list[str]) -> dict[str, Any]:
    """Return the classes of a rank as those of all ranks: some have no time on this rank."""
    names = tuple(criteria)
    limit = classes.limits[:1] or (-1,)
    parts = tuple(tuple(names.index(present[number]) for number in part) for part in classes.parts)
    return {"names": names, "limits": limit * len(names), "switches": (False,) * len(names), "parts": parts}


def _numbered(graph: DependencyGraph, acts: Activities, rows: Array, vertex: Array) -> tuple[Activities, Array]:
    """Return (the activities, then points and the span of the recording; the number of each vertex there)."""
    at = np.minimum(np.searchsorted(rows, vertex >> 1), max(len(rows) - 1, 0))
    known = (rows[at] == vertex >> 1) if len(rows) else np.zeros(len(vertex), np.bool_)
    points = np.flatnonzero(~known & (vertex >= 0))
    moments = vertex[points]
    count = len(rows) + len(points)
    number = np.where(known, 2 * at + vertex % 2, 0)
    number[points] = 2 * (len(rows) + np.arange(len(points)))
    for added, where in ((START, 2 * count), (END, 2 * count + 1), (LAST, 2 * count + 3)):
        number[vertex == added] = where
    return _with_spans(graph, acts, moments), number


def _with_spans(graph: DependencyGraph, acts: Activities, moments: Array) -> Activities:
    """Return the activities, then a point in time for each of some moments, then two spans of the recording.

    The first span ends with the last activity of a thread or stream that takes part in the job, the second with the
    last activity of all; they are on lanes of their own.
    """
    whole, time = graph.activities, graph.time
    begin, count = graph.origin_ns, len(graph.lanes)
    awake = time[1::2][graph.awake]
    ends = np.array([awake.max(initial=begin), time.max(initial=begin)], np.int64)
    none, at = np.full(len(moments) + 2, -1, np.int32), moments >> 1
    kinds = np.array([ActivityKind.OP, ActivityKind.ANNOTATION], np.int8)
    unnamed = np.full(2, len(graph.names), np.int32)
    more: dict[str, Any] = {
        "rank": np.full(len(none), graph.ranks[0], np.int32), "kind": np.append(whole.kind[at], kinds),
        "name": np.append(whole.name[at], unnamed), "category": np.append(whole.category[at], unnamed),
        "lane": np.append(whole.lane[at], np.array([count, count + 1], np.int32)),
        "start": np.append(time[moments], [begin, begin]), "duration": np.append(0 * moments, ends - begin),
        "step": np.append(whole.step[at], [np.int32(-1)] * 2), "parent": none, "cause": none, "event": none,
    }  # fmt: skip
    longer: dict[str, Any] = {
        name: np.concatenate([getattr(acts, name), column.astype(getattr(acts, name).dtype)])
        for name, column in more.items()
    }
    return replace(acts, **longer)


def _part(graph: DependencyGraph, acts: Activities) -> RankPart:
    """Return activities that have names and lanes of a graph with only those names and lanes that they use."""
    rank = graph.ranks[0]
    names, lanes, acts = own_tables(acts, (*graph.names, "recording"), (*graph.lanes, *_spans_of(rank)))
    none = np.zeros(0, np.int32)
    steps = tuple(np.unique(acts.step[acts.kind == ActivityKind.STEP]).tolist())
    return RankPart(acts, names, lanes, none, none, header_of(graph), steps, graph.issues)


def _spans_of(rank: int) -> tuple[Lane, Lane]:
    return Lane(rank, "", "recording", thread="recording"), Lane(rank, "", "last", thread="recording")


def _read(raw: bytes) -> RankDigest:
    end = 8 + int.from_bytes(raw[:8], "little")
    found = json.loads(raw[8:end].decode("utf-8", "surrogatepass"))
    numbers = Numbers(unpacked(raw[end:]))
    dtypes = [np.dtype(word) for word, _ in found["arrays"]]
    if found["version"] != VERSION or numbers.one() != len(dtypes) or any(each.kind not in "biu" for each in dtypes):
        msg = "another version of the format"
        raise ValueError(msg)
    shapes = [tuple(shape) for _, shape in found["arrays"]]
    flat = [numbers.sums(math.prod(shape)) for shape in shapes]
    parts = unpack(
        found["content"],
        [each.astype(dtype).reshape(shape) for each, dtype, shape in zip(flat, dtypes, shapes, strict=True)],
    )
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
