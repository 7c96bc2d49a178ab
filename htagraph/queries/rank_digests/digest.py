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
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, inverse_of, marked
from htagraph.core.errors import HtagraphError, SelectionError, check_type
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind
from htagraph.core.naming import DEFAULT_NAMING, Naming, collective_op, is_collective_call, names_that
from htagraph.core.parents import nearest
from htagraph.graph.activities import Activities, Lane
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.construction.matching.members import describing
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.storage.saved import are_within, pack, unpack
from htagraph.queries.peers import program_of
from htagraph.queries.rank_speed import ALL_NAMES, MIN_SHARE_OF_NAME, SIDES, work_of
from htagraph.queries.skeleton import skeleton_of
from htagraph.queries.skeleton_bytes import Numbers, differences, packed, unpacked
from htagraph.queries.time_classes import END, LAST, START, TimeClasses, paths_of
from htagraph.queries.weights import NEVER, initial, weighed
from htagraph.trace.columns import TEXTS, Events, Facts, Flows, SparseColumn, Trace
from htagraph.trace.profiler_files.files import inflated

__all__ = [
    "DIGEST_CLASSES", "Criteria", "RankDigest", "WorkSums", "digest", "header_of", "kept_activities", "kept_rows",
    "own_tables", "work_sums",
]  # fmt: skip

Criteria: TypeAlias = Mapping[str, Mapping[str, Any]]

DIGEST_CLASSES: Final[Criteria] = {
    "computation": {"kind": "computation"},
    "host": {"kind": "host"},
    "communication": {"kind": ["communication", "host_communication"]},
}
"""Whose time factors multiply if nothing else is asked for: kernels, what the host does, transfers."""
_VERSION: Final = 2
"""Of the bytes; it rises where older ones can no longer be read."""
_MAX_BYTES: Final = 1 << 28
"""The most bytes that a digest is unpacked to. Chosen: a thousand times a large one. Reading takes some 50 bytes of
memory for each, so damaged or hostile bytes may take 13 GiB before they are refused; doubled, twice as much."""
_PART: Final = ("activities", "names", "lanes", "rest", "steps", "issues")
_ARRAYS: Final = ("linked", "source", "target", "weight", "inside", "owner")
_OF_COLLECTIVES: Final = (
    "pg_name", "pg_ranks", "pg_desc", "group_size", "collective_name", "seq", "comms_id", "src_rank", "dst_rank",
    "in_msg_nelems", "out_msg_nelems", "dtype",
)  # fmt: skip
"""Arguments of an operator that count for the communication that it launches."""
_OF_CALLS: Final = ("concrete_inputs", "input_dims", "input_type")
"""Arguments of communication on hosts and of the operators that ask for it."""
_NAMELESS: Final = ("send_recv", "")
"""What the names of kernels of batched sends and receives say: only the calls around their launch say more."""


@dataclass(frozen=True, eq=False)
class RankDigest:
    """One rank of a job in some kilobytes; `htagraph.digest` makes it, `htagraph.joined_job` joins those of all ranks.

    A digest holds the skeleton of the rank, in which communication takes no time yet, and the keys that match this
    communication with that of other ranks.
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
        """Return the digest as a few bytes of plain numbers and texts; the module's docstring defines the format."""
        classes = self.classes
        content, arrays = pack({
            "part": {name: getattr(self.part, name) for name in _PART},
            "arrays": {name: getattr(self, name) for name in _ARRAYS}, "sums": tuple(self.sums),
            "classes": (classes.names, classes.limits, classes.switches, classes.parts),
        })  # fmt: skip
        text = json.dumps({
            "version": _VERSION, "criteria": {name: dict(each) for name, each in self.criteria.items()},
            "content": content, "arrays": [[each.dtype.str, list(each.shape)] for each in arrays],
        }, separators=(",", ":")).encode("utf-8", "surrogatepass")  # fmt: skip
        numbers = [np.array([len(arrays)], np.uint64), *(differences(each.reshape(-1)) for each in arrays)]
        return zlib.compress(len(text).to_bytes(8, "little") + text + packed(np.concatenate(numbers)), 9)

    @staticmethod
    def from_bytes(data: bytes) -> RankDigest:
        """Return the digest that `to_bytes` wrote; no code in the bytes is ever run.

        Raises:
            HtagraphError: the bytes are no digest, or a digest in another version of the format.
        """
        try:
            return _read(inflated(data, _MAX_BYTES))
        except (
            zlib.error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
        ) as error:  # fmt: skip
            msg = f"no digest of a rank: {error}; give the bytes that RankDigest.to_bytes wrote"
            raise HtagraphError(msg) from error


def digest(
    graph: DependencyGraph, classes: Criteria | None = None, *, most: int | None = None,
    naming: Naming = DEFAULT_NAMING,
) -> RankDigest:  # fmt: skip
    """Return the digest of one rank: what a job of thousands of ranks needs of this rank, in 10 to 100 KB.

    A worker reads the file of one rank and sends its digest; `joined_job` joins the digests of all ranks. Step times,
    waits, the critical path, slack and what-ifs of the joined job are the same as in the whole graph.

    Args:
        graph: the graph of one rank alone.
        classes: the classes of time that factors of a what-if can multiply: by name, criteria of
            `DependencyGraph.select`; by default ``computation``, ``host`` and ``communication``. All ranks of a job
            need the same classes. With fewer classes a digest is smaller; without classes (``{}``) it is smallest.
        most: the largest factor that a what-if will use; the digest is then smaller than with None, which allows any
            factor.
        naming: patterns that decide an event's kind by its name.

    Returns:
        `RankDigest` with ``rank``, ``path`` and ``to_bytes()``.

    Raises:
        SelectionError: the graph has several ranks, or none; a criterion is unknown.
        TypeError: `graph` is no graph.

    Example:
        >>> import htagraph as hg
        >>> of_rank = digest(hg.load("data/demo", ranks=[2]))
        >>> of_rank.rank, len(of_rank.to_bytes()) < 20_000
        (2, True)
    """
    takes = "htagraph.digest takes the graph of one rank: htagraph.load(path, ranks=[0]), of a job on workers "
    check_type(graph, DependencyGraph, f"{takes}job.load([0])")
    if len(graph.ranks) != 1:
        msg = f"a digest is of one rank; this graph has {len(graph.ranks)}: load each file by itself"
        raise SelectionError(msg)
    criteria = DIGEST_CLASSES if classes is None else classes
    moments, matching, bodies = kept_rows(graph, naming)
    own = paths_of(weighed(initial(graph), bodies, NEVER), criteria, most, may_lack=True)  # other ranks may have some
    skeleton = skeleton_of(own, graph, np.concatenate([2 * moments, 2 * moments + 1]))
    every = np.union1d(moments, matching)
    acts, vertex = _numbered(graph, kept_activities(graph, every), every, skeleton.vertex)
    linked = np.ones(len(acts), np.bool_)
    linked[np.searchsorted(every, matching)] = False
    edges = graph.edges
    ends = [2 * np.searchsorted(every, each >> 1) + each % 2 for each in (edges.source[bodies], edges.target[bodies])]
    return RankDigest(
        _part(graph, acts), linked, vertex[skeleton.source], vertex[skeleton.target], skeleton.weight,
        np.stack([*ends, edges.lag[bodies]]).astype(np.int64),
        np.searchsorted(every, edges.activity[bodies]).astype(np.int64), skeleton.classes, criteria, work_sums(graph),
    )  # fmt: skip


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
    """Return the activities, then a point in time for each of some moments, then two spans of the recording."""
    # to the last activity that takes part in the job, and to the last of all; each span is on a lane of its own
    whole, time = graph.activities, graph.time
    begin, count = graph.origin_ns, len(graph.lanes)
    awake = time[1::2][graph.awake]
    ends = np.array([awake.max(initial=begin), time.max(initial=begin)], np.int64)
    at, unnamed = moments >> 1, [len(graph.names)] * 2
    return acts.followed_by(
        rank=graph.ranks[0], kind=np.append(whole.kind[at], [ActivityKind.OP, ActivityKind.ANNOTATION]),
        name=np.append(whole.name[at], unnamed), category=np.append(whole.category[at], unnamed),
        lane=np.append(whole.lane[at], [count, count + 1]), start=np.append(time[moments], [begin, begin]),
        duration=np.append(0 * moments, ends - begin), step=np.append(whole.step[at], [-1, -1]),
    )  # fmt: skip


def _part(graph: DependencyGraph, acts: Activities) -> RankPart:
    """Return activities that have names and lanes of a graph with only those names and lanes that they use."""
    rank = graph.ranks[0]
    spans = (Lane(rank, "", name, thread="recording") for name in ("recording", "last"))
    names, lanes, acts = own_tables(acts, (*graph.names, "recording"), (*graph.lanes, *spans))
    none = np.zeros(0, np.int32)
    steps = tuple(np.unique(acts.step[acts.kind == ActivityKind.STEP]).tolist())
    return RankPart(acts, names, lanes, none, none, header_of(graph), steps, graph.issues)


def _read(raw: bytes) -> RankDigest:
    end = 8 + int.from_bytes(raw[:8], "little")
    found = json.loads(raw[8:end].decode("utf-8", "surrogatepass"))
    if found["version"] != _VERSION:
        msg = "another version of the format"
        raise ValueError(msg)
    numbers = Numbers(unpacked(raw[end:]))
    dtypes = [np.dtype(word) for word, _ in found["arrays"]]
    shapes = [tuple(shape) for _, shape in found["arrays"]]
    lengths = {type(length) for shape in shapes for length in shape}  # a text times a number would fill the memory
    if numbers.one() != len(dtypes) or any(each.kind not in "biu" for each in dtypes) or not lengths <= {int}:
        msg = "an array of another kind"
        raise ValueError(msg)
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


def kept_rows(graph: DependencyGraph, naming: Naming) -> tuple[Array, Array, Array]:
    """Return which activities and edges of a rank the joined job needs, ascending.

    These are (1) the activities whose start and end are moments of the joined job: communication, steps, and what is
    around them; (2) other activities, which only the matching of collectives reads; (3) the edges inside communication,
    whose lag depends on what it is matched with.
    """
    acts, edges = graph.activities, graph.edges
    talks = np.isin(acts.kind, COMMUNICATION)
    bodies = np.flatnonzero((edges.kind == EdgeKind.BODY) & talks[edges.activity] & (edges.activity >= 0))
    linked = talks | np.isin(acts.kind, (ActivityKind.STEP, ActivityKind.BOUNDARY))
    linked[edges.source[bodies] >> 1] = True
    linked[edges.target[bodies] >> 1] = True
    on_host = np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)
    if len(on_host):
        linked[_around_host_communication(graph, on_host)] = True
    matching = marked(_calls_of_nameless(graph, np.flatnonzero(talks), naming), len(acts))
    return np.flatnonzero(linked), np.flatnonzero(matching & ~linked), bodies


def _around_host_communication(graph: DependencyGraph, on_host: Array) -> Array:
    """Return what shows which operator asked for communication on a host, and how long its thread worked beside it."""
    # all calls of c10d, what encloses them and runs inside, and of operators begun meanwhile the one that ended last
    acts = graph.activities
    ops = np.flatnonzero(acts.kind == ActivityKind.OP)
    calls = ops[names_that(is_collective_call, graph.names)[acts.name[ops]]]
    inside = np.flatnonzero(np.isin(acts.parent, on_host))
    rows: list[Array] = [calls, acts.parent[calls], inside]
    order = ops[np.lexsort((acts.start[ops], acts.lane[ops]))]
    for lane in np.unique(acts.lane[on_host]).tolist():
        own, works = order[acts.lane[order] == lane], on_host[acts.lane[on_host] == lane]
        first = np.searchsorted(acts.start[own], acts.start[works], side="right").tolist()
        last = np.searchsorted(acts.start[own], acts.end[works]).tolist()
        rows.append(own[[a + int(acts.end[own[a:b]].argmax()) for a, b in zip(first, last, strict=True) if b > a]])
    every = np.concatenate(rows).astype(np.int64)
    return every[every >= 0]


def _calls_of_nameless(graph: DependencyGraph, talks: Array, naming: Naming) -> Array:
    """Return the calls that say what kernels of batched sends and receives are: launches, and names around them."""
    # also every activity with a partner as argument: a batch names its partners in calls that launch nothing
    acts, names = graph.activities, graph.names
    partner = acts.args.get("src_rank")
    nameless = [code for code in np.unique(acts.name[talks]) if collective_op(names[code], naming) in _NAMELESS]
    launches = acts.cause[talks[np.isin(acts.name[talks], nameless)]].astype(np.int64)
    launches = launches[launches >= 0]
    if not len(launches):
        return launches
    tells = names_that(lambda name: bool(collective_op(name, naming, host=True)), names)[acts.name]
    above = nearest(acts.parent, tells, launches)
    told = np.unique(describing(acts, talks))
    batched = np.zeros(0, np.int64) if partner is None else np.setdiff1d(partner.rows.astype(np.int64), told)
    return np.concatenate([launches, above[above >= 0], batched])


def kept_activities(graph: DependencyGraph, rows: Array) -> Activities:
    """Return some activities of a rank: names and lanes are those of the graph, and the nearest kept one encloses.

    What an operator says about the communication that it launches becomes an argument of that.
    """
    acts = graph.activities
    kept = marked(rows, len(acts))
    number = np.cumsum(kept) - 1
    parent, cause = nearest(acts.parent, kept, acts.parent[rows]), acts.cause[rows].astype(np.int64)
    cause = np.where((cause >= 0) & kept[cause], cause, -1)
    above = [np.where(each >= 0, number[each], -1).astype(np.int32) for each in (parent, cause)]
    dense = {
        name: getattr(acts, name)[rows]
        for name in ("rank", "kind", "name", "category", "lane", "start", "duration", "step")
    }
    talks = np.flatnonzero(np.isin(acts.kind[rows], COMMUNICATION))
    described = rows.copy()
    told = describing(acts, rows[talks])
    described[np.isin(rows, told[told != rows[talks]])] = -1  # what they say is said by now
    described[talks] = told
    args = {name: column for name in _OF_COLLECTIVES if (column := _argument(acts, name, described)) is not None}
    args |= {name: column for name in _OF_CALLS if (column := _argument(acts, name, rows)) is not None}
    return Activities(**dense, parent=above[0], cause=above[1], event=np.full(len(rows), -1, np.int32), args=args)


def _argument(acts: Activities, name: str, rows: Array) -> SparseColumn | None:
    """Return an argument of some activities as that of the rows of a new table; None where none of them has it."""
    column = acts.args.get(name)
    if column is None:
        return None
    place = inverse_of(column.rows, len(acts) + 1)  # the last is that of no activity
    at = place[rows]
    has = np.flatnonzero(at >= 0)
    return SparseColumn(has.astype(np.int32), column.values[at[has]], column.missing) if len(has) else None


def own_tables(
    acts: Activities, names: tuple[str, ...], lanes: tuple[Lane, ...]
) -> tuple[tuple[str, ...], tuple[Lane, ...], Activities]:
    """Return only the names and lanes that some activities use, and the activities numbered accordingly."""
    texts = [acts.name, acts.category, *(column.values for name, column in acts.args.items() if name in TEXTS)]
    codes = np.unique(np.concatenate(texts))
    codes = codes[codes >= 0]
    used = np.unique(acts.lane)

    def renamed(values: Array) -> Array:
        return np.where(values >= 0, np.searchsorted(codes, values), values).astype(values.dtype)

    args = {
        name: SparseColumn(column.rows, renamed(column.values), column.missing) if name in TEXTS else column
        for name, column in acts.args.items()
    }
    acts = replace(
        acts, name=renamed(acts.name), category=renamed(acts.category),
        lane=np.searchsorted(used, acts.lane).astype(np.int32), args=args,
    )  # fmt: skip
    return tuple(names[code] for code in codes.tolist()), tuple(lanes[lane] for lane in used.tolist()), acts


def header_of(graph: DependencyGraph) -> Trace:
    """Return what the file of a rank says about its host, devices and process groups, without any events."""
    rank = graph.ranks[0]
    read = graph.traces.get(rank)
    none = np.zeros(0, np.int32)
    times = none.astype(np.int64)
    events = Events(none, none, none, none, times, times, {})
    flows = Flows(times, none.astype(np.bool_), none, times)
    path = Path() if read is None else read.path
    on_hosts = bool((graph.activities.kind == ActivityKind.HOST_COMMUNICATION).any())
    facts = Facts() if read is None else _about_the_job(read.facts, whole=on_hosts)
    pids = sorted({pid for pid, _ in read.lanes if isinstance(pid, int)}) if read is not None else []
    return Trace(
        rank, path, facts, (), (), tuple((pid, 0) for pid in pids), {}, events, events, flows,
        {}, (), (0, 0), {},
    )  # fmt: skip


def _about_the_job(facts: Facts, *, whole: bool) -> Facts:
    """Return the facts about hosts, devices and groups; who is in which group only if the whole is asked for."""
    # members of thousands of ranks would be most of a digest; only hosts need them, as arguments of kernels name them
    return Facts(
        rank=facts.rank, world_size=facts.world_size, groups=facts.groups if whole or not facts.world_size else (),
        devices=facts.devices, host=facts.host, job=facts.job,
    )  # fmt: skip


class WorkSums(NamedTuple):
    """The work of one rank by name. Names are numbers: CRC-32 of their text, so that those of all ranks compare."""

    program: npt.NDArray[np.int64]
    """Names of the operators, or of the kernels of a job without operators."""
    instances: npt.NDArray[np.int64]
    """How often each of them occurs, in steps if there are any."""
    steps: int
    """In how many steps; 1 without steps."""
    device: npt.NDArray[np.int64]
    """A row per name, step and side, one of `rank_speed.SIDES`."""
    name: npt.NDArray[np.int64]
    """`ALL_NAMES`, or one that takes a good part of the rank's work."""
    step: npt.NDArray[np.int64]
    calls: npt.NDArray[np.int64]
    """How many of them."""
    total: npt.NDArray[np.int64]
    """Their durations, or self times, together, ns."""


def work_sums(graph: DependencyGraph) -> WorkSums:
    """Return how much work of each name a rank does, and how long that takes."""
    names, count, steps = program_of(graph, 0)
    sides = [_side(graph, side) for side in SIDES] if graph.ranks else []
    rows = np.concatenate(sides, axis=1) if sides else np.zeros((5, 0), np.int64)
    return WorkSums(_numbers(graph, names), count, steps, *rows)


def _numbers(graph: DependencyGraph, names: Array) -> npt.NDArray[np.int64]:
    texts = [graph.names[name] if name < len(graph.names) else "" for name in names.tolist()]
    return np.array([zlib.crc32(text.encode("utf-8", "replace")) for text in texts], np.int64)


def _side(graph: DependencyGraph, side: int) -> npt.NDArray[np.int64]:
    """Return (side, name, step, calls, total) of the names that take most time, a column per name and step."""
    _, name, step, count, time = work_of(graph, np.array([0]), side)
    some = (step >= 0) & (name != ALL_NAMES)
    names, name = np.unique(name[some], return_inverse=True)
    steps, step = np.unique(step[some], return_inverse=True)
    shape = (len(names), len(steps))
    cell = name.ravel() * max(len(steps), 1) + step.ravel()
    total, calls = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(total.reshape(-1), cell, time[some])
    np.add.at(calls.reshape(-1), cell, count[some])
    large = total.sum(axis=1) >= MIN_SHARE_OF_NAME * max(int(total.sum()), 1)  # no others are compared
    numbers = np.append(_numbers(graph, names[large]), ALL_NAMES)
    total, calls = (np.concatenate([each[large], each.sum(axis=0)[None]]) for each in (total, calls))
    at, when = np.nonzero(calls)
    return np.stack([np.full(len(at), side), numbers[at], steps[when], calls[at, when], total[at, when]])
