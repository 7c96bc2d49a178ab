"""Tables and envelopes → text for terminals, files and other programs."""

from __future__ import annotations

import io
import json
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

from htagraph.core.naming import short_name
from htagraph.output.report import Report
from htagraph.output.summary import Summary
from htagraph.output.validation import Validation

__all__ = ["FORMATS", "render_report", "render_summary", "render_validation"]

FORMATS = ("table", "json", "csv", "md")

_TITLES = {
    "inputs": "What was read",
    "steps": "Steps (until all work launched in them is over)",
    "temporal_breakdown": "Time by rank",
    "overlap": "Communication hidden behind computation",
    "rank_idle": "Why ranks are idle",
    "kernels": "Top kernels by kind, all ranks",
    "launches": "Launches",
    "clocks": "Clocks, as the ends of collectives show them",
    "issues": "Repaired, dropped or unmatched",
    "support": "What these traces can answer",
    "arguments": "Arguments of events, and values of another type than theirs",
    "path_category": "The critical path by what its time was spent on",
    "path_rank": "The critical path by rank",
    "path_operator": "The critical path by operator",
    "path_kernel": "The critical path by kernel",
    "hops": "Where the path goes from rank to rank: the second waited for the first",
    "near": "What would be critical next (slack: how much longer it may get until then)",
    "segments": "The path, segment by segment",
    "prediction": "Prediction",
    "changes": "What each change adds",
    "step_times": "Steps, from the first rank's begin to the last one's end",
    "bounds_category": "The critical path before and after, by what its time was spent on",
    "bounds_rank": "The critical path before and after, by rank",
    "bounds_kernel": "The critical path before and after, by kernel",
    "stragglers": "Whom the others wait for",
    "causes": "Waiting by cause",
    "collectives": "Collectives, times summed over all ranks",
    "last_arrivals": "Who came last",
    "parts": "Each rank's part in each collective",
    "opportunities": "What to improve, by what it would gain at most",
    "memory_peaks": "When most memory was in use",
    "memory_at_peak": "Whose it was then",
    "memory_devices": "What the allocator holds and held",
    "memory_now": "Whose is in use now",
    "memory_categories": "What memory was used for",
    "device_time": "Device time",
    "module_classes": "Device time by class of module",
    "device_time_by_rank": "Device time of each rank",
    "streams": "Why streams stand still",
    "pauses": "The longest pauses",
    "work": "Which work made the difference: its own time per rank and step, and what that did to the step (replayed)",
    "contributions": "The change of the critical path, per step, call path by call path",
    "change_category": "The same by what the time was spent on",
    "change_operator": "The same by operator",
    "names": "What occurs in both jobs, per rank and step",
    "added": "Only in the job after, per rank and step",
    "removed": "Only in the job before, per rank and step",
    "renamed": "Device work with another name",
    "paired_steps": "Steps, from the first rank's begin to the last one's end",
    "patterns": "Sequences of kernels, the most frequent first",
    "roofline": "What operators compute and move, most time first",
    "counters": "What the device counted in each kernel",
    "calls": "Launching calls",
    "operators": "What operators launch, most device time first",
    "graph_launches": "Launches of CUDA graphs",
    "compiled_regions": "Regions that torch.compile made",
    "phases": "Phases, by their annotation",
    "queues": "Works queued on each stream",
    "bandwidth": "Copies of memory",
    "queue_length": "Works queued over time",
    "memory_bandwidth": "Bandwidth of copies over time",
}
_WORDS = {
    "works": "linked works",
    "short": "calls longer than their work",
    "excessive_runtime": "calls > 50 µs",
    "excessive_delay": "delays > 100 µs",
    "period_us": "start to start_us",
    "start_utc": "start (UTC)",
    "main": "main work",
    "tflop_s": "TFLOP/s",
    "gb": "GB",
    "intensity": "intensity FLOP/B",
}
_DIGITS = {"speedup": 3, "low": 3, "high": 3}
_NAMES = ("name", "kernel", "key")  # columns of kernels' names
_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")
_FOR_PROGRAMS = ("idle_breakdown", "critical_path", "stragglers", "opportunities", "gaps")
"""Tables of a summary that have commands of their own; what they say first is in the verdict."""
_COUNTS = ("events", "activities", "count", "launches", "works", "short", "excessive_runtime", "excessive_delay")
_COMMAND = ": htagraph "
_UNIT = re.compile(r"(?<=\d) (?=%|ms|µs|s\b)")
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
        return (_markdown(brief) + _markdown_list("Conclusion", report.sentences)).lstrip("\n")
    return _terminal(brief, report.sentences, width=width, color=color, heading="Conclusion")


def render_summary(summary: Summary, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return a summary as text in one of `FORMATS`."""
    if form == "json":
        return _json(summary.to_dict())
    frames = {"inputs": summary.inputs, **summary.tables, "issues": summary.issues}
    if form == "csv":
        return _csv(frames) + _csv({"verdict": pd.DataFrame({"sentence": summary.verdict})})
    brief = _for_reading(frames)
    if form == "md":
        return _markdown(brief) + _markdown_list("Verdict", summary.verdict)
    return _terminal(brief, summary.verdict, width=width, color=color)


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
        return _markdown(frames)
    clean = [] if len(validation.files) else ["Nothing had to be repaired or dropped."]
    return _terminal({name: frame for name, frame in frames.items() if len(frame)}, clean, width=width, color=color)


def _json(envelope: dict[str, Any]) -> str:
    return json.dumps(envelope, indent=2, ensure_ascii=False, default=lambda value: value.item()) + "\n"


def _joined(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _csv(frames: dict[str, pd.DataFrame]) -> str:
    return "".join(f"# {name}\n{frame.to_csv(index=False)}\n" for name, frame in frames.items())


def _markdown(frames: dict[str, pd.DataFrame]) -> str:
    return "".join(f"\n## {_TITLES[name]}\n\n{_markdown_table(_columns(frame))}" for name, frame in frames.items())


def _markdown_list(heading: str, sentences: list[str]) -> str:
    return f"\n## {heading}\n\n" + "\n".join(f"- {line}" for line in sentences) + "\n"


def _markdown_table(columns: list[_Column]) -> str:
    rows = zip(*(column.cells for column in columns), strict=True)
    marks = ["---:" if column.is_number else "---" for column in columns]
    lines = [[column.heading for column in columns], marks, *rows]
    return "".join(
        f"| {' | '.join(_cut(cell, _NAME_WIDTH).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _for_reading(frames: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Leave out what only programs need: empty tables, causes per stream, columns that say nothing or can be joined."""
    shown = {name: frame for name, frame in frames.items() if len(frame) and name not in _FOR_PROGRAMS}
    if "clocks" in shown and not shown["clocks"]["collectives"].any():
        del shown["clocks"]
    shown["inputs"] = shown["inputs"].drop(columns="world_size")
    if "temporal_breakdown" in shown:
        shown["temporal_breakdown"] = _with_shares(shown["temporal_breakdown"])
    if "rank_idle" in shown:
        wide = shown["rank_idle"].pivot(index="rank", columns="cause", values="idle_us")
        shown["rank_idle"] = wide.add_suffix("_us").reset_index()
    if "kernels" in shown:
        shown["kernels"] = shown["kernels"].rename(columns={"share_percent": "of_all_work_percent"})
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


def _terminal(
    frames: dict[str, pd.DataFrame], sentences: list[str], *, width: int, color: bool, heading: str = "Verdict"
) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    for name, frame in frames.items():
        columns = _columns(frame)
        console.print(Text(_TITLES[name], style="bold"))
        table = Table(box=None, pad_edge=False)
        fits = _fitted(columns, width)
        for column, room in zip(columns, fits, strict=True):
            wrapped = "\n".join(textwrap.wrap(column.heading, max(room, 1)))
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            table.add_column(Text(wrapped), justify=justify, no_wrap=True, min_width=room, max_width=room)
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*(Text(_cut(cell, room)) for cell, room in zip(row, fits, strict=True)))
        console.print(table)
        console.print()
    if sentences:
        console.print(Text(heading, style="bold"))
        for sentence in sentences:
            console.print(Text(_filled(sentence, width)), soft_wrap=True)
    return out.getvalue()


def _filled(sentence: str, width: int) -> str:
    """Return a sentence in lines, numbers beside their units, and the command that it ends with, whole, on its own."""
    said, command_follows, command = _printable(sentence).partition(_COMMAND)
    held = _UNIT.sub("\N{NO-BREAK SPACE}", said + ":" if command_follows else said)
    lines = textwrap.fill(held, width - 1, initial_indent="• ", subsequent_indent="  ", break_on_hyphens=False)
    lines = lines.replace("\N{NO-BREAK SPACE}", " ")
    return f"{lines}\n    {_COMMAND[2:]}{command}" if command_follows else lines


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
            cells = [_short_or_dash(value / scale) for value in values]
        if name.endswith("bytes"):
            heading, cells = f"{heading.removesuffix('bytes')}MB", [_short_or_dash(value / 1e6) for value in values]
        if name.endswith("gb_s"):
            heading, cells = heading.removesuffix("gb_s") + " GB/s", [_short_or_dash(value) for value in values]
        if name in _NAMES:
            cells = _distinct_names(cells)
        heading = heading.replace("_percent", " %").replace("_", " ").strip()
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
        return "-" if value != value else f"{value:.{_DIGITS.get(name, 1)}f}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if name == "file":
        return str(value).rsplit("/", 1)[-1]
    return f"{value:,}" if isinstance(value, int) and name in _COUNTS else str(value)


def _distinct_names(names: list[str]) -> list[str]:
    """Return names without template arguments and parameters, whole where that would make several alike."""
    short = {name: short_name(name) for name in dict.fromkeys(names)}
    alike = Counter(short.values())
    return [name if alike[short[name]] > 1 else short[name] for name in names]


def _printable(text: str) -> str:
    """Return a text on one line, without characters that command a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _short_or_dash(value: float) -> str:
    return "-" if pd.isna(value) else _short_number(value)


def _short_number(value: float) -> str:
    """Return about three digits: 1,234 · 12.3 · 1.23 · 0.012."""
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3}f}" if value else "0"
