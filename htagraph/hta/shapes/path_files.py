"""The files of a critical path: the graph itself, and the trace with the path over the recorded events.

A saved graph is a zip archive of columns and text without code, which is read without unpacking it.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError
from htagraph.core.kinds import ActivityKind
from htagraph.hta.shapes.job import HasJob
from htagraph.hta.shapes.path_view import (
    EDGE_COLUMNS,
    NOBODY,
    NODE_COLUMNS,
    TYPES,
    CPEdge,
    CPEdgeType,
    View,
    edge_table,
    flag,
    table_of,
)
from htagraph.output.export.originals import FLOWS, Original, survey
from htagraph.output.export.trace_writer import FOR_VIEWING, RawEvent, edit_trace, metadata, us

if TYPE_CHECKING:
    from htagraph.hta.analyzers.critical_path_analysis import CPGraph
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["is_zero_weight_launch_edge", "overlay_critical_path_analysis", "restore_cpgraph", "save"]

_FORMAT = "htagraph critical path 1"
_ABOUT, _COLUMNS, _FRAME = "graph.json", "columns.npz", "trace_data.csv"
_PATH, _CHANGED = "critical_path_nodes", "changed_weight"


def save(graph: CPGraph, out_dir: str) -> str:
    """Write a graph, its path and the frame of its events to ``out_dir.zip`` and return that name.

    Changed weights and edges are kept; other data that you put on nodes and edges is not kept.
    """
    view, weight = _now(graph)
    tables = (("node_", view.nodes), ("edge_", view.edges))
    arrays = {f"{prefix}{name}": table[name] for prefix, table in tables for name in table.dtype.names}
    arrays |= {_PATH: np.array(graph.critical_path_nodes, np.int64), _CHANGED: weight}
    columns = io.BytesIO()
    np.savez(columns, allow_pickle=False, **arrays)
    about = {
        "format": _FORMAT, "rank": view.rank, "window_ns": view.window, "first_ns": view.first_ns,
        "data_load_events": graph.data_load_events,
    }  # fmt: skip
    frame = graph.named_events.copy()
    frame["full_name"] = [graph._get_node_name(event) for event in frame.index]
    target = Path(f"{out_dir}.zip").expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ABOUT, json.dumps(about))
        archive.writestr(_COLUMNS, columns.getvalue())
        archive.writestr(_FRAME, frame.to_csv(index_label="_index_"))
    return str(target)


def restore_cpgraph(zip_filename: str, t_full: Any, rank: int) -> CPGraph:  # noqa: ANN401 - a job, or what has one
    """Return the graph that `CPGraph.save` wrote.

    Args:
        zip_filename: what `save` returned.
        t_full: the trace (``TraceAnalysis.t``) or `HtaJob` that the graph was made of; None where the job is not at
            hand: the path, its breakdown and its summary need only the file.
        rank: whose graph it is.

    Raises:
        TraceError: the file is absent, holds no such graph, or a graph of another rank; the file is never unpickled nor
            unpacked.
    """
    job: HtaJob | None = getattr(t_full, "job", t_full)
    try:
        with zipfile.ZipFile(zip_filename) as archive:
            if set(archive.namelist()) != {_ABOUT, _COLUMNS, _FRAME}:
                raise ValueError("it has other parts")  # noqa: EM101 - one message for all that is wrong
            graph = _read(archive, job)
    except (OSError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        hint = "HTA's own files hold pickled objects, which may run any code: save the graph again with htagraph"
        msg = f"{zip_filename}: is no critical path that htagraph saved ({error}). {hint}"
        raise TraceError(msg) from error
    if graph.rank != rank:
        msg = f"{zip_filename}: is of rank {graph.rank}, not {rank}"
        raise TraceError(msg)
    return graph


def _read(archive: zipfile.ZipFile, job: HtaJob | None) -> CPGraph:
    import pandas as pd

    from htagraph.hta.analyzers.critical_path_analysis import CPGraph

    about = json.loads(archive.read(_ABOUT))
    if about["format"] != _FORMAT:
        raise ValueError(f"its format is {about['format']!r}")  # noqa: EM102
    with np.load(io.BytesIO(archive.read(_COLUMNS)), allow_pickle=False) as columns:
        named = {prefix: [name for name in columns if name.startswith(prefix)] for prefix in ("node_", "edge_")}
        nodes, edges = (
            table_of({name.removeprefix(prefix): columns[name] for name in names}) for prefix, names in named.items()
        )
        path, weight = columns[_PATH], columns[_CHANGED]
    first, last = map(int, about["window_ns"])
    view = View(nodes, edges, int(about["rank"]), (first, last), int(about["first_ns"]))
    _check(view, path, weight)
    graph = CPGraph.of(view, job, about["data_load_events"], None if np.array_equal(weight, edges.weight) else weight)
    graph.critical_path_nodes = path.tolist()
    frame = pd.read_csv(io.BytesIO(archive.read(_FRAME)), dtype={"pid": object, "tid": object}, low_memory=False)
    graph.saved_frame = frame.set_index("_index_")
    return graph


def _check(view: View, path: Array, weight: Array) -> None:
    """Refuse columns that do not fit one another."""
    edges, nodes = view.edges, len(view.nodes)
    alike = (view.nodes.dtype.names, edges.dtype.names) == (NODE_COLUMNS, EDGE_COLUMNS) and len(weight) == len(edges)
    inside = all(((each >= 0) & (each < nodes)).all() for each in (edges.source, edges.target, path))
    if not alike or not inside or ((edges.kind < 0) | (edges.kind >= len(TYPES))).any():
        raise ValueError("its columns do not fit one another")  # noqa: EM101


def _now(graph: CPGraph) -> tuple[View, Array]:
    """Return the nodes and edges of a graph as they are now, and the weights, ns."""
    view = graph.parts
    if not graph.is_filled:
        return view, graph.weight_ns
    pairs = [(u, v, data["object"]) for u, v, data in graph.edges(data=True)]
    rows = [
        (u, v, TYPES.index(edge.type), round(edge.weight * 1000), graph.edge_to_event_map.get((u, v), NOBODY))
        for u, v, edge in pairs
    ]
    weight = np.array([round(data["weight"] * 1000) for _, _, data in graph.edges(data=True)], np.int64)
    return replace(view, edges=edge_table(*np.array(rows, np.int64).reshape(-1, len(EDGE_COLUMNS)).T)), weight


_SHOW_ZERO_LAUNCHES = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"
_SHOWN = (CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY)
_ALWAYS_KEPT = ("user_annotation", "python_function")
_NAME = "critical_path"
_LAST_TID = 2**31
"""Thread numbers from here on are misread: Perfetto keeps them in 32 bits with a sign."""
_EXACT_NS = 2**53
"""Perfetto reads times as floating-point ns, which are exact up to here (104 days); later ones lose digits."""


def overlay_critical_path_analysis(
    t: HasJob,
    rank: int,
    critical_path_graph: CPGraph,
    output_dir: str,
    only_show_critical_events: bool = True,
    show_all_edges: bool = False,
) -> str:
    """Write a rank's trace with its critical path marked and return the file's name.

    Events on the path get ``args.critical`` 1. Edges are arrows, category ``critical_path``, with ``weight`` (µs),
    ``critical`` and ``type``. So that Perfetto draws all of it, recorded slices that overlap others of their track in
    part, and threads with a negative number, go to a track of their own, recorded arrows without a slice at one end are
    left out, and times since 1970 are written as times since the first event, whose time is in ``baseTimeNanoseconds``.

    Args:
        t: a job that was read.
        rank: whose graph it is.
        critical_path_graph: result of `critical_path_analysis`.
        output_dir: the folder for ``overlaid_critical_path_<name of the trace>``; it is made.
        only_show_critical_events: of the slices, keep those on the path, annotations and Python frames.
        show_all_edges: show every edge of the graph (without launches of weight 0, unless the environment variable
            CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE is 1), not just dependencies, launches and synchronizations on
            the path. Has no effect where only critical events are shown.

    Returns:
        The file's name; empty, with a warning, where `output_dir` is a file.

    Raises:
        TraceError: the trace was changed since it was read, or the file cannot be written.
    """
    job, graph = t.job, critical_path_graph
    folder = Path(output_dir).expanduser()
    if folder.exists() and not folder.is_dir():
        warnings.warn(f"{output_dir} is not a directory: nothing is written", stacklevel=2)
        return ""
    source = job.of_rank(rank).unchanged_path()
    own_clock = replace(job.graph, clocks=())
    overlay = _Overlay(graph, survey(own_clock, rank), only_critical=only_show_critical_events)
    target = folder / f"overlaid_critical_path_{source.name}"
    shown = _shown(graph, all_edges=show_all_edges and not only_show_critical_events)
    edit_trace(source, target, overlay.edit, overlay.added(shown), overlay.header | FOR_VIEWING)
    return str(target)


def is_zero_weight_launch_edge(edge: CPEdge) -> bool:
    """Return whether an edge only says that a launch came before its kernel."""
    return edge.type == CPEdgeType.KERNEL_LAUNCH_DELAY and edge.weight == 0


def _shown(graph: CPGraph, *, all_edges: bool) -> list[CPEdge]:
    if not all_edges:
        return [edge for edge in graph.critical_path_edges if edge.type in _SHOWN]
    edges = [data["object"] for _, _, data in graph.edges(data=True)]
    if flag(_SHOW_ZERO_LAUNCHES):
        return edges
    return [edge for edge in edges if not is_zero_weight_launch_edge(edge)]


def _is_misread(tid: object) -> bool:
    """Return whether Perfetto would take a thread's number for another's."""
    return isinstance(tid, int) and not 0 <= tid < _LAST_TID


class _Overlay:
    """Edits the events of a file one after the other, and then adds the arrows."""

    def __init__(self, graph: CPGraph, recorded: Original, *, only_critical: bool) -> None:
        self.graph, self.recorded, self.only_critical = graph, recorded, only_critical
        self.critical = graph.critical_path_events_set
        self.kept = np.zeros(len(recorded.index), np.bool_)  # of the slices
        self.position = self.row = 0
        self.names: dict[tuple[Any, Any], str] = {}
        first = (recorded.first_ns or 0) - recorded.base_ns
        self.shift = first // 1000 * 1000 if first > _EXACT_NS else 0
        """How much earlier the written times are than the file's times, ns."""

    @property
    def header(self) -> dict[str, Any]:
        """The root keys that differ from the file's."""
        return {"baseTimeNanoseconds": self.recorded.base_ns + self.shift} if self.shift else {}

    def edit(self, event: RawEvent) -> RawEvent | None:
        """Return the next event as it will be written; None to leave it out."""
        position, row = self.position, self.row
        self.position += 1
        is_slice = row < len(self.kept) and self.recorded.index[row] == position
        self.row += is_slice
        phase = event.get("ph")
        if phase in FLOWS:
            return None  # arrows that can be drawn are written anew
        if phase == "M" and event.get("name") == "thread_name" and isinstance(event.get("args"), dict):
            self.names[event.get("pid"), event.get("tid")] = str(event["args"].get("name", ""))
        if phase != "X":
            return self._moved(event)
        critical = position in self.critical
        if self.only_critical and not critical and event.get("cat") not in _ALWAYS_KEPT:
            return None
        if critical:
            args = event.get("args")
            event["args"] = {**(args if isinstance(args, dict) else {}), "critical": 1}
        if is_slice:
            self.kept[row] = True
            event["tid"] = self._tid(row, event["tid"])
            event["ts"] = self._ts(int(self.recorded.start[row]))
        return event

    def _moved(self, event: RawEvent) -> RawEvent | None:
        """Return an event that is no slice, at its time; None if that is before all other events."""
        if not self.shift or not isinstance(event.get("ts"), int | float | Decimal) or event.get("ph") == "M":
            return event
        event["ts"] = Decimal(str(event["ts"])) - self.shift // 1000
        return event if event["ts"] >= 0 else None

    def _ts(self, moment: int) -> Any:  # noqa: ANN401 - int or Decimal
        """Return a moment on the rank's clock as the µs of the file."""
        return us(moment - self.recorded.base_ns - self.shift)

    def _tid(self, row: int, tid: Any) -> Any:  # noqa: ANN401 - as in the file
        level = int(self.recorded.level[row])
        moved = level or _is_misread(tid)
        return self.recorded.tid(self.recorded.lanes[self.recorded.lane[row]], level) if moved else tid

    def added(self, edges: list[CPEdge]) -> Iterator[RawEvent]:
        """Yield the recorded arrows, the graph's arrows and the names of added tracks, once all events were edited."""
        number = 0
        for number, (category, name, tail, head) in enumerate(self.recorded.arrows, 1):
            if self.kept[tail] and self.kept[head]:
                common = {"cat": category, "name": name, "id": number}
                yield {"ph": "s", **common, **self._start(tail)}
                yield {"ph": "f", "bp": "e", **common, **self._start(head)}
        on_path = self.graph.critical_path_edges_set
        for own, edge in enumerate(edges, number + 1):
            weight = self.graph.adj[edge.begin][edge.end]["weight"] if self.graph.is_filled else edge.weight
            args = {"weight": weight, "critical": edge in on_path, "type": edge.type.value}
            common = {"id": own, "cat": _NAME, "name": _NAME}
            ends = self._end(edge.begin), self._end(edge.end)
            if None not in ends:
                yield {"ph": "s", **common, **(ends[0] or {}), "args": args}
                yield {"ph": "f", "bp": "e", **common, **(ends[1] or {}), "args": args}
        yield from self._track_names()

    def _start(self, row: int) -> RawEvent:
        return {**self._where(row), "ts": self._ts(int(self.recorded.start[row]))}

    def _where(self, row: int) -> RawEvent:
        pid, tid = self.recorded.lanes[self.recorded.lane[row]]
        return {"pid": pid, "tid": self._tid(row, tid)}

    def _end(self, node: int) -> RawEvent | None:
        """Return where an arrow begins or ends; None if its event is not shown."""
        nodes = self.graph.parts.nodes
        row = int(np.searchsorted(self.recorded.index, nodes.event[node]))
        if row == len(self.kept) or self.recorded.index[row] != nodes.event[node] or not self.kept[row]:
            return None
        moment = int(nodes.time[node])
        if not nodes.is_start[node] and nodes.kind[node] >= ActivityKind.COMPUTATION:
            moment -= min(1000, int(self.recorded.duration[row]))  # else the arrow would meet the next slice
        return {**self._where(row), "ts": self._ts(moment)}

    def _track_names(self) -> Iterator[RawEvent]:
        used = np.unique(np.stack((self.recorded.lane, self.recorded.level))[:, self.kept], axis=1).T.tolist()
        for lane, level in used:
            pid, tid = self.recorded.lanes[lane]
            if level or _is_misread(tid):
                name = self.names.get((pid, tid)) or f"thread {tid}"
                track = self.recorded.tid((pid, tid), level)
                yield metadata("thread_name", pid, track, name=f"{name} ({level + 1})" if level else name)
