"""A table is declared once, beside the function that makes it: its title, and its columns with types and meanings.

From a `Table` follow the types of the frame, the columns that the function's docstring names, the schema of the JSON
that commands print, and the titles and headings that readers see. A column's unit is the end of its name.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SCHEMA_VERSION", "Col", "Table", "described", "unit_of"]

SCHEMA_VERSION = 1
"""Of the JSON that commands print; raised when a key changes its meaning or goes."""

_UNITS = {
    "_us": "µs", "_ns": "ns", "_percent": "percent", "_bytes": "bytes", "_gb_s": "GB/s (10^9 bytes per second)",
    "_ppm": "parts per million", "_gb": "GB (10^9 bytes)", "tflop_s": "TFLOP/s", "tokens_per_s": "tokens per second",
}  # fmt: skip
"""Units by the end of a column's name."""
_MARK = "{columns}"
"""What a docstring has in place of a table's columns."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def unit_of(name: str) -> str | None:
    """Return the unit of a column or a single result, which the end of its name says; None for none.

    Example:
        >>> unit_of("idle_us"), unit_of("rank")
        ('µs', None)
    """
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)


class Col(NamedTuple):
    """A column, or neighbours of one type and one meaning."""

    names: str
    """The name, or several with blanks between."""
    type: str = "float64"
    """What pandas calls it (int64, uint64, float64, str, bool), or ``list`` or ``any`` for a column of objects."""
    doc: str = ""
    """What it means, where the name and the unit do not say enough."""
    heading: str = ""
    """What readers see above it, where the name does not say enough; the end that is a unit stays."""
    maybe: bool = False
    """Whether only some forms of the table have it."""


@dataclass(frozen=True, init=False)
class Table:
    """A table of results: ``Table("Kernels", Col("name", "str"), Col("total_us"), rank_by="total_us")``."""

    title: str
    """What readers see above it."""
    cols: tuple[Col, ...]
    rank_by: str
    """The column that rows are ranked by, the largest first, which readers always see; with blanks between, one for
    each form of the table; empty where rows have another order."""

    def __init__(self, title: str, *cols: Col, rank_by: str = "") -> None:
        vars(self).update(title=title, cols=cols, rank_by=rank_by)  # it is frozen

    @property
    def types(self) -> dict[str, str]:
        """The type of each column by name, as `Col.type` has them."""
        return {name: col.type for col in self.cols for name in col.names.split()}

    @property
    def maybe(self) -> frozenset[str]:
        """The columns that only some forms of the table have."""
        return frozenset(name for col in self.cols if col.maybe for name in col.names.split())

    @property
    def headings(self) -> dict[str, str]:
        """Headings by column, of those that have one of their own."""
        return {col.names: col.heading for col in self.cols if col.heading}

    @property
    def text(self) -> str:
        """The columns as a docstring names them, each with its type and meaning."""
        return ", ".join(
            ", ".join(f"``{name}``" for name in col.names.split()) + f" ({col.type}{f': {col.doc}' if col.doc else ''})"
            for col in self.cols
        )

    def frame(self, data: Any = ()) -> pd.DataFrame:  # noqa: ANN401 - what pandas takes
        """Return a frame with these columns, in this order and of these types, and no others.

        Args:
            data: a frame, columns by name, or rows that have these columns.

        Example:
            >>> dict(Table("", Col("rank", "int64"), Col("idle_us")).frame([(0, 1)]).dtypes.astype(str))
            {'rank': 'int64', 'idle_us': 'float64'}
        """
        import pandas as pd

        given = data if isinstance(data, pd.DataFrame | Mapping) else ()
        types = {
            name: "object" if kind in ("list", "any") else kind
            for name, kind in self.types.items()
            if name in given or name not in self.maybe
        }
        frame = data[list(types)] if isinstance(data, pd.DataFrame) else pd.DataFrame(data, columns=list(types))
        other = {name: of for (name, of), dtype in zip(types.items(), frame.dtypes, strict=True) if dtype != of}
        return frame.astype(other) if other else frame  # pandas takes its time for those of the right type, too

    def only(self, names: str) -> Table:
        """Return the table of some columns, which are named with blanks between."""
        of_name = {name: col._replace(names=name) for col in self.cols for name in col.names.split()}
        return Table(self.title, *(of_name[name] for name in names.split()), rank_by=self.rank_by)

    def ranked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame with the largest rows by `rank_by` first; equal rows keep their order."""
        by = next(name for name in self.rank_by.split() if name in frame)
        return frame.sort_values(by, ascending=False, kind="stable", ignore_index=True)

    def titled(self, title: str) -> Table:
        """Return the table under another title."""
        return Table(title, *self.cols, rank_by=self.rank_by)


def described(*tables: Table) -> Callable[[_Function], _Function]:
    """Return a decorator that names the columns of tables in a docstring, of each in place of a ``{columns}``."""

    def with_columns(function: _Function) -> _Function:
        for table in tables:
            function.__doc__ = _filled(function.__doc__ or "", table.text)
        return function

    return with_columns


def _filled(docstring: str, text: str) -> str:
    """Return a docstring with a text in place of its first mark, the paragraph of the mark in lines again."""
    lines = docstring.split("\n")
    at = next((i for i, line in enumerate(lines) if _MARK in line), None)
    if at is None:  # docstrings were stripped
        return docstring
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]

    def is_inside(line: str) -> bool:
        return bool(line.strip()) and line.startswith(indent) and not line[len(indent) :].startswith(" ")

    first, last = at, at
    while is_inside(lines[first - 1]):
        first -= 1
    while last + 1 < len(lines) and is_inside(lines[last + 1]):
        last += 1
    whole = " ".join(line.strip() for line in lines[first : last + 1]).replace(_MARK, text, 1)
    filled = textwrap.wrap(
        whole, 116, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join([*lines[:first], *filled, *lines[last + 1 :]])
