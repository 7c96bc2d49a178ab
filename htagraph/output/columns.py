"""Tables as their readers see them: headings with units, short numbers and names, no wider than what shows them.

Where a table does not fit, texts are shortened in the middle, then columns are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.errors import printable
from htagraph.core.naming import short_name
from htagraph.findings.phrases import distinct, short_number, shortened
from htagraph.output.report import Wording

__all__ = ["Column", "Fitted", "columns_of", "cut_all", "fitted", "with_shares"]

_HEADINGS = {
    "start_utc": "start (UTC)", "used_utc": "used (UTC)", "tflop_s": "TFLOP/s", "copied_gb": "copied GB",
    "peak_us": "at_us",
}  # fmt: skip
"""Headings of columns that tables of several commands have."""
_DIGITS = {"speedup": 3, "low": 3, "high": 3}
"""Digits behind the point, where one says too little."""
_NAMES = ("name", "kernel", "key")
"""Columns of kernel names."""
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
_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")


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
    columns = [_column(frame, name, headings) for name in map(str, frame.columns)]
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
    if name.endswith("bytes"):
        heading, cells = f"{heading.removesuffix('bytes')}MB", [_short_or_dash(value / 1e6) for value in values]
    if name.endswith("gb_s"):
        heading, cells = heading.removesuffix("gb_s") + " GB/s", [_short_or_dash(value) for value in values]
    if name.endswith("_gb"):
        in_mb = bool(len(values)) and float(values.max()) < 1
        heading = heading.replace("GB", "MB") if in_mb else heading
        cells = [_short_or_dash(1000 * value if in_mb else value) for value in values]
    if name in _NAMES:
        cells, short = _distinct_names(cells)
    heading = " ".join(heading.replace("_percent", " %").replace("_", " ").split())
    is_number = pd.api.types.is_numeric_dtype(values) or name.endswith("(%)")
    return Column(name, heading, [printable(cell) for cell in cells], is_number, [printable(each) for each in short])


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.{_DIGITS.get(name, 1)}f}" if math.isfinite(value) else "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if name == "file":
        return str(value).rsplit("/", 1)[-1]
    if name in _NOBODY and value == -1:
        return _NOBODY[name]
    return f"{value:,}" if isinstance(value, int) and name in _COUNTS else str(value)


def _distinct_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return (names without template arguments and parameters, whole where several would be alike; all without)."""
    short = {name: short_name(name) for name in dict.fromkeys(names)}
    alike = Counter(short.values())
    return [name if alike[short[name]] > 1 else short[name] for name in names], [short[name] for name in names]


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


def with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the temporal breakdown with each part and its share in one column, without parts that never occur."""
    unit, scale = ("ms", 1000) if table["window_us"].max() >= _MIN_US_IN_MS else ("µs", 1)
    joined = table[["rank", "executor", "window_us"]].copy()
    for part in _PARTS:
        if part == "other" and not table["other_us"].any():
            continue
        pairs = zip(table[f"{part}_us"], table[f"{part}_percent"], strict=True)
        joined[f"{part} {unit} (%)"] = [
            f"{short_number(us / scale)} ({share:.0f} %)" if math.isfinite(share) else short_number(us / scale)
            for us, share in pairs
        ]
    return joined
