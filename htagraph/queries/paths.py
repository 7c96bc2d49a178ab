"""Paths back through the binding edges, such as the critical path, as segments that add up to the window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, marked, texts_of
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.core.naming import short_name
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector, Selection
from htagraph.queries.attribution import label_of, module_of, names_of, operator_of
from htagraph.queries.path_segments import CATEGORIES, Segments, segments_of

if TYPE_CHECKING:
    import pandas as pd
    from pandas.api.extensions import ExtensionArray
    from plotly.graph_objects import Figure

    from htagraph.output.export.perfetto import Written

__all__ = ["CATEGORIES", "CriticalPath", "Way", "path_in_window", "path_to", "ways_beside"]

SEGMENTS = Table(
    "Critical path, segment by segment",
    Col("start_us", doc="since the job's first activity, common clock"),
    Col("duration_us"),
    Col("rank", "int64"),
    Col("lane", "str"),
    Col("activity", "int64", "number of the activity that spends the time"),
    Col("name kind", "str", "name and kind of that activity"),
    Col("edge", "str", "`EdgeKind`; empty at the head"),
    Col("gap", "str", "`GapKind` or empty"),
    Col("category", "str"),
    Col("operator module", "str", "see `queries.attribution`; empty for none"),
    Col("before", "str", "name of the activity whose start or end the segment leads to"),
    Col("hop", "bool", "whether the path comes from another rank"),
)
SHARES = Table(
    "Shares of the critical path",
    Col("group key", "str"),
    Col("time_us"),
    Col("share_percent", doc="share of the makespan"),
    Col("count", "int64", "segments"),
)
HOPS = Table(
    "Where the critical path moves to another rank (the second rank waits for the first)",
    Col("at_us", doc="since the job's first activity"),
    Col("from_rank to_rank", "int64"),
    Col("edge", "str"),
    Col("from_activity", "int64", "number of the activity that arrived last"),
    Col("to_activity", "int64", "number of the activity that waited"),
    Col("name", "str", "name of the activity that waited"),
    Col("waited_us", doc="how long that activity had been running at that moment; 0 if it started then"),
)
NEAR = Table(
    "Next-critical work (slack: how much longer it may take before it is critical)",
    Col("slack_us", doc="how much longer this path may take before this path is critical"),
    Col("start_us end_us", doc="where this path leaves the critical path and returns, since the job's first activity"),
    Col("work_us", doc="time of the activities on this path"),
    Col("rank", "int64", "the rank from which this path returns"),
    Col("edge", "str", "kind of the edge by which this path returns; empty where this path ends the window"),
    Col("leaves returns", "int64", "activities of the critical path where this path leaves and returns; -1 for none"),
    Col("main", "str", "the three longest activities of this path", heading="main work"),
)
_DEVICE_CATEGORIES = tuple(CATEGORIES.index(word) for word in ("computation", "communication", "memory"))


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """The chain of activities and waits that determines when the window ends: a delay of any link delays the end.

    Made by `htagraph.critical_path`. The segments tile the window: their lengths sum to the makespan to the ns.
    """

    graph: DependencyGraph
    window: tuple[int, int]
    """Begin and end, ns on the common clock."""
    ends: npt.NDArray[np.int64]
    """The vertices that the window could end with; the latest does."""
    vertices: npt.NDArray[np.int64]
    """The vertices on the path in the order of time; the first is at or before the begin of the window."""
    edges: npt.NDArray[np.int64]
    """The edge to each of them but the first."""

    def __repr__(self) -> str:
        return f"CriticalPath({self.makespan_ns / 1000:,.3f} µs, {len(self.segments):,} segments)"

    def _repr_html_(self) -> str:
        """Return the makespan and its division by category as a small HTML table for notebooks."""
        time = np.bincount(self.segments.category, self.segments.length, len(CATEGORIES))
        rows = "".join(
            f"<tr><th>{escape(CATEGORIES[code])}</th><td>{time[code] / 1000:,.3f}</td>"
            f"<td>{100 * time[code] / self.makespan_ns:.1f}</td></tr>"
            for code in np.argsort(-time, kind="stable").tolist()
            if time[code]
        )
        head = "<tr><th>spent on</th><th>µs</th><th>%</th></tr>"
        return f"<table><caption>{escape(repr(self))}</caption>{head}{rows}</table>"

    @property
    def makespan_ns(self) -> int:
        """The length of the window and of the path, ns."""
        return self.window[1] - self.window[0]

    @cached_property
    def segments(self) -> Segments:
        """The segments of the path, as arrays."""
        return segments_of(self.graph, self.vertices, self.edges, self.window[0])

    @property
    def activities(self) -> Selection:
        """The activities that spend time on the path."""
        return Selection(self.graph, np.unique(self.segments.activity))

    @described(SEGMENTS)
    def to_frame(self) -> pd.DataFrame:
        """Return the path: one row per segment, in the order of time.

        Each edge of the path gives up to two segments: the lag of the edge (``gap`` is empty), and the gap between the
        moment that the edge allowed and the recorded moment. ``category`` is what the time was spent on:

        - ``computation``, ``memory``, ``communication``: device work of this kind; for matched collectives, and for
          collectives on host threads, only the transfer after the last rank had arrived.
        - ``host``: own time of operators, Python and other runtime calls (event records and stream waits too), and host
          code that the trace does not show.
        - ``allocator``: own time of calls that get, map or free memory of a device, or pinned memory.
        - ``launch``: own time of calls that launch; launch latency.
        - ``sync``: the return of a blocking call, after the end of the work that the call waits for.
        - ``waiting``: the shortest pause that a stream, an event, a full queue or another thread causes; a user's lag.
        - ``data_loading``: waiting for the data loader, and host code that runs inside its call.
        - ``outside``: waiting for something outside of the recording, as its pace shows: another process, a file.
        - ``gap``: what no dependency in the graph explains.
        - ``head``: the time before recording starts, where the first recorded moment of the path is later than the
          window's begin.
        - ``other_work``: launched work waited although its launch had returned and its device ran nothing recorded: the
          device probably served another process, or work that was not recorded.

        Returns:
            One row per segment: {columns}.
        """
        graph, parts = self.graph, self.segments
        acts, rank = graph.activities, self.graph.activities.rank[parts.place].astype(np.int64)
        return SEGMENTS.frame({
            "start_us": (parts.start - graph.origin_ns) / 1000,
            "duration_us": parts.length / 1000,
            "rank": rank,
            "lane": texts_of([lane.label for lane in graph.lanes], acts.lane[parts.place]),
            "activity": parts.activity,
            "name": names_of(graph, parts.activity),
            "kind": _words(ActivityKind, acts.kind[parts.activity]),
            "edge": _words(EdgeKind, parts.edge),
            "gap": _words(GapKind, np.where(parts.gap == GapKind.NONE, -1, parts.gap)),
            "category": texts_of(CATEGORIES, parts.category),
            "operator": names_of(graph, operator_of(graph, parts.region)),
            "module": names_of(graph, module_of(graph, parts.region)),
            "before": names_of(graph, parts.target),
            "hop": np.diff(rank, prepend=rank[:1]) != 0,
        })  # fmt: skip

    @described(SHARES)
    def summary(self, times: Array | None = None) -> pd.DataFrame:
        """Return the makespan divided by rank, category, edge, operator, kernel and module.

        Args:
            times: the time of each segment, ns, if it is not its length.

        Returns:
            One row per group and key, the largest of a group first: {columns}. The times of each group sum to the
            makespan. Groups: ``rank``, ``category``, ``edge`` (the kind of the edge, or for gaps of the gap),
            ``operator``, ``kernel`` (short name; all other work is one row), ``module``.

        Example:
            >>> import htagraph as hg
            >>> path = hg.critical_path(hg.load("data/demo"))
            >>> shares = path.summary().groupby("group")["share_percent"].sum()
            >>> shares.round(6).unique().tolist()
            [100.0]
        """
        import pandas as pd

        rows, lengths = [], self.segments.length if times is None else times
        for group, (codes, word) in self._groups().items():
            low = int(codes.min(initial=0))
            count = np.bincount(codes - low)
            kinds = np.flatnonzero(count)
            time = np.bincount(codes - low, lengths)[kinds]  # of lengths it is exact: sums of ns below 2^53
            kinds, count = kinds + low, count[kinds]
            keys: dict[str, tuple[float, int]] = {}  # kernels may share a short name
            for code, lasted, many in zip(kinds.tolist(), time.tolist(), count.tolist(), strict=True):
                before = keys.get(word(code), (0.0, 0))
                keys[word(code)] = before[0] + lasted, before[1] + many
            rows += [(group, key, *both) for key, both in sorted(keys.items(), key=lambda item: -item[1][0])]
        table = pd.DataFrame(rows, columns=["group", "key", "time_ns", "count"])
        table["time_us"] = table["time_ns"].astype(float) / 1000
        table["share_percent"] = table["time_ns"] / max(self.makespan_ns, 1) * 100
        return SHARES.frame(table)

    def _groups(self) -> dict[str, tuple[Array, Any]]:
        """Return, for each group of the summary, the code of each segment and the function from a code to its word."""
        graph, parts = self.graph, self.segments
        acts = graph.activities
        in_kernel = acts.on_device[parts.activity] & np.isin(parts.category, _DEVICE_CATEGORIES)
        kernel = np.where(in_kernel, acts.name[parts.activity], -1)
        cause = np.where(parts.gap == GapKind.NONE, parts.edge, len(EdgeKind) + parts.gap)
        name = np.array([*graph.names, "none"], object)
        above = {"operator": operator_of(graph, parts.region), "module": module_of(graph, parts.region)}
        by_name = {group: (np.where(each < 0, -1, acts.name[each]), name.__getitem__) for group, each in above.items()}
        return {
            "rank": (acts.rank[parts.place], str),
            "category": (parts.category, CATEGORIES.__getitem__),
            "edge": (cause, _cause),
            "operator": by_name["operator"],
            "kernel": (kernel, lambda code: short_name(graph.names[code]) if code >= 0 else "none"),
            "module": by_name["module"],
        }

    @described(HOPS)
    def hops(self) -> pd.DataFrame:
        """Return where the path changes rank: there one rank waited for another.

        Returns:
            One row per hop in the order of time: {columns}.
        """
        graph = self.graph
        acts = graph.activities
        on_rank = np.flatnonzero(acts.rank[self.vertices >> 1] >= 0)  # JOINs are between ranks
        rank = acts.rank[self.vertices[on_rank] >> 1].astype(np.int64)
        at = np.flatnonzero(rank[1:] != rank[:-1])
        come, go = self.vertices[on_rank[at]], self.vertices[on_rank[at + 1]]
        into = self.edges[on_rank[at + 1] - 1]
        moment = graph.time[graph.edges.source[into]]
        waited = np.where(go & 1, moment - graph.time[go & ~1], 0)
        return HOPS.frame({
            "at_us": (moment - graph.origin_ns) / 1000,
            "from_rank": rank[at],
            "to_rank": rank[at + 1],
            "edge": _words(EdgeKind, graph.edges.kind[into]),
            "from_activity": come >> 1,
            "to_activity": go >> 1,
            "name": names_of(graph, go >> 1),
            "waited_us": np.maximum(0, waited) / 1000,
        })  # fmt: skip

    @described(NEAR)
    def near(self, count: int = 5, *, least_percent: float = 0.01) -> pd.DataFrame:
        """Return the near-critical paths: each becomes critical once the critical path is this much shorter.

        A near-critical path leaves the critical path (or starts at a moment without predecessors), runs through
        activities that are not on the critical path, and returns to it (or ends at another end of the window). A
        near-critical path follows the binding edges. Of paths that merge before they return, only the one with the
        least slack counts.

        Args:
            count: how many paths at most.
            least_percent: a path counts if its work is at least this percentage of the makespan; paths without work
                never count.

        Returns:
            One row per near-critical path, least slack first: {columns}.
        """
        ways = ways_beside(self, count, int(self.makespan_ns * least_percent / 100))
        return NEAR.frame([_way_row(self, way) for way in ways])

    def plot(self) -> Figure:
        """Return the figure of what the path is spent on, and where it runs; see `htagraph.plot.critical_path`."""
        from htagraph.output.plot.timeline import critical_path

        return critical_path(self)

    def to_perfetto(self, target: str | Path, *, counters: bool = False) -> Written:
        """Write the recorded events of every rank, with this path drawn over them, for Perfetto's UI (ui.perfetto.dev).

        Args:
            target: the file to write: ``.pftrace`` keeps ranks in order, ``.json`` is text; gzipped if it ends in
                ``.gz``; never one of the traces.
            counters: write queue lengths, bandwidths of copies and memory too.

        Returns:
            What was written and what could not be drawn as recorded; see `output.export.perfetto`.

        Raises:
            TraceError: a trace was changed since it was loaded, or the target cannot be written.
        """
        from htagraph.output.export.perfetto import to_perfetto

        return to_perfetto(self, target, counters=counters)


def path_to(graph: DependencyGraph, ends: Array, start: int) -> CriticalPath:
    """Return the path from the moment `start` to the latest of the vertices `ends`; an empty path if there are none."""
    from htagraph.core import traverse  # numba takes a moment to load

    if not len(ends):
        nothing = np.zeros(0, np.int64)
        return CriticalPath(graph, (start, start), nothing, nothing, nothing)
    before = graph.binding
    last = int(ends[np.argmax(graph.time[ends])])
    vertices = traverse.walk_back(before, graph.edges.source, graph.time, last, start)
    return CriticalPath(graph, (start, int(graph.time[last])), ends, vertices, before[vertices[1:]].astype(np.int64))


def path_in_window(graph: DependencyGraph, steps: IntSelector = None, ranks: IntSelector = None) -> CriticalPath:
    """Return the critical path of a window; documented at `htagraph.critical_path`."""
    time = graph.time
    chosen = graph.select(step=steps, rank=ranks).activities
    if not len(chosen):
        if steps is not None:
            msg = f"critical_path: no step {steps} on rank {ranks}; steps by rank: graph.select(kind='step').to_frame()"
            raise SelectionError(msg)
        return path_to(graph, chosen, 0)
    chosen = chosen[graph.awake[chosen]] if graph.awake[chosen].any() else chosen
    kind = graph.activities.kind[chosen]
    if steps is not None and (kind == ActivityKind.BOUNDARY).any():
        begins, ends = chosen[kind == ActivityKind.STEP], chosen[kind == ActivityKind.BOUNDARY]
        return path_to(graph, 2 * ends, int(time[2 * begins].min()))
    begin, end, offsets = time[2 * chosen], time[2 * chosen + 1], graph.out_offsets
    final = np.flatnonzero(offsets[1:] == offsets[:-1])
    final = final[marked(chosen, len(graph.activities))[final >> 1]]
    last = 2 * chosen[np.argmax(begin)] if begin.max() >= end.max() else 2 * chosen[np.argmax(end)] + 1
    final = np.unique(np.append(final, last))
    return path_to(graph, final[np.argsort(final & 1, kind="stable")], int(min(begin.min(), end.min())))


class Way(NamedTuple):
    """A near-critical path, as `CriticalPath.near` defines it."""

    vertices: Array
    """Its vertices in the order of time; the first is on the critical path where it leaves that."""
    into: Array
    """The edge to each vertex but the first, and the one that returns to the critical path, if any."""
    slack: int
    """How much longer it may take before it is critical, ns."""
    returns: int
    """The vertex of the critical path where it returns; -1 if it ends at an end of the window."""


def ways_beside(path: CriticalPath, count: int, least: int = 0) -> list[Way]:
    """Return at most `count` near-critical paths with at least `least` ns of work, least slack first."""
    from htagraph.core import traverse

    graph, edges, (start, end) = path.graph, path.graph.edges, path.window
    time, before = graph.time, graph.binding.copy()
    weight = np.append(_work(graph), 0)[before]  # 0 where no edge enters
    on_path = marked(path.vertices, graph.vertex_count)
    back = (on_path & (time > start))[edges.target]
    back[path.edges] = False
    merging, ending = np.flatnonzero(back), path.ends[~on_path[path.ends]]
    late = (time - graph.gap)[edges.target[merging]] - time[edges.source[merging]] - edges.lag[merging]
    slack = np.concatenate((late, end - time[ending]))
    order = np.argsort(slack, kind="stable")
    candidates = np.concatenate((edges.source[merging], ending))[order].astype(np.int64)
    own = np.concatenate((_work(graph)[merging], np.zeros(len(ending), np.int64)))[order]
    edge = np.concatenate((merging, np.full(len(ending), -1)))[order]
    before[on_path | (time <= start)] = -1
    ways, most = [], min(count, len(order))
    for i in traverse.detours(before, edges.source, weight, on_path, candidates, own, max(least, 1), most):
        vertices = traverse.walk_back(before, edges.source, time, int(candidates[i]), start)
        into = np.concatenate((before[vertices[1:]], edge[i : i + 1][edge[i : i + 1] >= 0]))
        returns = int(edges.target[edge[i]]) if edge[i] >= 0 else -1
        ways.append(Way(vertices, into.astype(np.int64), int(slack[order[i]]), returns))
    return ways


def _work(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the lag of each edge that belongs to an activity, ns; 0 for other edges."""
    return np.where(graph.edges.activity >= 0, graph.edges.lag, 0)


def _way_row(path: CriticalPath, way: Way) -> tuple[Any, ...]:
    """Return a row of `CriticalPath.near`."""
    graph, edges, time = path.graph, path.graph.edges, path.graph.time
    first, last = int(way.vertices[0]), int(way.vertices[-1])
    owned = way.into[edges.activity[way.into] >= 0]
    name, work = graph.activities.name[edges.activity[owned]], edges.lag[owned]
    names, which, inverse = np.unique(name, return_index=True, return_inverse=True)
    total = np.bincount(inverse, work, len(names))
    main = np.argsort(-total)[:3]
    longest = [(label_of(graph, int(edges.activity[owned[which[i]]])), total[i]) for i in main]
    ranks = graph.activities.rank[way.vertices >> 1]
    begin, end = max(int(time[first]), path.window[0]), time[way.returns if way.returns >= 0 else last]
    return (
        way.slack / 1000, (begin - graph.origin_ns) / 1000, (end - graph.origin_ns) / 1000, work.sum() / 1000,
        int(ranks[ranks >= 0][-1]) if (ranks >= 0).any() else -1,
        EdgeKind(edges.kind[way.into[-1]]).label if way.returns >= 0 else "",
        first >> 1 if first in path.vertices else -1, way.returns >> 1,
        ", ".join(f"{label} {lasted / 1000:,.1f} µs" for label, lasted in longest),
    )  # fmt: skip


def _cause(code: int) -> str:
    return GapKind(code - len(EdgeKind)).label if code >= len(EdgeKind) else EdgeKind(code).label


def _words(kinds: type[ActivityKind | EdgeKind | GapKind], codes: Array) -> ExtensionArray:
    """Return the words of codes of an enum, as text; empty for -1."""
    return texts_of([kind.label for kind in kinds], codes)
