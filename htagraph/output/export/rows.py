"""Texts of many events, one behind the other, as `row_texts` makes them and the writer takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["SEPARATOR", "Rows"]

SEPARATOR: Final = b",\n"
"""What stands behind each row."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Texts of rows with a `SEPARATOR` behind each."""

    text: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    """Where each row begins in `text`, and where the last one ends."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, first: int, last: int) -> Rows:
        """Return the rows from `first` on, before `last`."""
        return Rows(self.text, self.starts[first : last + 1])

    @property
    def spans(self) -> npt.NDArray[np.int64]:
        """Where each row is in `text`, as a span: start · 2³² + length, without the separator."""
        return (self.starts[:-1] << 32) | (np.diff(self.starts) - len(SEPARATOR))

    @property
    def joined(self) -> memoryview:
        """The rows with separators between them."""
        return self.text[self.starts[0] : max(self.starts[-1] - len(SEPARATOR), self.starts[0])].data
