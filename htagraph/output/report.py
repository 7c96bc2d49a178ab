"""Report: the results of a command as tables, figures and sentences, in the envelope that all commands share."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.columns import Trace

__all__ = ["SCHEMA_VERSION", "Report", "Wording", "envelope", "inputs_of", "issues_of", "report_on", "window_us"]

SCHEMA_VERSION = 1
"""Of the JSON that `envelope` describes; raised when a key changes its meaning or goes."""
_MIN_UNIX_NS = 10**18
"""Nanoseconds; 2001-09-09 as Unix time. Chosen: clocks without a known base count from a boot and stay below. Doubled,
it is 2033, and the times of traces recorded before are left out."""


@dataclass(frozen=True)
class Wording:
    """How a reader sees the tables of a command: by the names that programs see."""

    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles by the name of the table; a table without one is titled with its name."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """Headings by the name of the column, where that does not say enough; the suffix of a unit stays a suffix."""


@dataclass(frozen=True)
class Report:
    """The results of a command, for readers and for programs."""

    command: str
    inputs: pd.DataFrame
    """What was read, as in `Summary.inputs`."""
    issues: pd.DataFrame
    """What was repaired, dropped or unmatched, as in `Summary.issues`."""
    window_us: float
    """From the first to the last moment of any rank, on the common clock, µs."""
    tables: dict[str, pd.DataFrame]
    """Results by name, whole."""
    sentences: list[str]
    """What they mean, the most important first."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Single results by name; units are in the names."""
    brief: dict[str, pd.DataFrame] | None = None
    """The tables that a reader wants to see, where these are not all."""
    wording: Wording = field(default_factory=Wording)
    """Titles of the tables and headings of their columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return the versioned envelope that ``--format json`` prints."""
        results = {**self.figures, **self.tables, "conclusions": self.sentences}
        return envelope(self.command, self.inputs, self.issues, self.window_us, results)


def report_on(  # noqa: PLR0913 - the fields of Report
    graph: DependencyGraph,
    command: str,
    tables: dict[str, pd.DataFrame],
    sentences: list[str],
    *,
    figures: dict[str, Any] | None = None,
    brief: dict[str, pd.DataFrame] | None = None,
    wording: Wording | None = None,
) -> Report:
    """Return the report of a command on a graph; the arguments are the fields of `Report`."""
    return Report(
        command, inputs_of(graph), issues_of(graph), window_us(graph), tables, sentences, figures or {}, brief,
        wording or Wording(),
    )  # fmt: skip


def envelope(
    command: str, inputs: pd.DataFrame, issues: pd.DataFrame, window: float, results: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what every command prints as JSON; tables become lists of rows.

    Args:
        command: the word of the command line.
        inputs: what was read.
        issues: what was repaired, dropped or unmatched; shown in full as ``warnings``, summed up as ``counts``.
        window: µs.
        results: tables and single values by name.
    """
    counts = issues.groupby("what")["count"].sum()
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": "htagraph",
        "tool_version": version("htagraph"),
        "command": command,
        "inputs": _records(inputs),
        "window_us": window,
        "warnings": _records(issues),
        "counts": {str(what): int(count) for what, count in counts.items()},
        "results": {
            name: _records(value) if isinstance(value, pd.DataFrame) else _finite(value)
            for name, value in results.items()
        },
    }


def issues_of(graph: DependencyGraph) -> pd.DataFrame:
    """Return what was repaired, dropped or unmatched; the columns are those of `Summary.issues`."""
    return pd.DataFrame(
        [(issue.rank, _utf8(issue.file), issue.what, issue.detail, issue.count) for issue in graph.issues],
        columns=["rank", "file", "what", "detail", "count"],
    )


def window_us(graph: DependencyGraph) -> float:
    """Return the time from the first to the last moment of any rank, on the common clock, µs."""
    return (int(graph.time.max()) - graph.origin_ns) / 1000 if graph.vertex_count else 0.0


def inputs_of(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per rank: what was read; its columns are those of `Summary.inputs`."""
    acts = graph.activities
    rows = []
    for rank in graph.ranks:
        of_rank = acts.of_rank(rank)
        trace = graph.traces.get(rank)
        steps = np.unique(acts.step[of_rank])
        start, end = acts.start[of_rank], acts.end[of_rank]
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
    of_rank = acts.of_rank(rank)
    used = {graph.lanes[lane].device for lane in np.unique(acts.lane[of_rank][acts.on_device[of_rank]])}
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
    if not len(start) or start.min() < _MIN_UNIX_NS:
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


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts of plain Python values."""
    return [{str(key): _finite(value) for key, value in row.items()} for row in table.to_dict("records")]


def _finite(value: Any) -> Any:  # noqa: ANN401 - any value of a table
    """Return a value; NaN and infinity become None, because JSON has neither."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
