"""Report: the results of a command as tables, figures and sentences, in the envelope that all commands share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.inputs import inputs_of, issues_of, window_us

__all__ = ["SCHEMA_VERSION", "Report", "Wording", "envelope", "report_on"]

SCHEMA_VERSION = 1
"""Of the JSON that `envelope` describes; raised when a key changes its meaning or goes."""


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


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts of plain Python values."""
    return [{str(key): _finite(value) for key, value in row.items()} for row in table.to_dict("records")]


def _finite(value: Any) -> Any:  # noqa: ANN401 - any value of a table
    """Return a value; NaN and infinity become None, because JSON has neither."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
