"""Tables as their readers see them: headings with units, numbers as short as they need to be, short names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from htagraph.core.errors import printable
from htagraph.core.naming import short_name
from htagraph.findings.phrases import short_number
from htagraph.output.report import Wording

__all__ = ["Column", "columns_of"]

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
_NOBODY = {"rank": "-", "charged_rank": "nobody", "last_rank": "not known"}
"""What a column of ranks shows for none."""
_MIN_US_IN_MS = 10_000.0
"""µs from which a table's times are shown in ms; chosen: five digits are too many. Doubled, 20,000 µs are."""


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

    @property
    def width(self) -> int:
        """The least width in which no cell and no word of the heading is cut."""
        return max(len(text) for text in (*self.heading.split(), *self.cells, ""))


def columns_of(frame: pd.DataFrame, wording: Wording) -> list[Column]:
    """Return a table's columns as text, with units in the headings and numbers as short as their reader needs.

    Args:
        frame: the table; units are suffixes of its columns' names.
        wording: headings of columns whose names do not say enough.
    """
    return [_column(frame, name, _HEADINGS | dict(wording.headings)) for name in map(str, frame.columns)]


def _column(frame: pd.DataFrame, name: str, headings: dict[str, str]) -> Column:
    values, heading = frame[name], headings.get(name, name)
    cells, short = [_cell(name, value) for value in values], list[str]()
    if name.endswith("_us"):
        unit, scale = ("ms", 1000) if _in_ms(frame, name) else ("µs", 1)
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
    if name in _NOBODY and value == _NO_RANK:
        return _NOBODY[name]
    return f"{value:,}" if isinstance(value, int) and name in _COUNTS else str(value)


def _distinct_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return (names without template arguments and parameters, whole where several would be alike; all without)."""
    short = {name: short_name(name) for name in dict.fromkeys(names)}
    alike: dict[str, int] = {}
    for text in short.values():
        alike[text] = alike.get(text, 0) + 1
    return [name if alike[short[name]] > 1 else short[name] for name in names], [short[name] for name in names]


def _short_or_dash(value: float) -> str:
    return short_number(value) if np.isfinite(value) else "-"
