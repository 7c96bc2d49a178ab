"""The files of a critical path: the graph itself, and the trace with the path over the recorded events.

A saved graph is a zip archive of columns and text without code, which is read without unpacking it.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, looked_up
from htagraph.core.errors import IssueLog, TraceError
from htagraph.core.kinds import ActivityKind
from htagraph.hta.configs.config import CP_LAUNCH_EDGE_SHOW_ENV, flag
from htagraph.hta.shapes.job import HasJob, HtaJob
from htagraph.hta.shapes.path_view import (
    EDGE_COLUMNS,
    NOBODY,
    NODE_COLUMNS,
    TYPES,
    CPEdge,
    CPEdgeType,
    Table,
    View,
    edge_table,
    table_of,
)
from htagraph.output.export.originals import FLOWS, Original, survey
from htagraph.output.export.trace_writer import (
    FOR_VIEWING,
    INTEGER,
    MICROSECONDS,
    Column,
    RawEvent,
    TextRows,
    TraceWriter,
    metadata,
    readable,
    row_texts,
    us,
)
from htagraph.trace.kineto.decode import event_text_decoder, split
from htagraph.trace.kineto.source import iter_bytes

if TYPE_CHECKING:
    from htagraph.hta.analyzers.critical_path_analysis import CPGraph

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


_SHOWN = (CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY)
_ALWAYS_KEPT = ("user_annotation", "python_function")
_NAME = b"critical_path"
_LAST_TID = 2**31
"""Thread numbers from here on are misread: Perfetto keeps them in 32 bits with a sign."""
_TIME = re.compile(rb'"ts"\s*:\s*(-?[\d.]+)(?=[\s,}])')
_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode
_event = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode
_Head = msgspec.defstruct("_Head", [("ph", Any, ""), ("cat", Any, "")], gc=False)
_head: Callable[[msgspec.Raw], Any] = msgspec.json.Decoder(_Head).decode
"""What decides whether an event is written as it is."""
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
    recorded = survey(replace(job.graph, clocks=()), rank)
    overlay = _Overlay(graph, recorded, only_critical=only_show_critical_events)
    target = folder / f"overlaid_critical_path_{source.name}"
    shown = _shown(graph, all_edges=show_all_edges and not only_show_critical_events)
    root_keys, log = dict[str, Any](), IssueLog(str(source))
    decode = event_text_decoder() if recorded.issues else _texts  # which number the events of a sound file alike
    with TraceWriter(target, sources=[source]) as writer:
        for position, texts in split(iter_bytes(source, log), decode, root_keys, log):
            writer.begin(root_keys | overlay.header | FOR_VIEWING)
            writer.add_texts(overlay.edited(position, texts))
        writer.add(overlay.added(*shown))
        writer.end(root_keys | overlay.header | FOR_VIEWING)
    return str(target)


def is_zero_weight_launch_edge(edge: CPEdge) -> bool:
    """Return whether an edge only says that a launch came before its kernel."""
    return edge.type == CPEdgeType.KERNEL_LAUNCH_DELAY and edge.weight == 0


def _shown(graph: CPGraph, *, all_edges: bool) -> tuple[Table, Array, Array]:
    """Return the edges to show, the weight of each, ns, and which of them are on the path."""
    view, weight = _now(graph)
    edges, many, path = view.edges, np.int64(len(view.nodes)), np.array(graph.critical_path_nodes, np.int64)
    on_path = np.isin(edges.source * many + edges.target, path[:-1] * many + path[1:])
    shown = on_path & np.isin(edges.kind, [TYPES.index(each) for each in _SHOWN])
    if all_edges:
        launches = edges.kind == TYPES.index(CPEdgeType.KERNEL_LAUNCH_DELAY)
        shown = ~launches | (edges.weight != 0) | flag(CP_LAUNCH_EDGE_SHOW_ENV)
    return edges[shown].view(np.recarray), weight[shown], on_path[shown]


def _is_misread(tid: object) -> bool:
    """Return whether Perfetto would take a thread's number for another's."""
    return isinstance(tid, int) and not 0 <= tid < _LAST_TID


def _at(text: msgspec.Raw, moment: int) -> bytes | None:
    """Return an event's text with another time, ns; None where it is not certain which number is the time."""
    whole, rest = divmod(moment, 1000)
    written = b"%d.%03d" % (whole, rest) if rest else b"%d" % whole
    event = bytes(text)
    found = _TIME.search(event)
    if found is None or event.count(b'"ts"') != 1:
        return None
    return event[: found.start(1)] + written + event[found.end(1) :]


class _Overlay:
    """Edits the events of a file one after the other, and then adds the arrows."""

    def __init__(self, graph: CPGraph, recorded: Original, *, only_critical: bool) -> None:
        self.nodes, self.recorded, self.only_critical = graph.parts.nodes, recorded, only_critical
        self.critical = graph.critical_path_events_set
        self.kept = bytearray(len(recorded.index))  # of the slices
        self.names: dict[tuple[Any, Any], str] = {}
        first = (recorded.first_ns or 0) - recorded.base_ns
        self.shift = first // 1000 * 1000 if first > _EXACT_NS else 0
        """How much earlier the written times are than the file's times, ns."""
        tracks = [(recorded.lanes[lane], level) for lane, level in recorded.tracks]
        self.tids: list[Any] = [
            recorded.tid(lane, level) if level or _is_misread(lane[1]) else lane[1] for lane, level in tracks
        ]
        """The number of the thread of each track, as it is written."""
        self.times = (recorded.start - recorded.base_ns - self.shift).tolist()
        self.retimed = bool(self.shift) or recorded.unpadded
        """Whether times are written otherwise than they stand in the file."""
        self.row_of = dict(zip(recorded.index.tolist(), range(len(recorded.index)), strict=True))
        """The row of the slice at each position in the file."""
        moved = [tid != lane[1] for tid, (lane, _) in zip(self.tids, tracks, strict=True)]
        self.moved = np.array(moved, np.bool_)[recorded.track]
        """Which slices go to another thread than they stand on in the file."""

    @property
    def header(self) -> dict[str, Any]:
        """The root keys that differ from the file's."""
        return {"baseTimeNanoseconds": self.recorded.base_ns + self.shift} if self.shift else {}

    def edited(self, position: int, texts: list[msgspec.Raw]) -> Iterator[RawEvent | msgspec.Raw | bytes]:
        """Yield the events of a block as they will be written: texts where nothing is changed."""
        for at, text in enumerate(texts, position):
            head = _head(text)
            if head.ph in FLOWS:
                continue  # arrows that can be drawn are written anew
            if head.ph == "X":
                critical = at in self.critical
                if critical or not self.only_critical or head.cat in _ALWAYS_KEPT:
                    yield self._slice(text, self.row_of.get(at), critical=critical)
            elif self.shift or head.ph == "M":
                other = self._other(_event(text))
                if other is not None:
                    yield other
            else:
                yield text

    def _slice(self, text: msgspec.Raw, row: int | None, *, critical: bool) -> RawEvent | msgspec.Raw | bytes:
        if row is not None:
            self.kept[row] = True
        if not critical and (row is None or not self.moved[row]):
            retimed = _at(text, self.times[row]) if self.retimed and row is not None else text
            if retimed is not None:
                return retimed
        event = _event(text)
        if critical:
            args = event.get("args")
            event["args"] = {**(args if isinstance(args, dict) else {}), "critical": 1}
        if row is not None and self.moved[row]:
            event["tid"] = self.tids[self.recorded.track[row]]
        if row is not None and self.retimed:
            event["ts"] = us(self.times[row])
        return event

    def _other(self, event: RawEvent) -> RawEvent | None:
        """Return an event that is no slice, at its time; None if that is before all other events."""
        if event.get("ph") == "M":
            if event.get("name") == "thread_name" and isinstance(event.get("args"), dict):
                self.names[event.get("pid"), event.get("tid")] = str(event["args"].get("name", ""))
            return event
        if not isinstance(event.get("ts"), int | float | Decimal):
            return event
        event["ts"] = Decimal(str(event["ts"])) - self.shift // 1000
        return event if event["ts"] >= 0 else None

    def added(self, edges: Table, weight: Array, on_path: Array) -> Iterator[TextRows | RawEvent]:
        """Yield the recorded arrows, the graph's arrows and the names of added tracks, once all events were edited."""
        recorded, nodes, kept = self.recorded, self.nodes, np.array(self.kept, np.bool_)
        arrows = recorded.arrows
        both = np.flatnonzero(kept[arrows.tail] & kept[arrows.head])
        rows = np.column_stack((arrows.tail, arrows.head))[both]
        words = ([readable(msgspec.json.encode(word)) for word in pair] for pair in arrows.labels)
        labels = [b'"cat":%b,"name":%b' % tuple(pair) for pair in words]
        yield self._arrows(rows, recorded.start[rows], 1 + both, (labels, np.repeat(arrows.label[both], 2)))
        end = np.column_stack((edges.source, edges.target))
        place = looked_up(recorded.index, np.arange(len(kept)), nodes.event[end].ravel()).reshape(end.shape)
        shown = np.append(kept, np.False_)[place]  # -1, an event that is not there, is the last
        both = np.flatnonzero(shown.all(axis=1))
        end, rows = end[both], place[both]
        on_device = ~nodes.is_start[end] & (nodes.kind[end] >= ActivityKind.COMPUTATION)
        moment = nodes.time[end] - np.where(on_device, np.minimum(1000, recorded.duration[rows]), 0)
        types = [msgspec.json.encode(each.value) for each in TYPES]
        on_path = np.repeat(on_path[both], 2)
        yield self._arrows(
            rows, moment, 1 + len(arrows) + both, b'"cat":"%b","name":"%b"' % (_NAME, _NAME),
            b',"args":{"weight":', (MICROSECONDS, np.repeat(weight[both], 2)), (b',"critical":true', on_path),
            (b',"critical":false', ~on_path), b',"type":', (types, np.repeat(edges.kind[both], 2)), b"}",
        )  # fmt: skip
        yield from self._track_names(np.unique(recorded.track[kept]).tolist())

    def _arrows(self, rows: Array, moment: Array, number: Array, *columns: Column) -> TextRows:
        """Return arrows, each from a slice to a slice at two moments, with the columns around that."""
        recorded, count = self.recorded, 2 * len(rows)
        encoded = [tuple(map(msgspec.json.encode, (recorded.lanes[lane][0], tid)))
                   for tid, (lane, _) in zip(self.tids, recorded.tracks, strict=True)]  # fmt: skip
        places = [b'"pid":%b,"tid":%b' % each for each in encoded]
        ends = np.arange(count) % 2 == 1
        return row_texts(
            (
                (b'{"ph":"s",', ~ends), (b'{"ph":"f","bp":"e",', ends), columns[0], b',"id":',
                (INTEGER, np.repeat(number, 2)), b",", (places, recorded.track[rows].ravel()), b',"ts":',
                (MICROSECONDS, moment.ravel() - recorded.base_ns - self.shift), *columns[1:], b"}",
            ), count,
        )  # fmt: skip

    def _track_names(self, used: Sequence[int]) -> Iterator[RawEvent]:
        for track in used:
            lane, level = self.recorded.tracks[track]
            pid: Any = self.recorded.lanes[lane][0]
            tid = self.recorded.lanes[lane][1]
            if level or _is_misread(tid):
                name = self.names.get((pid, tid)) or f"thread {tid}"
                yield metadata("thread_name", pid, self.tids[track], name=f"{name} ({level + 1})" if level else name)
