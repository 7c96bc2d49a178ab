"""DependencyGraph: the activities of all ranks and the dependencies between them, as one frozen DAG.

A vertex is a moment: activity i starts at vertex 2i and ends at vertex 2i + 1. An edge u → v says that v cannot come
before u plus the edge's lag. Times and lags are int64 ns.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, marked, occurring, stable_order
from htagraph.core.errors import GraphError, Issue, SelectionError
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, EdgeKind, of_kinds
from htagraph.graph.activities import BETWEEN, Activities, Edges, Lane, common_time, frozen
from htagraph.graph.gaps import binding_edges, gap_kinds
from htagraph.graph.measures.allocator import Flushes, flushes_of
from htagraph.graph.measures.own_time import own_time_of
from htagraph.graph.measures.pauses import Pauses, device_pauses_of, stream_pauses_of
from htagraph.graph.measures.steps import Steps, steps_of
from htagraph.graph.measures.waits import Waits, waits_of
from htagraph.graph.selection import Selection, one_activity
from htagraph.graph.tree import Tree, tree_of
from htagraph.trace.columns import Trace
from htagraph.trace.kineto.events import Event
from htagraph.trace.readers import reader_of

if TYPE_CHECKING:
    import networkx
    import pandas as pd
    from typing_extensions import Unpack

    from htagraph.graph.clocks import Clock
    from htagraph.graph.matches import Matches
    from htagraph.graph.measures.ledger import Ledger
    from htagraph.graph.measures.start_up import StartUp
    from htagraph.graph.selection import Criteria

__all__ = ["DependencyGraph", "check"]

_SHOWN_RANKS = 8
"""Rows of the table in a notebook. Chosen: the ranks of one node. Doubled, the table fills half a screen."""


@dataclass(frozen=True, eq=False)
class DependencyGraph:
    """The job as one DAG. Make it with `htagraph.load` or `DependencyGraph.from_frames`; it never changes.

    Networkx's functions run on these arrays without conversion: ``nx.dag_longest_path(graph)``. `as_networkx` is the
    graph with networkx's methods. Networkx's nodes are the vertex numbers; the edge attribute ``weight`` includes gaps,
    so that the longest path is as long as the makespan, and ``lag_ns`` is the lag alone.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> graph.ranks
        (0, 1, 2, 3)
    """

    activities: Activities
    edges: Edges
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    traces: Mapping[int, Trace] = field(default_factory=dict)
    """By rank: what its file holds beside the activities' columns (header, path, counts, other events)."""
    issues: tuple[Issue, ...] = ()
    """The problems of the files, and the repairs."""
    clocks: tuple[Clock, ...] = ()
    """How each rank's clock differs from the common one; empty if they were not compared."""
    matches: Matches | None = None
    """Which activities of different ranks are one collective."""
    captures: tuple[Trace, ...] = ()
    """The files that lent frames to replayed CUDA graphs, without their activities (`construction.borrowing`)."""

    __networkx_backend__ = "htagraph"

    @staticmethod
    def build(activities: Activities, edges: Edges, **context: Any) -> DependencyGraph:  # noqa: ANN401 - the other fields
        """Return the graph of edges in any order: they are sorted by (source, target), and all arrays are frozen.

        Of parallel edges, the one with the largest lag is kept.
        """
        count = 2 * len(activities)
        for ends in (edges.source, edges.target):
            if len(ends) and not 0 <= ends.min() <= ends.max() < count:  # no array could be sorted by such a vertex
                DependencyGraph(activities, edges, **context).check()
        place = edges.source * np.int64(count)
        place += edges.target
        order, unsorted = stable_order(place), vars(edges).copy()
        del edges, place  # each of its columns is freed once it is sorted
        edges = _without_parallel(Edges(*(unsorted.pop(name)[order] for name in tuple(unsorted))))
        for columns in (activities, edges, *activities.args.values()):
            for column in vars(columns).values():
                if isinstance(column, np.ndarray):
                    frozen(column)
        return DependencyGraph(activities, edges, **context)

    @staticmethod
    def from_frames(activities: pd.DataFrame, dependencies: pd.DataFrame) -> DependencyGraph:
        """Return the graph of activities and dependencies that you bring.

        Args:
            activities: one row per activity; the index holds its id (any hashable). Activities are numbered by rank
                and, within a rank, in the order of the rows. Columns: ``duration_ns`` (int), and optionally ``name``,
                ``kind`` (a word of `ActivityKind` but ``"boundary"``, default ``"op"``; ``"join"`` for a meeting point
                that has neither rank nor lane), ``rank`` (default 0), ``lane`` (text: the thread or stream), ``step``
                and ``start_ns``. Without ``start_ns`` every activity starts as early as its dependencies allow, the
                first at 0. For another device or batch, also what an operator was timed on and computes: ``device`` (a
                product's name), ``input_shapes`` (a list of shapes, or its text), ``output_shape``, ``dtype`` (such as
                ``"torch.float32"``), or ``flop`` and ``bytes`` themselves.
            dependencies: columns ``source`` and ``target`` (ids), and optionally ``lag_ns`` (default 0, may be
                negative), ``from_start`` and ``to_end`` (bool, default False: from the end of the source to the start
                of the target), ``owner`` (the id of the activity whose time the lag is, for what-ifs; none by
                default) and ``kind`` (a word of `EdgeKind` but ``"body"``, default ``"user"``).

        Raises:
            GraphError: an id is unknown or repeated, a duration negative, or the dependencies form a cycle.

        Example:
            >>> import pandas as pd
            >>> acts = pd.DataFrame({"name": ["load", "train"], "duration_ns": [5, 7]})
            >>> graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0], "target": [1]}))
            >>> graph.activities.start.tolist()
            [0, 5]
        """
        from htagraph.graph.construction.from_frames import from_frames

        return from_frames(activities, dependencies)

    def __repr__(self) -> str:
        ranks = f"{len(self.ranks)} rank{'' if len(self.ranks) == 1 else 's'}"
        return f"DependencyGraph({ranks}, {len(self.activities):,} activities, {len(self.edges):,} edges)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a row per rank."""
        acts = self.activities
        cells = []
        for rank in self.ranks[:_SHOWN_RANKS]:
            kind = acts.kind[acts.of_rank(rank)]
            span = self.time[2 * acts.of_rank(rank).start : 2 * acts.of_rank(rank).stop]
            length = f"{(span.max() - span.min()) / 1e6:,.3f}" if len(span) else ""
            cells.append((rank, f"{len(kind):,}", f"{int(np.isin(kind, DEVICE_WORK).sum()):,}", length))
        rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
        more = f"<p>and {len(self.ranks) - len(cells):,} more ranks</p>" if len(self.ranks) > len(cells) else ""
        head = "".join(f"<th>{word}</th>" for word in ("rank", "activities", "kernels and copies", "recorded ms"))
        return f"<p>{html.escape(repr(self))}</p><table><tr>{head}</tr>{rows}</table>{more}"

    @property
    def vertex_count(self) -> int:
        """Number of vertices: two per activity."""
        return 2 * len(self.activities)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the job, ascending."""
        acts = self.activities
        return tuple(sorted(set(self.traces) | set(occurring(acts.rank[: acts.ranked]))))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the ProfilerStep annotations of any rank, ascending; empty where there are none."""
        return tuple(step for step in occurring(self.activities.step) if step >= 0)

    @cached_property
    def origin_ns(self) -> int:
        """The earliest moment of any activity on the common clock, ns: every ``start_us`` shown counts from it."""
        return int(self.time.min()) if self.vertex_count else 0

    @cached_property
    def awake(self) -> Mask:
        """Which activities are on a thread or stream that takes part in the job.

        A monitor is a thread with nothing but Python frames, annotations and calls that neither start work nor wait for
        work: the watchdog of NCCL's process groups, which asks whether work is over, or the thread of a data loader
        that pins batches ahead. No other thread is known to wait for a monitor, and a monitor goes on when the job is
        over. A rank's monitors take part only if the rank has no other threads.
        """
        acts = self.activities
        frames = of_kinds(acts.kind, (ActivityKind.PYTHON, ActivityKind.ANNOTATION, ActivityKind.RUNTIME))
        if not frames.any():
            return frozen(~frames)
        lanes, ranks = acts.lane.max(initial=-1) + 2, acts.rank.max(initial=-1) + 2  # -1 is the last entry
        active = marked(acts.lane[~frames], lanes)[acts.lane]
        return frozen(active | ~marked(acts.rank[active], ranks)[acts.rank])

    @cached_property
    def tree(self) -> Tree:
        """What encloses what, across threads and launches; every analysis uses this tree."""
        return tree_of(self.activities, self.names)

    @cached_property
    def step_spans(self) -> Steps:
        """When each step of each rank starts, and when all work launched in it is over."""
        return steps_of(self)

    @cached_property
    def own_time(self) -> npt.NDArray[np.int64]:
        """The own time of each activity as recorded, ns: its duration without the activities that it encloses.

        The own time of a blocking call includes its wait. Annotations have no own time: they only name a part of the
        own time of the activity around them.
        """
        return frozen(own_time_of(self.activities, self.edges, self.time))

    @cached_property
    def pauses(self) -> Pauses:
        """The pauses of each stream: when it was idle, and why."""
        return stream_pauses_of(self)

    @cached_property
    def device_pauses(self) -> Pauses:
        """The pauses of each rank's device: when all its streams were idle, and why."""
        return device_pauses_of(self)

    @cached_property
    def waits(self) -> Waits:
        """How long each member of a collective waits, for which member, and how long its transfer takes."""
        return waits_of(self)

    @cached_property
    def start_up(self) -> StartUp:
        """The time that each rank spends once, when it first does something; no job after a warm-up has this time."""
        from htagraph.graph.measures.start_up import start_up_of  # pandas takes a moment to load: not for every graph

        return start_up_of(self)

    @cached_property
    def ledger(self) -> Ledger:
        """The launches, device work, steps and operators in the recording of each rank, and the parts that it lacks."""
        from htagraph.graph.measures.ledger import ledger_of

        return ledger_of(self)

    @cached_property
    def flushes(self) -> Flushes:
        """The allocator's calls where it gave memory back to its device to ask for other memory."""
        return flushes_of(self)

    @cached_property
    def time(self) -> npt.NDArray[np.int64]:
        """The recorded moment of each vertex on the common clock of all ranks, ns."""
        return frozen(common_time(self.activities, self.clocks))

    @cached_property
    def out_offsets(self) -> Ints:
        """Where the edges that leave each vertex begin in `edges`."""
        from htagraph.core.counting import offsets_by_key  # numba takes a moment to load: only for what walks

        return frozen(offsets_by_key(self.edges.source, self.vertex_count))

    @cached_property
    def _incoming(self) -> tuple[Array, Array]:
        from htagraph.core import traverse  # numba takes a moment to load: only for what walks

        offsets, order = traverse.counting_order(self.edges.target, self.vertex_count)
        return frozen(offsets), frozen(order)

    @property
    def in_offsets(self) -> Ints:
        """Where the edges that enter each vertex begin in `in_edges`."""
        return self._incoming[0]

    @property
    def in_edges(self) -> npt.NDArray[np.int32]:
        """Edge numbers ordered by (target, source)."""
        return self._incoming[1]

    @cached_property
    def topological_order(self) -> npt.NDArray[np.int32]:
        """All vertices, each after its predecessors; a GraphError if the edges form a cycle."""
        from htagraph.core.traverse import topological_order

        return _without_cycle(self, topological_order(self.out_offsets, self.edges.target))

    @cached_property
    def replay_order(self) -> npt.NDArray[np.int32]:
        """All vertices, as `topological_order` has them, but in the order in which a replay is fastest."""
        from htagraph.core.traverse import chain_order

        return _without_cycle(self, chain_order(self.out_offsets, self.edges.target))

    @cached_property
    def _bound(self) -> tuple[Array, Array]:
        binding, gap = binding_edges(self.edges, self.time, *self._incoming)
        return frozen(binding), frozen(gap)

    @cached_property
    def gap(self) -> Ints:
        """By how many ns each vertex came later than its edges allowed; 0 where no edge enters."""
        return self._bound[1]

    @cached_property
    def binding(self) -> npt.NDArray[np.int32]:
        """The binding edge of each vertex: the incoming edge with the latest source time plus lag; -1 if none enters.

        On ties a LAUNCH edge is binding, else the first.
        """
        return self._bound[0]

    @cached_property
    def gap_kind(self) -> npt.NDArray[np.int8]:
        """The GapKind of each vertex: NONE where there is no gap, TRACE_HEAD where no edge enters."""
        return frozen(gap_kinds(self.activities, self.edges, self.binding, self.gap))

    def select(self, **criteria: Unpack[Criteria]) -> Selection:
        """Return the activities that meet every criterion given; `Criteria` describes each.

        Args:
            **criteria: ``kind`` (a word of `ActivityKind`, or ``device``, ``host``, ``kernel``), ``name`` (glob of the
                activity's name), ``op`` (glob of the name of anything that encloses the activity), ``rank``,
                ``stream``, ``step``, ``step_index`` (a number or several), ``regex``, ``category``, ``time``,
                ``min_us``, ``max_us``, ``depth``, ``activity``, ``beside``. None leaves a criterion out.

        Raises:
            SelectionError: a kind, rank, step or activity that the graph does not have, a value of the wrong type, or
                an unknown criterion. The message names the kinds, ranks, steps or criteria that exist.

        Example:
            >>> import htagraph as hg
            >>> graph = hg.load("data/demo")
            >>> len(graph.select(kind="communication", rank=0)) > 0
            True
        """
        return Selection.of(self, criteria)

    def event(self, activity: int | Selection) -> Event:
        """Return the pydantic model of an activity, with every argument that its file had.

        The file is read again, so it must still be there unchanged.

        Raises:
            SelectionError: there is no such activity, or no file recorded it.
            TraceError: the file is gone or was changed.
        """
        activity = one_activity(self, activity)
        index, rank = int(self.activities.event[activity]), int(self.activities.rank[activity])
        if index < 0 or rank not in self.traces:
            msg = f"activity {activity} ({self.describe(activity)}) was added by the graph: no file recorded it"
            raise SelectionError(msg)
        trace = self.traces[rank]
        event: Event = reader_of(trace).event(trace, index)
        return event

    def predecessors(self, activity: int | Selection) -> pd.DataFrame:
        """Return the dependencies of an activity: every dependency that its start or its end waited for.

        Dependencies between the start and the end of one activity, or between activities of one selection, are left
        out.

        Args:
            activity: the number of an activity, or a selection (``graph.select(…)``).

        Returns:
            One row per dependency: ``activity`` (int64), ``moment`` (str: the end of the activity, ``start`` or
            ``end``), ``edge`` (str: a word of `EdgeKind`), ``other_activity`` (int64), ``other_moment``,
            ``other_name``, ``other_kind`` (str), ``other_rank`` (int64), ``lag_us`` (float64: the least time between),
            ``slack_us`` (float64: how much later the target came than this dependency alone allows), ``binds`` (bool:
            whether the dependency decided when its target came; then the slack is the gap of the target), ``gap``
            (str: why the target came later than all dependencies allow, a word of `GapKind`), ``provenance`` (str) and
            ``confidence_percent`` (int64).

        Raises:
            SelectionError: the activity is not in the graph.

        Example:
            >>> import htagraph as hg
            >>> graph = hg.load("data/demo")
            >>> kernel = graph.select(kind="kernel", rank=0)[1]
            >>> graph.predecessors(kernel)[["moment", "edge", "other_moment", "other_kind"]].values.tolist()
            [['start', 'stream', 'end', 'computation'], ['start', 'launch', 'start', 'launch']]
        """
        from htagraph.graph.dependencies import dependencies

        return dependencies(self, activity, incoming=True)

    def successors(self, activity: int | Selection) -> pd.DataFrame:
        """Return the dependencies on an activity: every dependency by which another activity waited for it.

        Args:
            activity: the number of an activity, or a selection.

        Returns:
            One row per dependency, with the columns of `predecessors`; the target is the other activity.

        Raises:
            SelectionError: the activity is not in the graph.

        Example:
            >>> import htagraph as hg
            >>> graph = hg.load("data/demo")
            >>> launch = graph.select(kind="launch", rank=0)[0]
            >>> "launch" in set(graph.successors(launch)["edge"])
            True
        """
        from htagraph.graph.dependencies import dependencies

        return dependencies(self, activity, incoming=False)

    def check(self) -> None:
        """Verify the graph's invariants.

        Raises:
            GraphError: names the rule that is broken and both events of the edge that breaks it.
        """
        check(self)

    def coverage(self, by: str = "job") -> pd.DataFrame:
        """Return how much of the job the dependencies cover, how they are known, and what was refused.

        Args:
            by: ``"job"``, or what the ledger of the recording is grouped by: ``"rank"``, ``"device"``, ``"stream"``,
                ``"step"`` or ``"call"``.

        Returns:
            By rank: the fields of `htagraph.graph.measures.ledger.RankLedger`, and ``lacks`` (the missing parts). By
            device and stream: the recorded work, ``works`` and ``busy_us``, from ``first_us`` to ``last_us``. By step
            and call (a name of launch calls): ``launches``, ``without_work`` and ``lost`` (int64).

            By job: one row per fact: ``part`` (str: ``recording``, ``device work``, ``collectives``, ``edges``,
            ``refused``), ``what`` (str), ``count`` and ``total`` (int64: so many of so many), ``share_percent``
            (float64, NaN of none), ``detail`` (str: for collectives the key that matched them, for edges their
            provenance and confidence).

        Example:
            >>> import htagraph as hg
            >>> table = hg.load("data/demo").coverage()
            >>> table.loc[table["what"] == "any predecessor", "share_percent"].tolist()
            [100.0]
        """
        from htagraph.graph.coverage import coverage, ledger_by

        return coverage(self) if by == "job" else ledger_by(self, by)

    def lane_of(self, activity: int) -> Lane:
        """Return the thread or stream that an activity ran on."""
        lane = int(self.activities.lane[activity])
        return self.lanes[lane] if lane >= 0 else BETWEEN

    def replace(self, **changes: Any) -> DependencyGraph:  # noqa: ANN401 - the graph's fields
        """Return a new graph with some of its parts exchanged (``activities=``, ``edges=``, …)."""
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__} | changes
        graph = DependencyGraph.build(**parts)
        if "tree" in vars(self) and graph.activities is self.activities and graph.names is self.names:
            vars(graph)["tree"] = self.tree
        return graph

    def as_networkx(self) -> networkx.DiGraph:
        """Return the graph as a read-only `networkx.DiGraph` over the same arrays; everything in networkx takes it.

        Nodes are vertex numbers. The attributes of a node: ``activity``, ``moment`` (``"start"`` or ``"end"`` of the
        activity), ``name``, ``kind``, ``rank``, ``lane``, ``step``, ``time_ns`` (on the common clock) and ``gap_ns``.
        Those of an edge: ``lag_ns``, ``kind``, ``provenance``, ``confidence_percent``, ``binds`` (whether it decided
        when its target came) and ``weight``: the lag, plus the gap of the target, plus, where nothing precedes the
        source, its time since the start of the job. The longest path is as long as the makespan.

        Example:
            >>> import htagraph as hg
            >>> view = hg.load("data/demo").as_networkx()
            >>> len(view), view.nodes[3]["activity"], view.nodes[3]["moment"]
            (19052, 1, 'end')
        """
        from htagraph.graph.networkx_view import networkx_view

        return networkx_view(self)

    def to_networkx(self) -> networkx.DiGraph:
        """Return a copy of `as_networkx` as Python objects, which may be changed; meant for small graphs."""
        import networkx

        return networkx.DiGraph(self.as_networkx())

    def is_directed(self) -> bool:
        """Return True: networkx asks before it dispatches."""
        return True

    def is_multigraph(self) -> bool:
        """Return False: networkx asks before it dispatches."""
        return False

    def describe(self, activity: int | Selection) -> str:
        """Return one line that identifies an activity: name, number, rank, lane, start."""
        activity = one_activity(self, activity)
        acts = self.activities
        start = (int(self.time[2 * activity]) - self.origin_ns) / 1000
        lane = self.lane_of(activity).label
        name = self.names[acts.name[activity]]
        name = name if len(name) <= 60 else name[:59] + "…"
        where = f"rank {acts.rank[activity]}, {lane}" if acts.rank[activity] >= 0 else lane
        return f"{name!r} (activity {activity}, {where}, at {start:.3f} µs)"

    def describe_edge(self, edge: int) -> str:
        """Return one line that identifies an edge: its kind and both ends."""
        source, target = int(self.edges.source[edge]), int(self.edges.target[edge])
        ends = [f"{('start', 'end')[v % 2]} of {self._describe_safely(v // 2)}" for v in (source, target)]
        return f"{EdgeKind(self.edges.kind[edge]).name} edge from {ends[0]} to {ends[1]}"

    def _describe_safely(self, activity: int) -> str:
        return self.describe(activity) if 0 <= activity < len(self.activities) else f"activity {activity} (absent)"


def _without_parallel(edges: Edges) -> Edges:
    """Return the edges, keeping of parallel ones the one with the largest lag (on ties, that of the first rule).

    The kept edge is known as surely as the surest of its parallel edges.
    """
    same = (edges.source[1:] == edges.source[:-1]) & (edges.target[1:] == edges.target[:-1])
    if not same.any():
        return edges
    repeats = np.concatenate(([False], same))
    rows = np.flatnonzero(repeats | np.concatenate((same, [False])))  # the few that have a parallel
    group = np.cumsum(~repeats[rows])
    best = np.lexsort((rows, -edges.lag[rows], group))
    first = np.concatenate(([True], group[best][1:] != group[best][:-1]))
    keep = np.ones(len(edges), np.bool_)
    keep[rows] = False
    kept = rows[best[first]]
    keep[kept] = True
    # an edge that one rule observed by an id is no guess because another rule has it too, with another lag
    began = np.flatnonzero(~repeats[rows])
    provenance = edges.provenance.copy()
    provenance[kept] = np.minimum.reduceat(edges.provenance[rows], began)
    confidence = edges.confidence.copy()
    confidence[kept] = np.maximum.reduceat(edges.confidence[rows], began)
    return replace(edges, provenance=provenance, confidence=confidence).take(keep)


def check(graph: DependencyGraph) -> None:
    """Verify that edges join vertices, lie in order, agree with the recorded times and form no cycle.

    Raises:
        GraphError: names the rule that is broken and the activity, or both ends of the edge, that breaks it.
    """
    edges, count = graph.edges, graph.vertex_count
    rules = (
        ("an edge joins two vertices of the graph",
         (edges.source < 0) | (edges.source >= count) | (edges.target < 0) | (edges.target >= count)),
        ("no edge leads from a vertex to itself", edges.source == edges.target),
        ("edges are sorted by (source, target) and unique",
         np.diff(edges.source * np.int64(count) + edges.target, prepend=-1) <= 0),
    )  # fmt: skip
    for rule, broken in rules:
        _refuse(graph, rule, broken)
    late = graph.time[edges.source] + edges.lag > graph.time[edges.target]
    _refuse(graph, "a target is not recorded before its source plus the lag", late)
    _check_activities(graph)
    _ = graph.topological_order


def _without_cycle(graph: DependencyGraph, order: Array) -> npt.NDArray[np.int32]:
    """Return a topological order; raise an error that names an edge of a cycle if it does not reach all vertices."""
    if len(order) == graph.vertex_count:
        return frozen(order)
    cycle = _cycle(graph, np.isin(np.arange(graph.vertex_count), order, invert=True))
    between = [edge for edge in cycle if graph.edges.source[edge] // 2 != graph.edges.target[edge] // 2] or cycle
    msg = f"acyclic: {len(cycle)} edges form a cycle, among them the {graph.describe_edge(between[0])}"
    raise GraphError(msg)


def _cycle(graph: DependencyGraph, stuck: Array) -> list[int]:
    """Return the edges of a cycle, given the vertices that no order reaches: each has a predecessor among them."""
    walked: dict[int, int] = {}  # vertex → edge by which it was left, backwards
    vertex = int(np.argmax(stuck))
    while vertex not in walked:
        entering = graph.in_edges[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]]
        walked[vertex] = int(next(edge for edge in entering if stuck[graph.edges.source[edge]]))
        vertex = int(graph.edges.source[walked[vertex]])
    return list(walked.values())[list(walked).index(vertex) :]


def _check_activities(graph: DependencyGraph) -> None:
    acts = graph.activities
    rules = (
        ("durations are not negative", acts.duration < 0),
        ("activities are ordered by rank", np.diff(acts.rank[: acts.ranked], prepend=acts.rank[:1]) < 0),
        ("JOINs come last", acts.kind[: acts.ranked] == ActivityKind.JOIN),
        ("parents are activities or -1", (acts.parent < -1) | (acts.parent >= len(acts))),
        ("causes are activities or -1", (acts.cause < -1) | (acts.cause >= len(acts))),
    )
    for rule, broken in rules:
        if broken.any():
            msg = f"{rule}: {graph.describe(int(np.argmax(broken)))}"
            raise GraphError(msg)


def _refuse(graph: DependencyGraph, rule: str, broken: Array) -> None:
    if broken.any():
        edge = graph.describe_edge(int(np.argmax(broken)))
        msg = f"{rule}: broken by {int(broken.sum())} edges, such as the {edge}"
        raise GraphError(msg)
