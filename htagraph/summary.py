"""summarize: the main job. Where did the time go, and what bounds this job?"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.launch_stats import launch_stats
from htagraph.analyses.overlap import overlap
from htagraph.analyses.rank_idle import rank_idle
from htagraph.analyses.step_times import step_times
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.graph import DependencyGraph
from htagraph.trace import Trace
from htagraph.verdict import verdict

__all__ = ["SCHEMA_VERSION", "Summary", "summarize"]

SCHEMA_VERSION = 1
"""Of the JSON that `Summary.to_dict` describes; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Summary:
    """The answers of `htagraph summary` as tables and sentences."""

    inputs: pd.DataFrame
    """One row per rank: ``rank``, ``file``, ``device`` (its name), ``world_size`` (ranks of the job, 0 if the file
    does not say), ``steps`` (such as ``4-6``), ``events`` (in the file), ``activities`` (in the graph), ``start_utc``
    (text), ``span_us`` (from the rank's first to its last activity)."""
    tables: dict[str, pd.DataFrame]
    """Results by name. ``temporal_breakdown``, ``overlap``, ``rank_idle`` and ``idle_breakdown`` are those of the
    analyses. ``steps``: ``rank``, ``steps`` (count), ``period_us`` (mean time from one step's start to the next, NaN
    for one step), ``mean_us``, ``min_us``, ``max_us`` (durations until all work of a step is over; they overlap where
    the host runs ahead). ``kernels``: ``kind``, ``name``, ``ranks`` (with this kernel), ``count``, ``total_us``,
    ``min_us``, ``max_us``, ``mean_us``, ``share_percent`` (of the summed durations of all kernels of all ranks).
    ``launches``: ``rank``, ``launches`` (calls), ``works`` (pieces of device work linked to them),
    ``median_launch_us``, ``median_delay_us``, ``short`` (calls that take longer than all their work),
    ``excessive_runtime`` (calls over 50 µs), ``excessive_delay`` (works that start over 100 µs after their call;
    normal where the host runs ahead)."""
    issues: pd.DataFrame
    """What was repaired, dropped or unmatched: ``rank``, ``file``, ``what``, ``detail``, ``count``."""
    verdict: list[str]
    """Sentences: what bounds the job."""
    window_us: float
    """From the first to the last activity of any rank, each on its own clock, µs."""

    def to_dict(self) -> dict[str, Any]:
        """Return the versioned envelope that ``--format json`` prints; units are in the names.

        Example:
            >>> import htagraph as hg
            >>> hg.summarize(hg.load("data/demo")).to_dict()["schema_version"]
            1
        """
        counts = self.issues.groupby("what")["count"].sum()
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": "htagraph",
            "tool_version": version("htagraph"),
            "command": "summary",
            "inputs": _records(self.inputs),
            "window_us": self.window_us,
            "warnings": _records(self.issues),
            "counts": {str(what): int(count) for what, count in counts.items()},
            "results": {name: _records(table) for name, table in self.tables.items()} | {"verdict": self.verdict},
        }


def summarize(graph: DependencyGraph, *, top: int = 5) -> Summary:
    """Return the main answers about a job at once.

    Args:
        graph: the job.
        top: kernels named per kind, over all ranks.

    Returns:
        What was read, steps, temporal breakdown, overlap, idle time by cause (per rank and per stream), the top kernels
        by kind, launch statistics, what was wrong with the files, and a verdict in words; every column is described
        at `Summary`.

    Example:
        >>> import htagraph as hg
        >>> summary = hg.summarize(hg.load("data/demo"))
        >>> sorted(summary.tables)[:3]
        ['idle_breakdown', 'kernels', 'launches']
    """
    temporal, hidden, idle = temporal_breakdown(graph), overlap(graph), rank_idle(graph)
    launches, inputs = _launches(graph), _inputs(graph)
    tables = {
        "steps": _steps(graph),
        "temporal_breakdown": temporal,
        "overlap": hidden,
        "rank_idle": idle,
        "idle_breakdown": idle_breakdown(graph),
        "kernels": _top(kernel_breakdown(graph), top),
        "launches": launches,
    }
    acts = graph.activities
    window = (int(acts.end.max()) - acts.origin) / 1000 if len(acts) else 0.0
    issues = pd.DataFrame(
        [(issue.rank, _utf8(issue.file), issue.what, issue.detail, issue.count) for issue in graph.issues],
        columns=["rank", "file", "what", "detail", "count"],
    )
    return Summary(inputs, tables, issues, verdict(temporal, hidden, idle, launches, inputs), window)


def _inputs(graph: DependencyGraph) -> pd.DataFrame:
    acts = graph.activities
    rows = []
    for rank in graph.ranks:
        mine = acts.of_rank(rank)
        trace = graph.traces.get(rank)
        steps = np.unique(acts.step[mine])
        start, end = acts.start[mine], acts.end[mine]
        span = int(end.max() - start.min()) if len(start) else 0
        rows.append((
            rank, _utf8(str(trace.path)) if trace else "", _utf8(_device(graph, rank, trace)), _world_size(trace),
            _ranges(steps[steps >= 0].tolist()),
            sum(trace.counts.values()) if trace else 0, len(start), _when(start), span / 1000,
        ))  # fmt: skip
    columns = ["rank", "file", "device", "world_size", "steps", "events", "activities", "start_utc", "span_us"]
    return pd.DataFrame(rows, columns=columns)


def _device(graph: DependencyGraph, rank: int, trace: Trace | None) -> str:
    """Return the name of the rank's device, or what is known of it."""
    acts = graph.activities
    mine = acts.of_rank(rank)
    used = {graph.lanes[lane].device for lane in np.unique(acts.lane[mine][acts.on_device[mine]])}
    if not used:
        return "none (host only)"
    properties = trace.header.device_properties if trace else []
    names = sorted({each.name for each in properties if each.id in used and each.name})
    return ", ".join(names) or f"device {', '.join(map(str, sorted(used)))}"


def _utf8(text: str) -> str:
    """Return a text that can be encoded: paths and names may hold bytes that are no characters."""
    return text.encode("utf-8", "replace").decode()


def _world_size(trace: Trace | None) -> int:
    info = trace.header.distributed_info if trace else None
    return info.world_size or 0 if info else 0


def _when(start: np.ndarray) -> str:
    """Return the moment of the first activity as UTC, empty for traces whose clock has no known base."""
    if not len(start) or start.min() < 10**18:
        return ""
    moment = datetime.datetime.fromtimestamp(int(start.min()) / 1e9, tz=datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _ranges(numbers: list[int]) -> str:
    """Return ``4-6, 9`` for [4, 5, 6, 9]."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _steps(graph: DependencyGraph) -> pd.DataFrame:
    """Return per rank how many steps there are, how far apart they begin and how long they take."""
    steps = step_times(graph).groupby("rank")
    table = steps["duration_us"].agg(["count", "mean", "min", "max"])
    table = table.set_axis(["steps", "mean_us", "min_us", "max_us"], axis=1)
    period = steps["start_us"].agg(lambda start: (start.max() - start.min()) / (len(start) - 1 or float("nan")))
    table.insert(1, "period_us", period.astype("float64"))
    return table.reset_index()


def _top(kernels: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the largest kernels of each kind over all ranks."""
    sums = kernels.groupby(["kind", "name"], sort=False).agg(
        ranks=("rank", "nunique"), count=("count", "sum"), total_us=("total_us", "sum"),
        min_us=("min_us", "min"), max_us=("max_us", "max"),
    )  # fmt: skip
    sums = sums.reset_index().sort_values(["total_us", "name"], ascending=[False, True])
    sums["mean_us"] = sums["total_us"] / sums["count"]
    sums["share_percent"] = 100 * sums["total_us"] / sums["total_us"].sum()
    best = sums.groupby("kind", sort=False).head(top)
    order = best.groupby("kind")["total_us"].transform("sum")
    return (
        best.assign(order=order)
        .sort_values(["order", "kind", "total_us"], ascending=[False, True, False])
        .drop(columns="order")
        .reset_index(drop=True)
    )


def _launches(graph: DependencyGraph) -> pd.DataFrame:
    stats = launch_stats(graph)
    calls = stats.drop_duplicates("launch").groupby("rank").agg(
        launches=("launch", "size"), median_launch_us=("launch_us", "median"), short=("short", "sum"),
        excessive_runtime=("excessive_runtime", "sum"),
    )  # fmt: skip
    works = stats.groupby("rank").agg(
        works=("work", "size"), median_delay_us=("delay_us", "median"), excessive_delay=("excessive_delay", "sum")
    )
    return calls.join(works).reset_index()[_LAUNCH_COLUMNS]


_LAUNCH_COLUMNS = [
    "rank", "launches", "works", "median_launch_us", "median_delay_us", "short", "excessive_runtime", "excessive_delay",
]  # fmt: skip


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts of plain Python values; NaN becomes None, because JSON has no NaN."""
    return [
        {str(key): None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]
