"""What the first event with an id says, for ids that come block by block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array

__all__ = ["FirstOf"]


class FirstOf:
    """A yes or no for each id: that of the first event which has it. Nine bytes per id."""

    def __init__(self) -> None:
        self._ids, self._says = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self.repeated = 0
        """How many events had the id of an earlier one."""

    def add(self, ids: Array, says: npt.NDArray[np.bool_]) -> None:
        """Note events in the order of the file.

        Args:
            ids: their ids.
            says: what each says.

        Example:
            >>> first = FirstOf()
            >>> first.add(np.array([7, 5, 7]), np.array([True, False, False]))
            >>> first.of(np.array([5, 6, 7]))[1].tolist(), first.repeated
            ([False, False, True], 1)
        """
        distinct, first = np.unique(ids, return_index=True)  # the first of equal ids
        known, _ = self.of(distinct)
        distinct, first = distinct[~known], first[~known]
        self.repeated += len(ids) - len(distinct)
        place = np.searchsorted(self._ids, distinct)
        self._ids = np.insert(self._ids, place, distinct)
        self._says = np.insert(self._says, place, says[first])

    def of(self, ids: Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return (which ids are known, what the first event with each says; False where it is not known)."""
        if not len(self._ids):
            return np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = self._ids[at] == ids
        return known, known & self._says[at]
