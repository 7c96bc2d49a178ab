"""The questions about critical paths for `hta_methods.py`, and what it shares with it."""

from __future__ import annotations

import gzip
import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Analysis: TypeAlias = Any
"""A `TraceAnalysis`, HTA's or ours."""
Frame: TypeAlias = Any


@dataclass(frozen=True)
class Subject:
    """One loaded job: what the methods are called on."""

    analysis: Analysis
    ranks: list[int]
    folder: Path
    """Where the links to the traces are, and where methods may write."""


Method: TypeAlias = Callable[[Subject], Any]


def events_of(path: Path) -> list[dict[str, Any]]:
    """Return a trace's events; HTA gzips what it calls `.json` (D16)."""
    data = path.read_bytes()
    root = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return list(root["traceEvents"] if isinstance(root, dict) else root)


def cpu_seconds() -> float:
    """Return the processor time of this process and of those that it started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def critical_path(annotation: str, instance: int | tuple[int, int] | None) -> Method:
    """Return the question for one window's critical path: what is in `path_facts`."""

    def method(subject: Subject) -> dict[str, Any] | None:
        rank = subject.ranks[0]
        start, busy = time.perf_counter(), cpu_seconds()
        answer = subject.analysis.critical_path_analysis(rank, annotation, instance)
        if answer is None:
            return None
        times = {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - busy}
        graph, success = answer
        return {"times": times, "success": success, **path_facts(subject, graph)}

    return method


def path_facts(subject: Subject, graph: Analysis) -> dict[str, Any]:
    """Return nodes, edges, the path, its breakdown and summary, and the flow events of the overlay."""
    import pandas as pd

    nodes = pd.DataFrame(
        [(n.idx, n.ev_idx, n.ts, n.is_start, n.is_blocking) for n in graph.node_list],
        columns=["idx", "ev_idx", "ts", "is_start", "is_blocking"],
    )
    columns = ["begin", "end", "type", "weight", "event"]
    edges = [graph.edges[u, v]["object"] for u, v in graph.edges]
    rows = [(e.begin, e.end, e.type.name, e.weight, graph.get_event_attribution_for_edge(e)) for e in edges]
    rows.sort(key=lambda row: row[:3])
    chosen = sorted((e.begin, e.end, e.type.name, e.weight) for e in graph.critical_path_edges_set)
    breakdown = graph.get_critical_path_breakdown()
    return {
        "nodes": nodes,
        "edges": pd.DataFrame(rows, columns=columns),
        "critical_nodes": list(graph.critical_path_nodes),
        "critical_events": sorted(graph.critical_path_events_set),
        "critical_edges": pd.DataFrame(chosen, columns=columns[:-1]),
        "critical_weight": float(sum(edge[-1] for edge in chosen)),
        "breakdown": ordered(breakdown),
        "summary": graph.summary(),
        "overlay": overlay(subject, graph),
    }


def ordered(breakdown: Frame) -> Frame:
    """Return a breakdown, which HTA makes from a set, in an order; None stays None."""
    by = ["event_idx", "type", "duration"]
    return None if breakdown is None else breakdown.sort_values(by, kind="stable").reset_index(drop=True)


def overlay(subject: Subject, graph: Analysis) -> dict[str, Any]:
    """Return what the three ways of overlaying a path mark: number of critical events, flow events."""
    found: dict[str, Any] = {}
    for flags in ((True, False), (False, False), (False, True)):
        output = Path(tempfile.mkdtemp(dir=subject.folder))
        path = subject.analysis.overlay_critical_path_analysis(subject.ranks[0], graph, str(output), *flags)
        events = events_of(Path(path))
        flows = [event for event in events if event.get("cat") == "critical_path"]
        found[str(flags)] = {
            "file": Path(path).name,
            "events": len(events) - len(flows),
            "critical": sum(
                bool((event.get("args") or {}).get("critical"))
                for event in events
                if event.get("cat") != "critical_path"
            ),
            "flows": sorted(
                (e["ts"], e["ph"], str(e["pid"]), str(e["tid"]), e["args"]["type"], e["args"]["weight"]) for e in flows
            ),
        }
    return found
