"""Tables and envelopes → text for terminals, files and other programs."""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from htagraph.core.errors import printable
from htagraph.core.naming import short_name
from htagraph.output.phrases import distinct, short_number
from htagraph.output.report import Report, Wording
from htagraph.output.summary import SUMMARY_HEADINGS, SUMMARY_TITLES, Summary
from htagraph.output.validation import Validation
from htagraph.output.wording import validate

__all__ = ["FORMATS", "columns_of", "render_report", "render_summary", "render_validation"]

FORMATS = ("table", "json", "csv", "md")

_HEADINGS = {"start_utc": "start (UTC)", "tflop_s": "TFLOP/s", "copied_gb": "copied GB"}
"""Headings of columns that tables of several commands have."""
_DIGITS = {"speedup": 3, "low": 3, "high": 3}
"""Digits behind the point, where one says too little."""
_NAMES = ("name", "kernel", "key")
"""Columns of kernel names."""
_COUNTS = (
    "events",
    "activities",
    "count",
    "segments",
    "hops",
    "launches",
    "works",
    "short",
    "excessive_runtime",
    "excessive_delay",
)
_NO_RANK = -1
"""In a column of ranks: what is about no single rank."""
_FORMULAS = ("=", "+", "-", "@")
"""With what a text begins that spreadsheets compute."""
_NUMBER = re.compile(r"[-+]?[\d.,:e%+-]*")  # a number, a range, or a dash for nothing
_COMMAND = ": htagraph "
_UNIT = re.compile(r"(?<=\d) (?=%|ms|µs|s\b)")
_MIN_US_IN_MS = 10_000.0
"""µs from which a table's times are shown in ms; chosen: five digits are too many. Doubled, 20,000 µs are."""
_MIN_TEXT_WIDTH = 10
"""Letters to which a text may be cut; chosen: fewer tell no names apart. Doubled, tables are wider than 80 columns."""
_MAX_TEXT_WIDTH = 120
"""Letters of a text in Markdown, where nothing limits the width; chosen. Doubled, kernel names are twice as long."""


@dataclass(frozen=True)
class _Column:
    """A column as its reader sees it."""

    heading: str
    cells: list[str]
    is_number: bool

    @property
    def width(self) -> int:
        """The least width in which no cell and no word of the heading is cut."""
        return max(len(text) for text in (*self.heading.split(), *self.cells, ""))


@dataclass(frozen=True)
class _Page:
    """What a terminal shows tables and sentences on."""

    width: int
    """Letters per line."""
    color: bool
    wording: Wording
    heading: str
    """Of the sentences."""


def render_report(report: Report, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return the report of a command as text in one of `FORMATS`."""
    if form == "json":
        return _json(report.to_dict())
    if form == "csv":
        figures = {name: [_joined(value)] for name, value in report.figures.items()}
        sentences = {"conclusions": pd.DataFrame({"sentence": report.sentences})}
        first = {"figures": pd.DataFrame(figures)} if figures else {}
        return _csv({"inputs": report.inputs, **first, **report.tables, "issues": report.issues, **sentences})
    brief = report.tables if report.brief is None else report.brief
    brief = {name: frame for name, frame in brief.items() if len(frame)}
    if form == "md":
        return (_markdown(brief, report.wording) + _markdown_list("Conclusion", report.sentences)).lstrip("\n")
    page = _Page(width, color, report.wording, "Conclusion")
    return _terminal(brief, report.sentences, page)


def render_summary(summary: Summary, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return a summary as text in one of `FORMATS`."""
    if form == "json":
        return _json(summary.to_dict())
    frames = {"inputs": summary.inputs, **summary.tables, "issues": summary.issues}
    if form == "csv":
        return _csv(frames) + _csv({"verdict": pd.DataFrame({"sentence": summary.verdict})})
    wording = Wording(SUMMARY_TITLES, SUMMARY_HEADINGS)
    if form == "md":
        return _markdown(summary.brief(), wording) + _markdown_list("Verdict", summary.verdict)
    return _terminal(summary.brief(), summary.verdict, _Page(width, color, wording, "Verdict"))


def render_validation(validation: Validation, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return a validation report as text in one of `FORMATS`."""
    frames = {"issues": validation.files, "support": validation.support}
    if validation.arguments is not None:
        frames["arguments"] = validation.arguments
    if form == "json":
        rows = {name: frame.to_dict("records") for name, frame in frames.items()}
        return _json(
            {"schema_version": 1, "tool": "htagraph", "command": "validate", "usable": validation.usable, **rows}
        )
    if form == "csv":
        return _csv(frames)
    if form == "md":
        return _markdown(frames, Wording(validate.TITLES))
    page = _Page(width, color, Wording(validate.TITLES), "Conclusion")
    clean = validate.sentences(clean=not len(validation.files))
    return _terminal({name: frame for name, frame in frames.items() if len(frame)}, clean, page)


def _json(envelope: dict[str, Any]) -> str:
    text = json.dumps(envelope, indent=2, ensure_ascii=False, default=lambda value: value.item())
    commands = {ord(letter): json.dumps(letter)[1:-1] for letter in set(text) if not letter.isprintable()}
    return text.translate(commands | {ord("\n"): "\n"}) + "\n"


def _joined(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _csv(frames: dict[str, pd.DataFrame]) -> str:
    """Return tables as CSV; what is no number, such as a ratio to 0, is empty, as it is null in JSON."""
    return "".join(f"# {name}\n{_plain(_finite(frame)).to_csv(index=False)}\n" for name, frame in frames.items())


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no text is a formula to a spreadsheet, or a command to a terminal."""
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    return frame.assign(**{name: frame[name].map(_plain_cell) for name in texts})


def _plain_cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULAS) and not _NUMBER.fullmatch(text) else text


def _finite(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.mask(frame.isin([math.inf, -math.inf]))


def _markdown(frames: dict[str, pd.DataFrame], wording: Wording) -> str:
    return "".join(
        f"\n## {_title(name, wording)}\n\n{_markdown_table(columns_of(frame, wording))}"
        for name, frame in frames.items()
    )


def _title(name: str, wording: Wording) -> str:
    return wording.titles.get(name, name.replace("_", " ").capitalize())


def _markdown_list(heading: str, sentences: list[str]) -> str:
    return f"\n## {heading}\n\n" + "\n".join(f"- {printable(line)}" for line in sentences) + "\n"


def _markdown_table(columns: list[_Column]) -> str:
    rows = zip(*(_cut_all(column.cells, _MAX_TEXT_WIDTH) for column in columns), strict=True)
    marks = ["---:" if column.is_number else "---" for column in columns]
    lines = [[column.heading for column in columns], marks, *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _terminal(frames: dict[str, pd.DataFrame], sentences: list[str], page: _Page) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=page.width, force_terminal=page.color, no_color=not page.color, highlight=False
    )  # fmt: skip
    for name, frame in frames.items():
        columns = columns_of(frame, page.wording)
        console.print(Text(_title(name, page.wording), style="bold"))
        table = Table(box=None, pad_edge=False)
        fits = _fitted(columns, page.width)
        for column, room in zip(columns, fits, strict=True):
            wrapped = "\n".join(textwrap.wrap(column.heading, max(room, 1)))
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            table.add_column(Text(wrapped), justify=justify, no_wrap=True, min_width=room, max_width=room)
        fitted = [_cut_all(column.cells, room) for column, room in zip(columns, fits, strict=True)]
        for row in zip(*fitted, strict=True):
            table.add_row(*map(Text, row))
        console.print(table)
        console.print()
    if sentences:
        console.print(Text(page.heading, style="bold"))
        for sentence in sentences:
            console.print(Text(_filled(sentence, page.width)), soft_wrap=True)
    return out.getvalue()


def _filled(sentence: str, width: int) -> str:
    """Return a sentence in lines, numbers beside their units, and the command that it ends with, whole, on its own."""
    text, command_follows, command = printable(sentence).partition(_COMMAND)
    unbroken = _UNIT.sub("\N{NO-BREAK SPACE}", text + ":" if command_follows else text)
    lines = textwrap.fill(unbroken, width - 1, initial_indent="• ", subsequent_indent="  ", break_on_hyphens=False)
    lines = lines.replace("\N{NO-BREAK SPACE}", " ")
    return f"{lines}\n    {_COMMAND[2:]}{command}" if command_follows else lines


def _fitted(columns: list[_Column], width: int) -> list[int]:
    """Return a width for each column: numbers whole, the widest texts cut until the line fits."""
    widths = [column.width for column in columns]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        texts = [i for i, column in enumerate(columns) if not column.is_number and widths[i] > _MIN_TEXT_WIDTH]
        if not texts:
            break
        widest = max(texts, key=lambda i: widths[i])
        over = sum(widths) + 2 * (len(widths) - 1) - width
        widths[widest] = max(_MIN_TEXT_WIDTH, widths[widest] - over)
    return widths


def _cut_all(texts: list[str], room: int) -> list[str]:
    """Return texts that fit, of which those that differ stay different."""
    return distinct([_cut(text, room) for text in texts], texts, room)


def _cut(text: str, room: int) -> str:
    """Return a text that fits, its middle left out: names differ at both ends."""
    if len(text) <= room:
        return text
    head = (room - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"


def columns_of(frame: pd.DataFrame, wording: Wording) -> list[_Column]:
    """Return the frame's columns as text, with units in the headings and numbers as short as their reader needs."""
    headings = _HEADINGS | dict(wording.headings)
    columns = []
    for name in map(str, frame.columns):
        values = frame[name]
        heading, cells = headings.get(name, name), [_cell(name, value) for value in values]
        if name.endswith("_us"):
            unit, scale = ("ms", 1000) if _in_ms(frame, name) else ("µs", 1)
            heading = f"{heading.removesuffix('_us')} {unit}"
            cells = [_short_or_dash(value / scale) for value in values]
        if name.endswith("bytes"):
            heading, cells = f"{heading.removesuffix('bytes')}MB", [_short_or_dash(value / 1e6) for value in values]
        if name.endswith("gb_s"):
            heading, cells = heading.removesuffix("gb_s") + " GB/s", [_short_or_dash(value) for value in values]
        if name in _NAMES:
            cells = _distinct_names(cells)
        heading = heading.replace("_percent", " %").replace("_", " ").strip()
        is_number = pd.api.types.is_numeric_dtype(values) or name.endswith("(%)")
        columns.append(_Column(heading, [printable(cell) for cell in cells], is_number))
    return columns


def _in_ms(frame: pd.DataFrame, column: str) -> bool:
    """Return whether a column of µs is shown in ms; totals, and all the rest of a table, share one unit."""
    total = column.startswith("total")
    alike = [name for name in map(str, frame.columns) if name.endswith("_us") and name.startswith("total") == total]
    return bool((frame[alike].max() >= _MIN_US_IN_MS).any())


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.{_DIGITS.get(name, 1)}f}" if math.isfinite(value) else "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if name == "file":
        return str(value).rsplit("/", 1)[-1]
    if name == "rank" and value == _NO_RANK:
        return "-"
    return f"{value:,}" if isinstance(value, int) and name in _COUNTS else str(value)


def _distinct_names(names: list[str]) -> list[str]:
    """Return names without template arguments and parameters, whole where that would make several alike."""
    short = {name: short_name(name) for name in dict.fromkeys(names)}
    alike = Counter(short.values())
    return [name if alike[short[name]] > 1 else short[name] for name in names]


def _short_or_dash(value: float) -> str:
    return short_number(value) if np.isfinite(value) else "-"
