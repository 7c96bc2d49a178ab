"""Which calls of Python functions a file's columns hold: they are most of a large file, and can be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from htagraph.core.naming import FRAME
from htagraph.trace.events import canonical_category
from htagraph.trace.reading.extent import overlaps

if TYPE_CHECKING:
    import numpy.typing as npt

    from htagraph.core.arrays import Array
    from htagraph.core.issues import IssueLog

__all__ = ["MOST_FRAMES", "Frames", "is_frame"]

MOST_FRAMES: Final = 4_000_000
"""Calls of Python functions in one file up to which all are kept unless the caller says otherwise. Chosen: in a graph
they take 1.5 GB, and as text about one. Doubled, both double."""


class Frames:
    """Decides which calls of Python functions of one file become rows.

    What is left out is not numbered, nor is its name kept: names of builtins hold addresses, so a long file has many.

    Args:
        asked: True to keep all, False to keep none, None to keep all of a file with at most `most` of them, else none.
        most: see `asked`.
        windows: keep only those that overlap one of these (begin, end; ns as in the file), ascending and apart.
    """

    def __init__(self, *, asked: bool | None = None, most: int = MOST_FRAMES, windows: Array | None = None) -> None:
        self._asked, self._most, self._windows = asked, most, windows
        self._none = asked is False
        self.kept = 0
        """Number of those that have rows."""
        self.left_out = 0
        """Number of those left out but for `windows`."""

    @property
    def may_leave_out(self) -> bool:
        """Whether any call in the next block may be left out."""
        return self._none or self._windows is not None

    def holds(self, count: int) -> bool:
        """Return whether a file with so many of them keeps them."""
        return self._asked is True or (self._asked is None and count <= self._most)

    def left_out_of(self, is_frame: npt.NDArray[np.bool_], start: Array, duration: Array) -> npt.NDArray[np.bool_]:
        """Return which events of a block are left out.

        Args:
            is_frame: which are calls of Python functions.
            start: when each begins, ns as in the file.
            duration: how long each takes, ns.
        """
        if self._none:
            return is_frame
        out = np.zeros(len(is_frame), np.bool_)
        if self._windows is not None and is_frame.any():
            out[is_frame] = ~overlaps(start[is_frame], np.maximum(duration[is_frame], 0), self._windows)
        return out

    def count(self, kept: int, left_out: int) -> bool:
        """Count the calls of a block; return True if those kept are now too many, and must be taken back."""
        self.kept += kept
        self.left_out += left_out if self._none else 0
        if self._asked is not None or self.kept <= self._most:
            return False
        self._none = True
        self.left_out += self.kept
        self.kept = 0
        return True

    def report(self, log: IssueLog) -> None:
        """Report what was left out."""
        if self._asked is None:
            what = f"calls of Python functions, more than {self._most:,}: left out; python=True keeps them"
            log.add("python_left_out", what, self.left_out)
        else:
            log.add("python_not_read", "calls of Python functions; left out as asked", self.left_out)


def is_frame(category: object) -> bool:
    """Return whether a category, as written in a file, is that of calls of Python functions.

    Example:
        >>> is_frame("Python_Function"), is_frame(None)
        (True, False)
    """
    return category is not None and canonical_category(str(category)) == FRAME
