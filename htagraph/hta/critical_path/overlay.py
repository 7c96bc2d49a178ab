"""The critical path over the recorded events: HTA's overlay file, as Perfetto can read it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htagraph.core.kinds import ActivityKind
from htagraph.hta.critical_path.types import CPEdge, CPEdgeType, flag
from htagraph.output.export.originals import Original, survey
from htagraph.output.export.trace_writer import FOR_VIEWING, RawEvent, edit_trace, us

if TYPE_CHECKING:
    from htagraph.hta.critical_path.graph import CPGraph
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["is_zero_weight_launch_edge", "overlay_critical_path_analysis"]

SHOW_ZERO_LAUNCHES = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"
_SHOWN = (CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY)
_ALWAYS_KEPT = ("user_annotation", "python_function")
_FLOWS = ("s", "t", "f")
_NAME = "critical_path"
_LAST_TID = 2**31
"""Thread numbers from here on are misread: Perfetto keeps them in 32 bits with a sign."""
_EXACT_NS = 2**53
"""Perfetto reads times as floating-point ns, which are exact up to here (104 days); later ones lose digits."""


def overlay_critical_path_analysis(
    job: HtaJob,
    rank: int,
    graph: CPGraph,
    output_dir: str,
    only_show_critical_events: bool = True,  # noqa: FBT001, FBT002 - HTA's signature
    show_all_edges: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Write a rank's trace with its critical path marked and return the file's name.

    Events on the path get ``args.critical`` 1. Edges are arrows, category ``critical_path``, with ``weight`` (µs),
    ``critical`` and ``type``. So that Perfetto draws all of it, recorded slices that overlap others of their track in
    part, and threads with a negative number, go to a track of their own, recorded arrows without a slice at one end are
    left out, and times since 1970 are written as times since the first event, with that in ``baseTimeNanoseconds``.

    Args:
        job: the job.
        rank: whose graph it is.
        graph: result of `critical_path_analysis`.
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
    if flag(SHOW_ZERO_LAUNCHES):
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
        """How much earlier the written times are than those in the file, ns."""

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
        if phase in _FLOWS:
            return None  # they are written anew, those that can be drawn
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
        """Yield the recorded arrows, those of the graph and the names of added tracks, once all events were edited."""
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
        view = self.graph.parts
        row = int(np.searchsorted(self.recorded.index, view.event[node]))
        if row == len(self.kept) or self.recorded.index[row] != view.event[node] or not self.kept[row]:
            return None
        moment = int(view.time[node])
        if not view.is_start[node] and view.kind[node] >= ActivityKind.COMPUTATION:
            moment -= min(1000, int(self.recorded.duration[row]))  # else the arrow would meet the next slice
        return {**self._where(row), "ts": self._ts(moment)}

    def _track_names(self) -> Iterator[RawEvent]:
        used = np.unique(np.stack((self.recorded.lane, self.recorded.level))[:, self.kept], axis=1).T.tolist()
        for lane, level in used:
            pid, tid = self.recorded.lanes[lane]
            if level or _is_misread(tid):
                name = self.names.get((pid, tid)) or f"thread {tid}"
                track = self.recorded.tid((pid, tid), level)
                args = {"name": f"{name} ({level + 1})" if level else name}
                yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": track, "args": args}
