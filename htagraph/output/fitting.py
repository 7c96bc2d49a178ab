"""Columns → a table that is no wider than what shows it: texts shortened in the middle, then columns left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htagraph.findings.phrases import distinct, shortened
from htagraph.output.columns import Column

__all__ = ["Fitted", "cut_all", "fitted"]

_BETWEEN = 2
"""Blanks between columns."""
_MIN_TEXT_WIDTH = 13
"""Letters to which a text may be cut; chosen: kinds of kernels, such as communication, are whole. Doubled, more columns
are left out at 80."""
_MIN_NAME_WIDTH = 26
"""Letters that a name keeps, before any number is left out for it. Chosen: the ends of kernel names that differ, such
as ampere_bf16_…tages_64x3_nn. Doubled, a table at 80 columns is names and little else."""
_MIN_SENTENCE_WIDTH = 20
"""Letters to which the lines of a sentence may be cut. Chosen: three words. Doubled, what stands beside it is cut at 80
columns."""
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


@dataclass(frozen=True)
class Fitted:
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
    column of empty texts always is.

    Args:
        columns: of a table.
        width: letters of a line.

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
    subject = _subject(columns)
    least = [each.width if each.is_number else min(each.width, _MIN_TEXT_WIDTH) for each in columns]
    for i, column in enumerate(columns):
        if column.name in _SENTENCES:
            words = max((len(word) for cell in column.cells for word in cell.split()), default=0)
            least[i] = min(column.width, max(least[i], _MIN_SENTENCE_WIDTH if i == subject else words))
        elif i == subject:
            least[i] = min(column.width, _MIN_NAME_WIDTH)
    return least


def _subject(columns: Sequence[Column]) -> int | None:
    """Return the place of the longest name, which says what a row is about; None without any."""
    texts = [i for i, column in enumerate(columns) if column.name in _SUBJECTS and not column.is_number]
    return max(texts, key=lambda i: columns[i].width) if texts else None


def _most(column: Column) -> int:
    """Return the width beyond which a column tells nothing more."""
    return max(_MAX_WHOLE_WIDTH, *map(len, column.short)) if column.short else column.width


def _least_important(columns: Sequence[Column]) -> int | None:
    """Return the place of the column to leave out next; None where only what must stay is left."""
    for i, column in enumerate(columns):
        if i > 0 and column.is_number and _NOTHING.issuperset(column.cells):
            return i
    for name in _LEAST:
        for i, column in enumerate(columns):
            if column.name == name and i > 0 and not _names_devices(columns, column):
                return i
    numbers = [i for i, column in enumerate(columns) if column.is_number and i > 0]
    return numbers[-2] if len(numbers) > 1 else None


def _names_devices(columns: Sequence[Column], column: Column) -> bool:
    """Return whether a column tells the devices of a rank apart, without which its rows look alike."""
    ranks = next((each.cells for each in columns if each.name == "rank"), [])
    return column.name == "device" and len(set(zip(ranks, column.cells, strict=False))) > len(set(ranks))


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Return a width for each column: numbers whole, the widest texts cut until the line fits."""
    widths = [min(column.width, _most(column)) for column in columns]
    least = (
        _least(columns)
        if _span(_least(columns)) <= width
        else [each.width if each.is_number else 1 for each in columns]
    )
    while (over := _span(widths) - width) > 0:
        texts = [i for i, column in enumerate(columns) if widths[i] > least[i]]
        if not texts:
            break
        texts = [i for i in texts if columns[i].name in _SENTENCES] or texts  # they go on in the next line
        widest = max(texts, key=lambda i: widths[i])
        second = max((widths[i] for i in texts if i != widest), default=0)
        widths[widest] = max(least[widest], widths[widest] - over, min(second, widths[widest] - 1))
    return widths
