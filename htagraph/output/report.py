"""Report: the results of a command as tables, figures and sentences, in the envelope that all commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from htagraph.core.tables import SCHEMA_VERSION, Col, Table
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.inputs import ISSUES, inputs_of, issues_of, window_us

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "CONTENTS", "SCHEMA_VERSION", "Contents", "Report", "Wording", "drawn", "envelope", "gives", "report_beside",
    "report_on", "wording_of",
]  # fmt: skip


@dataclass(frozen=True)
class Wording:
    """How a reader sees the tables of a command: by the names that programs see."""

    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles by the name of the table; a table without one is titled with its name."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """Headings by the name of the column, where that does not say enough; the suffix of a unit stays a suffix."""
    ranked: frozenset[str] = frozenset()
    """Columns that tables are ranked by, for which there is always room."""


@dataclass(frozen=True)
class Contents:
    """What a command gives."""

    declared: Mapping[str, Table | str]
    """Its tables by name, each as it is declared, or where: ``analyses.overlap.TABLE``."""
    maybe: Sequence[str] = ()
    """Tables that are not always there."""
    figures: tuple[Col, ...] = ()
    """Its single results."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles by name, of tables that readers alone see, or that have another title here."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """Headings by column, of columns that have another one here."""
    sentences: str = "conclusions"
    """The key of its sentences."""

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Its tables by name."""
        return {
            name: each if isinstance(each, Table) else resolve_name(":".join(f"htagraph.{each}".rsplit(".", 1)))
            for name, each in self.declared.items()
        }


CONTENTS: dict[str, Contents] = {}
"""What each command gives, of those whose reports were imported."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def gives(
    command: str,
    tables: Mapping[str, Table | str] | None = None,
    **others: Any,  # noqa: ANN401 - fields of `Contents`
) -> Callable[[_Function], _Function]:
    """Return a decorator that declares what the report of a command gives; the arguments are those of `Contents`."""
    CONTENTS[command] = Contents(tables or {}, **others)
    return lambda function: function


def wording_of(command: str) -> Wording:
    """Return titles and headings of a command's tables as they are declared; none of a command that declares none."""
    contents = CONTENTS.get(command, Contents({}))
    titles = {name: table.title for name, table in contents.tables.items()}
    headings = {name: text for table in contents.tables.values() for name, text in table.headings.items()}
    ranked = frozenset(name for table in contents.tables.values() for name in table.rank_by.split())
    return Wording({**titles, **contents.titles}, {**headings, **contents.headings}, ranked)


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
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles that are not those which the command declares, by the name of the table."""
    plot: Callable[[], Figure] | None = None
    """Draws the figure of the results; None where there is no figure."""

    @property
    def wording(self) -> Wording:
        """Titles of the tables and headings of their columns."""
        declared = wording_of(self.command)
        return replace(declared, titles={**declared.titles, **self.titles})

    def to_dict(self) -> dict[str, Any]:
        """Return the versioned envelope that ``--format json`` prints."""
        results = {**self.figures, **self.tables, "conclusions": self.sentences}
        return envelope(self.command, self.inputs, self.issues, self.window_us, results)


def report_on(
    graph: DependencyGraph,
    command: str,
    tables: dict[str, pd.DataFrame],
    sentences: list[str],
    **others: Any,  # noqa: ANN401 - fields of `Report`
) -> Report:
    """Return the report of a command on a graph; the arguments are the fields of `Report`."""
    return Report(command, inputs_of(graph), issues_of(graph), window_us(graph), tables, sentences, **others)


def report_beside(
    command: str,
    inputs: pd.DataFrame,
    tables: dict[str, pd.DataFrame],
    sentences: list[str],
    **others: Any,  # noqa: ANN401 - fields of `Report`
) -> Report:
    """Return the report of a command that made no graph of what it read."""
    window = others.pop("window_us", 0.0)
    return Report(command, inputs, ISSUES.frame(), window, tables, sentences, **others)


def drawn(name: str, result: Any) -> Figure:  # noqa: ANN401 - of any analysis
    """Return the figure of `htagraph.plot` of this name. The figures are imported when the first one is drawn."""
    from htagraph.output import plot

    figure: Figure = getattr(plot, name)(result)
    return figure


def envelope(
    command: str, inputs: pd.DataFrame, issues: pd.DataFrame, window: float, results: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what every command prints as JSON; tables become lists of rows, and issues are summed up as ``counts``."""
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
