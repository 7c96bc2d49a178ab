"""Tables and envelopes → text for terminals, files and other programs."""

from __future__ import annotations

import io
import json
import textwrap
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from htagraph.naming import short_name
from htagraph.summary import Summary
from htagraph.validation import Validation

__all__ = ["FORMATS", "render_summary", "render_validation"]

FORMATS = ("table", "json", "csv", "md")

_TITLES = {
    "inputs": "What was read",
    "steps": "Steps (until all work launched in them is over)",
    "temporal_breakdown": "Time by rank",
    "overlap": "Communication hidden behind computation",
    "rank_idle": "Why ranks are idle",
    "kernels": "Top kernels by kind, all ranks",
    "launches": "Launches",
    "issues": "Repaired, dropped or unmatched",
    "support": "What these traces can answer",
}
_WORDS = {
    "works": "linked works",
    "short": "calls longer than their work",
    "excessive_runtime": "calls > 50 µs",
    "excessive_delay": "delays > 100 µs",
    "period_us": "start to start_us",
    "start_utc": "start (UTC)",
    "share_percent": "of all work %",
}
_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")
_COUNTS = ("events", "activities", "count", "launches", "works", "short", "excessive_runtime", "excessive_delay")
_MS_FROM_US = 10_000.0
_LEAST_TEXT = 10
_NAME_WIDTH = 120  # where nothing limits the width


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


def render_summary(summary: Summary, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return a summary as text in one of `FORMATS`."""
    if form == "json":
        return _json(summary.to_dict())
    frames = {"inputs": summary.inputs, **summary.tables, "issues": summary.issues}
    if form == "csv":
        return _csv(frames) + _csv({"verdict": pd.DataFrame({"sentence": summary.verdict})})
    brief = _for_reading(frames)
    if form == "md":
        return _markdown(brief) + "\n## Verdict\n\n" + "\n".join(f"- {line}" for line in summary.verdict) + "\n"
    return _terminal(brief, summary.verdict, width=width, color=color)


def render_validation(validation: Validation, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return a validation report as text in one of `FORMATS`."""
    frames = {"issues": validation.files, "support": validation.support}
    if form == "json":
        rows = {name: frame.to_dict("records") for name, frame in frames.items()}
        return _json(
            {"schema_version": 1, "tool": "htagraph", "command": "validate", "usable": validation.usable, **rows}
        )
    if form == "csv":
        return _csv(frames)
    if form == "md":
        return _markdown(frames)
    clean = [] if len(validation.files) else ["Nothing had to be repaired or dropped."]
    return _terminal({name: frame for name, frame in frames.items() if len(frame)}, clean, width=width, color=color)


def _json(envelope: dict[str, Any]) -> str:
    return json.dumps(envelope, indent=2, ensure_ascii=False, default=lambda value: value.item()) + "\n"


def _csv(frames: dict[str, pd.DataFrame]) -> str:
    return "".join(f"# {name}\n{frame.to_csv(index=False)}\n" for name, frame in frames.items())


def _markdown(frames: dict[str, pd.DataFrame]) -> str:
    return "".join(f"\n## {_TITLES[name]}\n\n{_markdown_table(_columns(frame))}" for name, frame in frames.items())


def _markdown_table(columns: list[_Column]) -> str:
    rows = zip(*(column.cells for column in columns), strict=True)
    marks = ["---:" if column.is_number else "---" for column in columns]
    lines = [[column.heading for column in columns], marks, *rows]
    return "".join(
        f"| {' | '.join(_cut(cell, _NAME_WIDTH).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _for_reading(frames: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Leave out what only programs need: empty tables, causes per stream, columns that say nothing or can be joined."""
    shown = {name: frame for name, frame in frames.items() if len(frame) and name != "idle_breakdown"}
    shown["inputs"] = shown["inputs"].drop(columns="world_size")
    if "temporal_breakdown" in shown:
        shown["temporal_breakdown"] = _with_shares(shown["temporal_breakdown"])
    if "rank_idle" in shown:
        wide = shown["rank_idle"].pivot(index="rank", columns="cause", values="idle_us")
        shown["rank_idle"] = wide.add_suffix("_us").reset_index()
    if "overlap" in shown and not shown["overlap"]["communication_us"].any():
        del shown["overlap"]
    return shown


def _with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the temporal breakdown with each part and its share in one column, without parts that never occur."""
    unit, scale = ("ms", 1000) if table["window_us"].max() >= _MS_FROM_US else ("µs", 1)
    joined = table[["rank", "executor", "window_us"]].copy()
    for part in _PARTS:
        if part == "other" and not table["other_us"].any():
            continue
        pairs = zip(table[f"{part}_us"], table[f"{part}_percent"], strict=True)
        joined[f"{part} {unit} (%)"] = [f"{_short_number(us / scale)} ({share:.0f} %)" for us, share in pairs]
    return joined


def _terminal(frames: dict[str, pd.DataFrame], sentences: list[str], *, width: int, color: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    for name, frame in frames.items():
        columns = _columns(frame)
        console.print(Text(_TITLES[name], style="bold"))
        table = Table(box=None, pad_edge=False)
        fits = _fitted(columns, width)
        for column, room in zip(columns, fits, strict=True):
            heading = "\n".join(textwrap.wrap(column.heading, max(room, 1)))
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            table.add_column(Text(heading), justify=justify, no_wrap=True, min_width=room, max_width=room)
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*(Text(_cut(cell, room)) for cell, room in zip(row, fits, strict=True)))
        console.print(table)
        console.print()
    if sentences:
        console.print(Text("Verdict", style="bold"))
        for sentence in sentences:
            console.print(Text(textwrap.fill(sentence, width - 1, initial_indent="• ", subsequent_indent="  ")))
    return out.getvalue()


def _fitted(columns: list[_Column], width: int) -> list[int]:
    """Return a width for each column: numbers whole, the widest texts cut until the line fits."""
    widths = [column.width for column in columns]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        texts = [i for i, column in enumerate(columns) if not column.is_number and widths[i] > _LEAST_TEXT]
        if not texts:
            break
        widest = max(texts, key=lambda i: widths[i])
        over = sum(widths) + 2 * (len(widths) - 1) - width
        widths[widest] = max(_LEAST_TEXT, widths[widest] - over)
    return widths


def _cut(text: str, room: int) -> str:
    """Return a text that fits, its middle left out: names differ at both ends."""
    if len(text) <= room:
        return text
    head = (room - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"


def _columns(frame: pd.DataFrame) -> list[_Column]:
    """Return the frame's columns as text, with units in the headings and numbers as short as their reader needs."""
    shown = []
    for name in map(str, frame.columns):
        values = frame[name]
        heading, cells = _WORDS.get(name, name), [_cell(name, value) for value in values]
        if name.endswith("_us"):
            unit, scale = ("ms", 1000) if _in_ms(frame, name) else ("µs", 1)
            heading = f"{heading.removesuffix('_us')} {unit}"
            cells = ["-" if pd.isna(value) else _short_number(value / scale) for value in values]
        if name == "name":
            cells = _distinct_names(cells)
        heading = heading.replace("_percent", " %").replace("_", " ")
        is_number = pd.api.types.is_numeric_dtype(values) or name.endswith("(%)")
        shown.append(_Column(heading, [_printable(cell) for cell in cells], is_number))
    return shown


def _in_ms(frame: pd.DataFrame, column: str) -> bool:
    """Return whether a column of µs is shown in ms; totals, and all the rest of a table, share one unit."""
    total = column.startswith("total")
    same = [each for each in frame.columns if str(each).endswith("_us") and str(each).startswith("total") == total]
    return bool((frame[same].max() >= _MS_FROM_US).any())


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.1f}"
    if name == "file":
        return str(value).rsplit("/", 1)[-1]
    return f"{value:,}" if isinstance(value, int) and name in _COUNTS else str(value)


def _distinct_names(names: list[str]) -> list[str]:
    """Return names without template arguments and parameters, whole where that would make several alike."""
    short = [short_name(name) for name in names]
    return [name if short.count(brief) > 1 else brief for name, brief in zip(names, short, strict=True)]


def _printable(text: str) -> str:
    """Return a text on one line, without characters that command a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _short_number(value: float) -> str:
    """Return about three digits: 1,234 · 12.3 · 1.23 · 0.012."""
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3}f}" if value else "0"
