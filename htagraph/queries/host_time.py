"""What the host does while the job waits for it: on the critical path, and while a device is idle.

Also where the host waits for its device, and where longest: the operators, or calls, that block or ask in a loop.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, coded, distinct
from htagraph.core.computing import once
from htagraph.core.intervals import NO_TIME, Intervals, intersection, union
from htagraph.core.kinds import DEVICE_WAITS, FRAMES, OPERATORS, ActivityKind, EdgeKind, GapKind, edges_with, of_kinds
from htagraph.core.naming import (
    DEFAULT_NAMING,
    exact_glob,
    is_data_loader,
    is_dispatch,
    is_poll,
    is_source_frame,
    names_like,
    names_that,
)
from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import untraced_edges
from htagraph.graph.measures.pauses import CAUSES
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.interruptions import LONG_NS
from htagraph.queries.path_segments import Segments
from htagraph.queries.paths import CATEGORIES, CriticalPath, path_to

__all__ = [
    "LATE_REASONS", "MANY", "MOST_LATE", "Blocking", "LateLaunches", "LateReason", "blocked_by_copies",
    "calls_that_wait", "device_waits", "each_activity", "has_long_pauses", "host_pauses", "late_launches",
    "late_reason", "longest_blocking", "steps_of_pause", "while_loading",
]  # fmt: skip

_CATEGORIES = ("host", "launch", "sync", "allocator")
_KEYS = ["what", "inside", "before", "rank"]
PAUSES = Table(
    "What the host did on the critical path",
    Col("what", "str", "the function, operator or call that spends the time; empty where no event covers it"),
    Col(
        "inside",
        "str",
        "the innermost Python function with a source file around it, else the operator, else the annotation; empty for "
        "none or one of the same name",
    ),
    Col("before", "str", "the activity that came next, where no event covers the time"),
    Col("after", "str", "the activity that ended before the longest of these gaps"),
    Col("rank", "int64"),
    Col("count", "int64", "number of activities or gaps"),
    Col("total_us longest_us"),
    Col("share_percent", doc="share of the critical path"),
    Col("activity", "int64", "number of the longest activity, or of the activity after the longest gap"),
)
LateReason: TypeAlias = Literal["loader", "source", "ranks", "pauses", "launches", "few"]
"""What the host does while its device waits: it waits for its data loader; for a source of data outside of the
recording; for other ranks or for transfers; it is busy
or pauses for long with something else; it works on many small things; or on few."""
LATE_REASONS: Final[tuple[LateReason, ...]] = get_args(LateReason)
"""All reasons."""
_MAX_WAITS = 24
"""How many waits of a device are looked into, the longest. Chosen: where few pauses are the reason, they are most of
the time. Doubled, a summary takes a few ms longer."""
MANY = 30
"""Waits of a device, or collectives in a row; fewer are no sign of many small pieces. Chosen: a training step has
hundreds. Doubled, a recording of 30 to 60 kernels is not advised to use CUDA graphs."""


@described(PAUSES)
def host_pauses(path: CriticalPath, count: int = 5) -> pd.DataFrame:
    """Return the activities of the host on a critical path, by name and place, the most time first.

    Returns:
        One row per rank, activity's name and place: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = host_pauses(hg.critical_path(hg.load("data/demo")))
        >>> bool(table["total_us"].is_monotonic_decreasing)
        True
    """
    top = _summed(_each(path)).head(count)
    words = np.array([*path.graph.names, ""], object)
    texts = {key: pd.array(words[top[key].to_numpy(np.int64)], dtype="str") for key in (*_KEYS[:3], "after")}
    return PAUSES.frame({
        **texts, "rank": top["rank"], "count": top["count"], "total_us": top["total_ns"] / 1000,
        "longest_us": top["longest_ns"] / 1000, "share_percent": 100 * top["total_ns"] / max(path.makespan_ns, 1),
        "activity": top["activity"],
    })  # fmt: skip


def steps_of_pause(path: CriticalPath, pause: Mapping[str, Any]) -> list[int]:
    """Return the few steps that hold nearly all time of a row of `host_pauses`; none where many steps do.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> steps_of_pause(path, host_pauses(path).iloc[0])
        []
    """
    graph = path.graph
    each = _each(path)
    words = np.array([*graph.names, ""], object)
    chosen = np.isin(each["rank"], pause["ranks"] if "ranks" in pause else pause["rank"])
    for key in _KEYS[:3]:
        chosen &= words[each[key].to_numpy(np.int64)] == pause[key]
    step = graph.activities.step[each["activity"].to_numpy(np.int64)]
    time = each["ns"][chosen].groupby(step[chosen]).sum().sort_values(ascending=False)
    shares = time.cumsum() / max(1, time.sum())
    few = int(np.searchsorted(shares, LIMITS.nearly_all)) + 1
    every = np.unique(step[step >= 0])
    holds = time.index[:few]
    return sorted(holds.tolist()) if few <= MOST * len(every) and holds.min() >= 0 else []


@once
def has_long_pauses(graph: DependencyGraph) -> bool:
    """Return whether most host time without any event lies in long pauses: that is no Python between operators.

    Example:
        >>> import htagraph as hg
        >>> has_long_pauses(hg.load("data/demo"))
        False
    """
    pauses = graph.gap[graph.edges.target[untraced_edges(graph)]]
    return bool(pauses[pauses >= LONG_NS].sum() > MOST * pauses.sum())


def late_reason(graph: DependencyGraph, rank: int, but: Collection[int] = ()) -> LateReason | Literal[""]:
    """Return the main activity of a rank's host while its device waits for a launch; one of `LATE_REASONS` or "".

    Each wait is explained by the path to the kernel that ends it: what had to end before it could begin, `but` for some
    calls. Small pieces of work are no reason where waits too long for dispatch and launching are most of the time.

    Example:
        >>> import htagraph as hg
        >>> late_reason(hg.load("data/demo"), 0)
        'loader'
    """
    time = np.zeros(len(LATE_REASONS) - 1)
    waits = _waits(graph, rank)
    if waits.number >= MANY and waits.shown_share < MOST:
        return "launches"
    for work, since in waits.longest:
        segments = path_to(graph, np.array([2 * work]), since).segments
        elsewhere = graph.activities.rank[segments.place] != rank
        category = segments.category
        whole = np.bincount(segments.activity, segments.length)[segments.activity]  # slices of one activity are one
        long = np.where(segments.gap != 0, segments.length, whole) >= LONG_NS
        of_ranks = elsewhere | (category == CATEGORIES.index("communication"))
        is_loading = category == CATEGORIES.index("data_loading")
        is_outside = category == CATEGORIES.index("outside")
        reason = np.select([is_loading, is_outside, of_ranks, long], [0, 1, 2, 3], 4)
        steady = np.where(np.isin(segments.activity, [*but]), 0, segments.length)
        time += np.bincount(reason, steady, len(time))
    if not time.any():
        return ""
    reason_of_most = LATE_REASONS[int(time.argmax())]
    if reason_of_most != "launches":
        return reason_of_most
    if waits.number < MANY:
        return "few"
    return "pauses" if waits.long_share > MOST else "launches"


class LateLaunches(NamedTuple):
    """The waits of a rank's device for late launches."""

    late: int
    """Pieces of work that the device waited for, idle."""
    launched: int
    """Pieces of work that the host launched."""
    long: int
    """Waits too long for dispatch and launching."""

    @property
    def are_most(self) -> bool:
        """Whether nearly each launch is late; else the device ran dry at some places only."""
        return self.late > MOST_LATE * self.launched


MOST_LATE = 2 / 3
"""The share of launches from which each is said to be late. Chosen: two of three; of fewer, the places where the device
ran dry say more than the number of launches. It cannot be doubled."""


def late_launches(graph: DependencyGraph, rank: int) -> LateLaunches:
    """Return how many launches of a rank came late, after its device had run out of work.

    Example:
        >>> import htagraph as hg
        >>> late_launches(hg.load("data/demo"), 0).are_most
        False
    """
    acts = graph.activities
    is_launched = acts.on_device & (acts.cause >= 0) & (acts.rank == rank)
    pauses = graph.device_pauses
    of_rank = (pauses.places[pauses.place, 0] == rank) & (pauses.length > 0)
    length = pauses.length[of_rank & (pauses.causes() == CAUSES.index("host_wait"))]
    return LateLaunches(len(length), int(np.count_nonzero(is_launched)), int(np.count_nonzero(length >= LONG_NS)))


def while_loading(graph: DependencyGraph, rank: int, outside: Intervals = NO_TIME) -> Intervals:
    """Return when a rank's device waits for a late launch while the host gets a batch from its data loader.

    Args:
        graph: the job.
        rank: the rank.
        outside: further waits of the device, such as before its first work, ns.

    Example:
        >>> import htagraph as hg
        >>> from htagraph.core.intervals import length
        >>> length(while_loading(hg.load("data/demo"), 0)) > 0
        True
    """
    acts = graph.activities
    is_loader = names_that(is_data_loader, graph.names)[acts.name] & ~acts.on_device
    loads = np.flatnonzero(is_loader & (acts.rank == rank))
    pauses = graph.device_pauses
    late = (pauses.places[pauses.place, 0] == rank) & (pauses.causes() == CAUSES.index("host_wait"))
    begin = np.concatenate((pauses.begin[late], outside[0]))
    end = np.concatenate((pauses.begin[late] + pauses.length[late], outside[1]))
    loading = union(graph.time[2 * loads], graph.time[2 * loads + 1])
    return intersection(union(begin, end), loading)


@once
def _each(path: CriticalPath) -> pd.DataFrame:
    """Return the activities and gaps of the host on a path; see `each_activity`."""
    parts = path.segments
    is_of_host = np.isin(parts.category, [CATEGORIES.index(word) for word in _CATEGORIES])
    return each_activity(path.graph, parts, np.flatnonzero(is_of_host))


def each_activity(graph: DependencyGraph, parts: Segments, rows: Array) -> pd.DataFrame:
    """Return a row per activity, or gap, that segments of a path are spent on.

    Args:
        graph: the job.
        parts: the segments.
        rows: numbers of the segments to count.

    Returns:
        ``what``, ``inside``, ``before`` and ``after`` as in `host_pauses`, but as codes of names, -1 for none;
        ``rank``, ``ns`` and ``activity``, and ``segment``, the number of its first segment.
    """
    name = graph.activities.name
    gap, rank = parts.gap[rows] != GapKind.NONE, graph.activities.rank[parts.place[rows]].astype(np.int64)
    one = np.where(gap, len(name) + rows, parts.activity[rows])  # slices of one activity are one; each gap is one
    group, first = _groups(coded(one, rank)) if len(rows) else (rows, rows)  # what it is and where say all keys
    ns = np.bincount(group, parts.length[rows], len(first)).astype(np.int64)  # exact: sums of ns below 2^53
    rows, gap = rows[first], gap[first]
    owner = _of_user(graph, parts.activity[rows].astype(np.int64))
    target, parent = parts.target[rows], np.append(graph.tree.parent, -1)
    at_start = parts.start[rows] + parts.length[rows] == graph.time[2 * target]
    begin = np.where(gap, parts.region[rows], parent[owner])
    begin = np.where(gap & at_start & (begin == target), parent[target], begin)  # before it, so not inside it
    place, what = _places(graph, begin, np.where(gap, -1, owner)), np.where(gap, -1, name[owner])
    return pd.DataFrame({
        "what": what, "inside": np.where((place >= 0) & (name[place] != what), name[place], -1),
        "before": np.where(gap & at_start, name[target], -1),
        "after": np.where(gap, _ended_before(graph, 2 * target + ~at_start), -1),
        "rank": rank[first], "ns": ns, "activity": np.where(gap, target, owner), "segment": rows,
    })  # fmt: skip


def _of_user(graph: DependencyGraph, rows: Array) -> Array:
    """Return activities, but for frames of PyTorch's dispatcher the activity around each: no code has such a name."""
    is_dispatched = names_that(is_dispatch, graph.names)[graph.activities.name]
    if not is_dispatched.any():
        return rows
    place = graph.tree.nearest(~is_dispatched, rows)
    return np.where(is_dispatched[rows] & (place >= 0), place, rows)


def _summed(each: pd.DataFrame) -> pd.DataFrame:
    """Return a row per key, the most time first: the `_KEYS`, ``count``, ``total_ns``, and of the longest the rest."""
    each = each.iloc[np.argsort(-each["ns"].to_numpy(), kind="stable")]
    if not len(each):
        return each.assign(count=0, total_ns=0, longest_ns=0)
    group, first = _groups(coded(*(each[key].to_numpy() for key in _KEYS)))
    total = np.bincount(group, each["ns"]).astype(np.int64)
    best = each.iloc[first].rename(columns={"ns": "longest_ns"}).assign(count=np.bincount(group), total_ns=total)
    return best.iloc[np.argsort(-total, kind="stable")].reset_index(drop=True)


def _groups(code: Array) -> tuple[Array, Array]:
    """Return (the group of each row, the first row of each group); groups are in the order of their first rows."""
    group = pd.factorize(code)[0]
    return group, np.unique(group, return_index=True)[1]


def _ended_before(graph: DependencyGraph, vertex: Array) -> Array:
    """Return the name of what ended on the same thread before the gap at each vertex; -1 where something only began."""
    edge, acts = graph.binding[vertex], graph.activities
    source = np.where(edge >= 0, graph.edges.source[edge], -1)
    same = acts.lane[source >> 1] == acts.lane[vertex >> 1]
    return np.where((source >= 0) & (source % 2 == 1) & same, acts.name[source >> 1], -1)


def _places(graph: DependencyGraph, begin: Array, owner: Array) -> Array:
    """Return the activity that says where something ran; -1 for none, and for functions that say it themselves."""
    # the innermost Python function with a source file, else operator, else annotation; of runtime calls, operator first
    kind = graph.activities.kind
    in_file = names_that(is_source_frame, graph.names)[graph.activities.name]
    source = graph.tree.nearest((kind == ActivityKind.PYTHON) & in_file, begin)
    operator = graph.tree.nearest(of_kinds(kind, OPERATORS), begin)
    region = graph.tree.nearest(kind == ActivityKind.ANNOTATION, begin)  # steps are everywhere
    is_call = (owner >= 0) & of_kinds(kind[owner], (ActivityKind.LAUNCH, ActivityKind.SYNC, ActivityKind.RUNTIME))
    place = np.where(is_call & (operator >= 0), operator, np.where(source >= 0, source, operator))
    place = np.where(place >= 0, place, region)
    itself = (owner >= 0) & in_file[owner] & (kind[owner] == ActivityKind.PYTHON)
    return np.where(itself, -1, place)


class _LateWaits(NamedTuple):
    """Waits of a rank's device for late launches."""

    longest: list[tuple[int, int]]
    """The work that ends each of the longest waits, and since when the device is idle, ns."""
    shown_share: float
    """The share of all waiting in these."""
    long_share: float
    """The share of all waiting in waits too long for dispatch and launching."""
    number: int
    """How many waits there are."""


def _waits(graph: DependencyGraph, rank: int) -> _LateWaits:
    """Return the waits of a rank's device for late launches."""
    pauses = graph.device_pauses
    of_rank = (pauses.places[pauses.place, 0] == rank) & (pauses.length > 0)
    waits = np.flatnonzero(of_rank & (pauses.causes() == CAUSES.index("host_wait")))
    length = pauses.length[waits]
    total = max(1, int(length.sum()))
    longest = waits[np.argsort(-length, kind="stable")][:_MAX_WAITS]
    ends = pauses.after[longest].tolist()
    begins = pauses.begin[longest].tolist()
    shown_share = float(pauses.length[longest].sum()) / total
    long_share = float(length[length >= LONG_NS].sum()) / total
    return _LateWaits(list(zip(ends, begins, strict=True)), shown_share, long_share, len(waits))


@dataclass(frozen=True)
class Blocking:
    """Calls of one place that wait for the device."""

    name: str
    """The outermost operator around the calls, or the call itself where there is none."""
    criteria: dict[str, Any]
    """What selects them for `Scenario.remove_sync`."""
    count: int
    """How many calls wait."""
    blocked_ns: int
    """How long they take in total."""


def longest_blocking(graph: DependencyGraph) -> Blocking | None:
    """Return the operator, or call, in which the host waits longest for the device; None if it never waits.

    Example:
        >>> import htagraph as hg
        >>> longest_blocking(hg.load("data/demo")).name
        'aten::item'
    """
    acts = graph.activities
    calls, blocked = _waiting(graph)
    if not len(calls):
        return None
    place = _outermost(graph, calls)
    name = np.where(place >= 0, acts.name[place], acts.name[calls])
    distinct, number = np.unique(name, return_inverse=True)
    total = np.bincount(number.ravel(), blocked)
    most = int(total.argmax())
    rows = np.flatnonzero(number.ravel() == most)
    text = graph.names[int(distinct[most])]
    criterion = "op" if (place[rows] >= 0).all() else "name"
    return Blocking(text, {criterion: exact_glob(text)}, len(rows), int(total[most]))


def device_waits(graph: DependencyGraph, calls: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the edges by which some calls wait for the device.

    The waits of a call that asks in a loop are waits of the Python in the loop, too. The mask of calls has one entry
    more than there are activities.
    """
    edges = graph.edges
    asks = _asks(graph)
    out = of_kinds(edges.kind, DEVICE_WAITS) & calls[edges.target >> 1]
    return out | (asks & np.isin(edges.source, edges.source[out & asks])) if asks.any() else out


def calls_that_wait(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the calls by which the host waits for its device, also where the work was over already.

    Copies to the device are left out: nobody asks for such a wait.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> calls = calls_that_wait(graph)
        >>> sorted({graph.names[name] for name in graph.activities.name[calls].tolist()})
        ['cudaDeviceSynchronize', 'cudaMemcpyAsync', 'cudaStreamSynchronize']
    """
    edges = graph.edges
    waits = of_kinds(edges.kind, DEVICE_WAITS) & ~_asks(graph) & ~blocked_by_copies(graph)
    return distinct(edges.target[waits] >> 1, len(graph.activities)).astype(np.int64)


def blocked_by_copies(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which edges lead to the end of a call that copies to the device, which blocks without being asked to."""
    edges, out = graph.edges, graph.edges.kind == EdgeKind.MEMCPY_SYNC
    rows = np.flatnonzero(out)
    names = graph.activities.name[edges.source[rows] >> 1]
    out[rows] = names_like(DEFAULT_NAMING.to_device, graph.names, names)
    return out


def _asks(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which edges lead to no call that blocks: the host asks whether work is over, or a pause ends with it."""
    acts, edges = graph.activities, graph.edges
    asked = names_that(is_poll, graph.names)[acts.name] | of_kinds(acts.kind, FRAMES)
    return (edges.kind == EdgeKind.HOST_SYNC) & (asked[edges.target >> 1] | (edges.target & 1 == 0))


def _waiting(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (calls that wait for the device, the last of a loop or what ends a pause; how long each blocks, ns)."""
    acts, edges = graph.activities, graph.edges
    asks = _asks(graph)
    late = graph.time[edges.source] > graph.time[edges.target & ~1]  # else the work was over when the call began
    blocks = of_kinds(edges.kind, DEVICE_WAITS) & ~asks & ~blocked_by_copies(graph) & late
    calls = distinct(edges.target[blocks] >> 1, len(acts))
    asked = np.flatnonzero(asks)
    asked = asked[np.lexsort((graph.time[edges.target[asked]], edges.source[asked]))]
    first = np.flatnonzero(np.diff(edges.source[asked], prepend=-1))
    last = np.append(first[1:], len(asked))[: len(first)] - 1
    begin, end = (edges.target[asked[at]] for at in (first, last))
    lane, before = of_kinds(edges.kind, edges_with("lane")), np.zeros(graph.vertex_count, np.int64)
    before[edges.target[lane]] = edges.source[lane]
    lasts = graph.time[end] - graph.time[before[begin]]
    return np.concatenate((calls, end >> 1)), np.concatenate((acts.duration[calls], lasts))


def _outermost(graph: DependencyGraph, calls: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the outermost operator around each call, within any annotation; -1 for none."""
    is_operator = of_kinds(graph.activities.kind, OPERATORS)
    place = np.full(len(calls), -1, np.int64)
    at = graph.tree.nearest(is_operator, calls)
    while (at >= 0).any():
        place = np.where(at >= 0, at, place)
        above = graph.tree.parent[at]
        at = np.where((at >= 0) & (above >= 0) & is_operator[above], above, -1)
    return place
