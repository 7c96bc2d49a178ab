"""Report: the results of a command as tables, figures and sentences, in the envelope that all commands share.

Readers see tables with units in their headings, short numbers and names, no wider than what shows them: texts are
shortened in the middle, then columns are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from htagraph.core.errors import printable
from htagraph.core.naming import short_name, sibling_names
from htagraph.core.tables import SCHEMA_VERSION, Col, Table
from htagraph.findings.damaged import cut_note
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import distinct, short_number, shortened
from htagraph.findings.start_up import start_up_note
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.queries.inputs import ISSUES, inputs_of, issues_of, window_us
from htagraph.queries.on_workers import TOTAL_BOUND, UPPER_BOUND

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "CONTENTS", "SCHEMA_VERSION", "Column", "Contents", "Fitted", "Report", "Wording", "abridged", "columns_of",
    "cut_all", "drawn", "envelope", "fitted", "gives", "report_beside", "report_on", "title_of", "top_rows",
    "with_shares", "wording_of",
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

    declared: Mapping[str, Table | str] = field(default_factory=dict)
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
    rests_on: frozenset[Part] = frozenset()
    """The parts that a recording must hold for a conclusion: the command makes none where one is missing."""
    concludes: Sequence[str] = ()
    """Its tables and figures that conclude or predict, as its sentences do; all other tables hold recorded facts."""

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
    details: frozenset[str] = frozenset()
    """Sentences that readers are not shown; programs see all."""
    second: str = ""
    """The heading of the second sentence, which then stands above the tables; empty where it stands below."""
    more: str = ""
    """What shows readers the tables that are not in `brief`; no result, so that programs do not see it."""
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
    *,
    rests_on: frozenset[Part] = frozenset(),
    **others: Any,  # noqa: ANN401 - fields of `Report`
) -> Report:
    """Return the report of a command on a graph; the arguments are the fields of `Report`.

    `rests_on` has the parts that this answer of the command needs, beside the parts that every answer needs.
    """
    contents = CONTENTS.get(command, Contents())
    needed = contents.rests_on | rests_on
    missing = missing_parts(graph) if needed else []
    is_on_job = bool(contents.concludes) or Part.CALLS in needed
    told = [gap for gap in missing if is_on_job or gap.lost != Part.PEERS]  # times of one rank need no other rank
    notes = [f"{gap.sentence} {gap.advice}" for gap in told]
    if any(gap.lost in needed for gap in missing):
        tables, others = _withheld(contents, tables, others)
        said = notes
    else:
        if not contents.concludes:  # what predicts depends on the notes; all else says them at their place
            notes = [note for note in notes if note not in sentences]
        answer = [sentence for sentence in sentences[:1] if sentence not in notes]
        others_said = [sentence for sentence in sentences[1:] if sentence not in notes]
        begin = [*notes, *answer] if contents.concludes else [*answer, *notes]
        has_times = any(len(table) for table in tables.values())
        said = [*begin, *others_said, *start_up_note(graph, command, has_times=has_times)]
    said += cut_note(graph) if Part.DEVICE in needed else []
    return Report(command, inputs_of(graph), issues_of(graph), window_us(graph), tables, said, **others)


def _withheld(
    contents: Contents, tables: dict[str, pd.DataFrame], fields: dict[str, Any]
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Return the tables, and the fields of `Report`, without the conclusions of a command."""
    concludes = contents.concludes
    recorded = {name: table.head(0) if name in concludes else table for name, table in tables.items()}
    shown = {name: table for name, table in (fields.get("brief") or recorded).items() if name not in concludes}
    figures = {name: math.nan if name in concludes else value for name, value in fields.get("figures", {}).items()}
    plot = None if concludes else fields.get("plot")
    return recorded, fields | {"brief": shown, "figures": figures, "plot": plot}


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


_HEADINGS = {
    "start_utc": "start (UTC)", "used_utc": "used (UTC)", "tflop_s": "TFLOP/s", "copied_gb": "copied GB",
    "peak_us": "at_us",
}  # fmt: skip
"""Headings of columns that tables of several commands have."""
_DIGITS = {"speedup": 3, "low": 3, "high": 3}
"""Digits behind the point, where one says too little."""
_NAMES = ("name", "kernel", "key")
"""Columns of kernel names."""
_TIMES = ("total_us", "mean_us", "min_us", "max_us", "device_us")
_GAINS = ("time_us", "critical_us", "gain_us", "gain_if_halved_us", "gain_per_step_us")
_BOUNDS = {
    **dict.fromkeys((*_TIMES, *_GAINS), UPPER_BOUND.names),
    "device_total_us": TOTAL_BOUND.names,
}
"""Columns of times → the column that says whether a row has durations that were cut: the time is an upper bound."""
_HIDDEN = frozenset(_BOUNDS.values())
"""Columns that signs stand for."""
_MANGLED = re.compile(r"\b_Z\w+")
"""A name as the linker writes it, inside a text."""
_COUNTS = (
    "events", "activities", "count", "segments", "hops", "launches", "works", "short", "excessive_runtime",
    "excessive_delay",
)  # fmt: skip
_NOBODY = {"rank": "-", "charged_rank": "nobody", "last_rank": "not known"}
"""What a column of ranks shows for -1, which is no single rank."""
_MIN_US_IN_MS = 10_000.0
"""µs from which a table's times are shown in ms; chosen: five digits are too many. Doubled, 20,000 µs are."""

_BETWEEN = 2
"""Blanks between columns."""
_MIN_TEXT_WIDTH, _MIN_NAME_WIDTH, _MIN_SENTENCE_WIDTH = 13, 26, 20
"""Letters to which a text, a name (before any number is left out for it) and the lines of a sentence may be cut.
Chosen: kinds of kernels, such as communication, are whole; so are the ends of kernel names that differ, such as
ampere_bf16_…tages_64x3_nn; and three words. Doubled, a table at 80 columns is names and little else."""
_MAX_WHOLE_WIDTH = 72
"""Letters of a name with template arguments, of those that differ in nothing else. Chosen: more is hard to tell apart
than what differs. Doubled, numbers are far from their names on wide terminals."""
_SUBJECTS = (
    "name", "kernel", "path", "main", "kernel_sequence", "operator", "why", "detail", "for_example", "phase", "change",
    "key", "what", "example", "shapes", "file",
)  # fmt: skip
"""Columns of names and sentences, of which a table's longest is to be read."""
_SENTENCES = ("why", "detail", "setting")
"""Columns whose texts go on in the next line where they do not fit."""
_NOTHING = frozenset({"", "-", "0", "0.0"})
"""Cells that say nothing: a number column of these is left out before all others."""
_LEAST = (
    "matched", "std", "p25", "p75", "std_gb_s", "p25_gb_s", "p75_gb_s", "min_gb_s", "world_size", "residual_us",
    "gauge", "ranks", "min_us", "events", "device", "busbw_gb_s", "host_self_us", "late_count", "spread", "max_us",
    "mean_us", "excess_us", "executor", "critical_us", "start_utc", "before_count", "after_count",
    "before_per_step_count", "after_per_step_count", "kernel_delay_us", "launch_delay_us", "host_us", "activities",
    "last_rank", "segments", "blocks", "requested_bytes",
)  # fmt: skip
"""Columns by their names that are left out first where a table does not fit; then numbers, the last but one first."""
_SIGNS = {"computation": "≤ ", "idle": "≥ "}
"""Signs of the parts of a rank's time where durations of kernels were cut: devices were busy for at most so long."""
_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")
_MAX_ROWS, _FEW_ROWS = 16, 4
"""Rows up to which a table of many ranks is shown whole, and rows of one that are shown with the medians. Chosen: a
third of a screen, and enough to see whether one rank or a node of them differs. Doubled, a screen."""


@dataclass(frozen=True)
class Column:
    """A column as its reader sees it."""

    name: str
    """What programs call it."""
    heading: str
    cells: list[str]
    is_number: bool
    short: list[str] = field(default_factory=list)
    """The cells where they do not fit: names without template arguments and parameters; empty where cells are cut."""
    ranks: bool = False
    """Whether rows are ranked by it."""

    @property
    def width(self) -> int:
        """The least width in which no cell and no word of the heading is cut."""
        return max(len(text) for text in (*self.heading.split(), *self.cells, ""))


def columns_of(frame: pd.DataFrame, wording: Wording) -> list[Column]:
    """Return a table's columns as text, with units in the headings and numbers as short as their reader needs."""
    headings = _HEADINGS | dict(wording.headings)
    columns = [_column(frame, name, headings) for name in map(str, frame.columns) if name not in _HIDDEN]
    return [replace(each, ranks=each.name in wording.ranked) for each in columns]


def _column(frame: pd.DataFrame, name: str, headings: dict[str, str]) -> Column:
    values, heading = frame[name], headings.get(name, name)
    cells, short = [_cell(name, value) for value in values], list[str]()
    if name.endswith("_us"):
        # totals, and all the rest of a table, share one unit
        total = name.startswith("total")
        alike = [each for each in map(str, frame.columns) if each.endswith("_us") and each.startswith("total") == total]
        unit, scale = ("ms", 1000) if (frame[alike].max() >= _MIN_US_IN_MS).any() else ("µs", 1)
        heading = f"{heading.removesuffix('_us')} {unit}"
        cells = [_short_or_dash(value / scale) for value in values]
        cells = _bounded(cells, frame, name)
    if name.endswith("bytes"):
        heading, cells = f"{heading.removesuffix('bytes')}MB", [_short_or_dash(value / 1e6) for value in values]
    if name.endswith("gb_s"):
        heading, cells = heading.removesuffix("gb_s") + " GB/s", [_short_or_dash(value) for value in values]
    if name.endswith("_gb"):
        in_mb = bool(len(values)) and float(values.max()) < 1
        heading = heading.replace("GB", "MB") if in_mb else heading
        cells = [_short_or_dash(1000 * value if in_mb else value) for value in values]
    if name in _NAMES:
        cells = short = sibling_names(cells)
    else:
        cells = [_MANGLED.sub(lambda match: short_name(match[0]), cell) for cell in cells]
    heading = " ".join(heading.replace("_percent", " %").replace("_", " ").split())
    is_number = pd.api.types.is_numeric_dtype(values) or name.endswith("(%)") or name == "rank"
    return Column(name, heading, [printable(cell) for cell in cells], is_number, [printable(each) for each in short])


def _bounded(cells: list[str], frame: pd.DataFrame, name: str) -> list[str]:
    """Return the cells of a column of times, each with a sign where the time is an upper bound.

    A duration that was cut at the next start is at most as long as recorded; so are the sum, the mean and the ends of a
    row with a cut duration.
    """
    bound = _BOUNDS.get(name, "")
    if bound not in frame:
        return cells
    is_bound = frame[bound] > 0
    return [f"≤ {cell}" if bounded else cell for cell, bounded in zip(cells, is_bound, strict=True)]


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.{_DIGITS.get(name, 1)}f}" if math.isfinite(value) else "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if name == "file":
        return str(value).rsplit("/", 1)[-1]
    if name == "world_size" and value == 0:
        return "unknown"
    if name in _NOBODY and value == -1:
        return _NOBODY[name]
    return f"{value:,}" if isinstance(value, int) and name in _COUNTS else str(value)


def _short_or_dash(value: float) -> str:
    return short_number(value) if np.isfinite(value) else "-"


class Fitted(NamedTuple):
    """A table that fits."""

    columns: list[Column]
    """Those that are shown."""
    widths: list[int]
    """Of each, in letters."""
    cells: list[list[str]]
    """Of each, so that they fit; sentences whole."""
    left_out: list[str]
    """Headings of the columns for which there is no room."""


def fitted(columns: Sequence[Column], width: int) -> Fitted:
    """Return the columns that fit, with texts shortened in the middle and unlike where what they stand for is.

    Numbers are whole. Where they leave the longest name too little room, the least important columns are left out; a
    column of empty texts always is, and the column that rows are ranked by is not while it says anything.

    Example:
        >>> names = ["gemm_of_a_very_long_name_with_32x32_tiles", "gemm_of_a_very_long_name_with_64x64_tiles"]
        >>> shown = fitted([Column("rank", "rank", ["0", "1"], True), Column("name", "name", names, False)], 30)
        >>> shown.cells[1]
        ['gemm_of_a_v…_32x32_tiles', 'gemm_of_a_v…_64x64_tiles']
    """
    shown = [each for each in columns if each.is_number or any(each.cells)]
    left_out = list[str]()
    while _span(_least(shown)) > width:
        drop = _least_important(shown)
        if drop is None:
            break
        left_out.append(shown.pop(drop).heading)
    widths = _widths(shown, width)
    cells = [_cells(column, room) for column, room in zip(shown, widths, strict=True)]
    return Fitted(shown, widths, cells, [each.heading for each in columns if each.heading in left_out])


def cut_all(texts: Sequence[str], room: int) -> list[str]:
    """Return texts that fit, of which those that differ stay different."""
    return distinct([shortened(text, room) for text in texts], texts, room)


def _cells(column: Column, room: int) -> list[str]:
    """Return the cells of a column that fit; of names that do not, what differs without what is in angle brackets."""
    if column.name in _SENTENCES:
        return column.cells
    if not column.short or column.width <= room:
        return cut_all(column.cells, room)
    kept = [cell if len(cell) <= room else shortened(short, room)
            for cell, short in zip(column.cells, column.short, strict=True)]  # fmt: skip
    return distinct(kept, column.cells, room)


def _span(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _least(columns: Sequence[Column]) -> list[int]:
    """Return the least width of each: numbers whole, the longest name with room for both of its ends, others less."""
    # the longest name says what a row is about
    texts = [i for i, column in enumerate(columns) if column.name in _SUBJECTS and not column.is_number]
    subject = max(texts, key=lambda i: columns[i].width, default=None)
    least = [each.width if each.is_number else min(each.width, _MIN_TEXT_WIDTH) for each in columns]
    for i, column in enumerate(columns):
        if column.name in _SENTENCES:
            words = max((len(word) for cell in column.cells for word in cell.split()), default=0)
            least[i] = min(column.width, max(least[i], _MIN_SENTENCE_WIDTH if i == subject else words))
        elif i == subject:
            least[i] = min(column.width, _MIN_NAME_WIDTH)
    return least


def _least_important(columns: Sequence[Column]) -> int | None:
    """Return the place of the column to leave out next; None where only what must stay is left."""
    for i, column in enumerate(columns):
        if i > 0 and column.is_number and _NOTHING.issuperset(column.cells):
            return i
    may_go = [(i, column) for i, column in enumerate(columns) if i > 0 and not column.ranks]
    for name in _LEAST:
        for i, column in may_go:
            if column.name == name and not _names_devices(columns, column):
                return i
    last = max((i for i, column in enumerate(columns) if column.is_number), default=0)
    return max((i for i, column in may_go if column.is_number and i != last), default=None)


def _names_devices(columns: Sequence[Column], column: Column) -> bool:
    """Return whether a column tells the devices of a rank apart, without which its rows look alike."""
    ranks = next((each.cells for each in columns if each.name == "rank"), [])
    return column.name == "device" and len(set(zip(ranks, column.cells, strict=False))) > len(set(ranks))


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Return a width for each column: numbers whole, the widest texts cut until the line fits."""
    # a column that is wider tells nothing more
    most = [max(_MAX_WHOLE_WIDTH, *map(len, column.short)) if column.short else column.width for column in columns]
    widths = [min(column.width, room) for column, room in zip(columns, most, strict=True)]
    least = _least(columns)
    if _span(least) > width:
        least = [each.width if each.is_number else 1 for each in columns]
    while (over := _span(widths) - width) > 0:
        texts = [i for i, column in enumerate(columns) if widths[i] > least[i]]
        if not texts:
            break
        texts = [i for i in texts if columns[i].name in _SENTENCES] or texts  # they go on in the next line
        widest = max(texts, key=lambda i: widths[i])
        second = max((widths[i] for i in texts if i != widest), default=0)
        widths[widest] = max(least[widest], widths[widest] - over, min(second, widths[widest] - 1))
    return widths


def top_rows(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the first rows of a table, whose title then says how many the table has; of many ranks, see `abridged`."""
    top = table.copy() if _is_of_many_ranks(table) else table.head(count)
    top.attrs = {"rows": len(table), "few": count, "all": f"--top {len(table)}"}
    return top


def _is_of_many_ranks(table: pd.DataFrame) -> bool:
    return "rank" in table and "start_us" not in table and table["rank"].nunique() > MAX_LISTED


def abridged(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of many ranks with few rows: the median of the ranks, and the rows furthest from it.

    Each kind of row of a rank (by texts and stream) has its median. Rows with a start are events, and have none.

    Example:
        >>> table = abridged(pd.DataFrame({"rank": range(20), "idle_us": [1.0] * 19 + [9.0]}))
        >>> table["rank"].tolist(), title_of("idle", Wording(), table)
        (['median', 0, 1, 2, 19], 'Idle (median and 4 of 20 rows; all: --format json)')
    """
    few = table.attrs.get("few", _FEW_ROWS)
    if not _is_of_many_ranks(table) or len(table) <= max(few, _MAX_ROWS):
        return table
    table = table.reset_index(drop=True)
    numbers = [name for name in map(str, table.select_dtypes("number")) if name not in ("rank", "device", "stream")]
    kinds = [name for name in table if name not in ("rank", "device", *numbers)]
    times = [name for name in numbers if name.endswith("_us")] or numbers
    groups = table.groupby([0] * len(table) if table["rank"].is_unique else kinds, sort=False, dropna=False)
    known = groups[numbers].count().mul(2).ge(groups.size(), axis=0)  # else the median is of few ranks
    medians = groups[numbers].median().where(known).reset_index()
    medians = medians.loc[medians[times].sum(axis=1).nlargest(max(few, _MAX_ROWS // 2)).index].assign(rank="median")
    whole = {name: table[name].dtype for name in numbers if pd.api.types.is_integer_dtype(table[name])}
    medians = medians.fillna(dict.fromkeys(whole, 0)).round(dict.fromkeys(whole, 0)).astype(whole)
    for name in table.columns.difference(medians.columns):  # what all ranks have is the median's, too
        medians[name] = table[name].iloc[0] if table[name].nunique() == 1 else ""
    far = (table[times] - groups[times].transform("median")).abs().sum(axis=1)
    shown = pd.concat([medians, table.loc[far.nlargest(few).index.sort_values()]])[[*table]]
    shown.attrs = {"rows": len(table), "medians": len(medians)}
    return shown


def title_of(name: str, wording: Wording, table: pd.DataFrame) -> str:
    """Return the title of a table, with the number of its rows where only some are shown."""
    title, medians = wording.titles.get(name, name.replace("_", " ").capitalize()), table.attrs.get("medians", 0)
    rows, shown = table.attrs.get("rows", 0), len(table) - medians
    whose = f"median{'s' * (medians > 1)} and " if medians else ""
    option = "--format json" if medians else table.attrs.get("all", "--format json")
    return f"{title} ({whose}{shown} of {rows:,} rows; all: {option})" if rows > shown else title


def with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the temporal breakdown with each part and its share in one column, without parts that never occur."""
    table = abridged(table)
    unit, scale = ("ms", 1000) if table["window_us"].max() >= _MIN_US_IN_MS else ("µs", 1)
    joined = table[["rank", "executor", "window_us"]].copy()  # with the attributes of the table
    for part in _PARTS:
        if part == "other" and not table["other_us"].any():
            continue
        pairs = zip(table[f"{part}_us"], table[f"{part}_percent"], strict=True)
        cells = [
            f"{short_number(us / scale)} ({share:.0f} %)" if math.isfinite(share) else short_number(us / scale)
            for us, share in pairs
        ]
        sign = _SIGNS.get(part, "")
        if sign and UPPER_BOUND.names in table:
            cells = [sign * (us > 0) + cell for us, cell in zip(table[UPPER_BOUND.names], cells, strict=True)]
        joined[f"{part} {unit} (%)"] = cells
    return joined
