"""What was read: a row per rank, what was repaired or dropped, and how long the recording is."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd

from htagraph.core.arrays import in_runs
from htagraph.core.tables import Col, Table
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.on_workers import JobOnWorkers
from htagraph.trace.columns import Trace

__all__ = ["INPUTS", "ISSUES", "NO_DEVICE", "devices_in", "inputs_of", "issues_of", "window_us"]

INPUTS = Table(
    "Traces read",
    Col("rank", "int64"),
    Col("file", "str"),
    Col("device", "str", "name of the device", maybe=True),
    Col("world_size", "int64", "ranks of the job, 0 if the file does not say", maybe=True),
    Col("steps", "str", "recorded steps, such as 4-6", maybe=True),
    Col("events", "int64", "number of events in the file", maybe=True),
    Col("activities", "int64", "number of activities in the graph", maybe=True),
    Col("start_utc", "str", maybe=True),
    Col("span_us", doc="time from the rank's first to its last activity", maybe=True),
    Col("job", "str", "before or after, where two jobs are compared", maybe=True),
)
NO_DEVICE = "none (host only)"
"""The device of a rank without device work."""
ISSUES = Table(
    "Problems in the files: repaired, dropped or unmatched",
    Col("rank", "int64"),
    Col("file what detail", "str"),
    Col("count", "int64"),
    Col("job", "str", "before or after, where two jobs are compared", maybe=True),
)


def devices_in(inputs: pd.DataFrame) -> list[str]:
    """Return the kinds of devices in `inputs_of`; a rank without device work is no kind where others have some."""
    return sorted({*map(str, inputs["device"])} - {NO_DEVICE}) or sorted({*map(str, inputs["device"])})


def issues_of(graph: DependencyGraph | JobOnWorkers) -> pd.DataFrame:
    """Return what was repaired, dropped or unmatched; the columns are those of `Summary.issues`."""
    return pd.DataFrame(
        [(issue.rank, _utf8(issue.file), issue.what, issue.detail, issue.count) for issue in graph.issues],
        columns=list(ISSUES.types)[:-1],
    )


def window_us(graph: DependencyGraph) -> float:
    """Return the time from the first to the last moment of any rank, on the common clock, µs."""
    return (int(graph.time.max()) - graph.origin_ns) / 1000 if graph.vertex_count else 0.0


def inputs_of(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per rank: what was read; its columns are those of `INPUTS`."""
    acts = graph.activities
    rows = []
    for rank in graph.ranks:
        of_rank = acts.of_rank(rank)
        trace = graph.traces.get(rank)
        steps = np.unique(acts.step[of_rank])
        start, end = acts.start[of_rank], acts.end[of_rank]
        span = int(end.max() - start.min()) if len(start) else 0
        rows.append((
            rank, _utf8(str(trace.path)) if trace else "", _utf8(_device(graph, rank, trace)),
            trace.facts.world_size if trace else 0, ", ".join(in_runs(steps[steps >= 0], 2)),
            sum(trace.counts.values()) if trace else 0, len(start), _when(start), span / 1000,
        ))  # fmt: skip
    return pd.DataFrame(rows, columns=list(INPUTS.types)[:-1])


def _device(graph: DependencyGraph, rank: int, trace: Trace | None) -> str:
    """Return the name of the rank's device, or what is known of it."""
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    used = {graph.lanes[lane].device for lane in np.unique(acts.lane[of_rank][acts.on_device[of_rank]])}
    if not used:
        return NO_DEVICE
    properties = trace.facts.devices if trace else ()
    names = sorted({device.name for device in properties if device.id in used and device.name})
    kinds = {device.name for device in properties if device.name}
    if not names and len(kinds) == 1:  # AMD's files number devices of the host, and list those that the process sees
        names = [*kinds]
    return ", ".join(names) or "devices without a name"


def _utf8(text: str) -> str:
    """Return a text that can be encoded: paths and names may hold bytes that are no characters."""
    return text.encode("utf-8", "replace").decode()


def _when(start: np.ndarray) -> str:
    """Return the moment of the first activity as UTC, empty for traces whose clock has no known base."""
    if not len(start) or start.min() < 10**18:  # 2001: clocks that count from a boot stay below
        return ""
    moment = datetime.datetime.fromtimestamp(int(start.min()) / 1e9, tz=datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S")
