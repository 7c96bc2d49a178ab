"""What pictures of a job show: slices on tracks, values of counters, and one colour for each kind of time.

Both forms of Perfetto's files draw slices and values. Figures and Graphviz take the colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from htagraph.core.arrays import Array

__all__ = ["BYTES", "COLORS", "COUNT", "GB_S", "KIND_COLORS", "NO_NUMBER", "Slices", "Values", "tint"]

COLORS = {
    "blue": "#0072B2", "orange": "#E69F00", "green": "#009E73", "vermillion": "#D55E00", "sky": "#56B4E9",
    "purple": "#CC79A7", "yellow": "#F0E442", "brown": "#8C6D31", "grey": "#999999", "light": "#C4C4C4",
}  # fmt: skip
"""Okabe and Ito's colours, which readers of all kinds of colour vision tell apart; a brown and two greys as well."""
KIND_COLORS: Mapping[str, str] = {
    "computation": COLORS["blue"], "communication": COLORS["vermillion"], "memory": COLORS["purple"],
    "host": COLORS["orange"], "launch": COLORS["yellow"], "sync": COLORS["green"], "waiting": COLORS["sky"],
    "data_loading": COLORS["brown"], "gap": COLORS["grey"], "head": COLORS["light"], "idle": COLORS["light"],
    "op": COLORS["orange"], "host_communication": COLORS["vermillion"], "device_other": COLORS["sky"],
    "module": COLORS["sky"], "annotation": COLORS["green"], "step": COLORS["brown"], "": COLORS["grey"],
}  # fmt: skip
"""Kinds of activity and categories of time: each has one colour in all figures."""
COUNT, GB_S, BYTES = "count", "GB/s", "bytes"
"""Units of counters."""
NO_NUMBER: Final = -(2**63)
"""The duration of what has none, such as an instant."""


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices and instants of some tracks, as columns of numbers."""

    places: Sequence[tuple[int, int]]
    """Processes and tracks in them, by number."""
    texts: Sequence[str]
    """Names and categories, by number."""
    place: Array
    start: Array
    """ns since the base of what is written, ≥ 0."""
    duration: Array
    """ns; `NO_NUMBER` for instants."""
    name: Array
    category: Array
    """Position in `texts`, -1 for none."""
    args: Array
    """Arguments as JSON: spans of `source` (start · 2³² + length), 0 for none."""
    source: Array
    """Bytes of JSON."""
    more: Array | None = None
    """Other keys and values of each slice as JSON, with a comma before: spans of `source`; None for none at all."""

    def __len__(self) -> int:
        return len(self.place)

    def rows(self, which: Array) -> Slices:
        """Return some of the slices, in that order."""
        shared = ("places", "texts", "source")
        columns = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in shared}
        return replace(self, **{name: column[which] for name, column in columns.items() if column is not None})


@dataclass(frozen=True, eq=False)
class Values:
    """Values of one counter of a process."""

    pid: int
    name: str
    series: str
    unit: str
    moment: Array
    """ns since the base of what is written, ≥ 0."""
    value: Array
    """Integers, or floats of which six decimals are written."""

    def __len__(self) -> int:
        return len(self.moment)


def tint(color: str, share: float = 0.45) -> str:
    """Return a colour, as ``#RRGGBB``, of which a share is left and the rest is white, so that black letters show.

    Example:
        >>> tint("#0072B2", 1.0), tint("#0072B2", 0.5), tint("#0072B2", 0.0)
        ('#0072b2', '#80b8d8', '#ffffff')
    """
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in parts)
