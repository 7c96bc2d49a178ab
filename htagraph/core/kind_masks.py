"""Which rows of a column of kinds have one of some kinds."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["of_kinds"]

_CODES = 128
"""How many codes of kinds there may be: they are int8 and not negative. Doubled, nothing changes."""
_FEW = 8
"""Up to so many kinds, bytes are compared with each, which numpy does many at once, while a table takes one after
another. Measured: 5 million bytes take 4 ms for one kind, 1 more for each other, and 22 by a table. Doubled, larger
sets take about as long as by a table. It changes times only."""


def of_kinds(column: npt.NDArray[Any], kinds: Iterable[IntEnum]) -> npt.NDArray[np.bool_]:
    """Return which entries of a column of codes are those of some kinds, by a table of all codes.

    Args:
        column: codes of one vocabulary of `htagraph.core.kinds`, none of them negative.
        kinds: members of that vocabulary.

    Example:
        >>> from htagraph.core.kinds import DEVICE, ActivityKind
        >>> of_kinds(np.array([ActivityKind.OP, ActivityKind.MEMORY], np.int8), DEVICE).tolist()
        [False, True]
    """
    codes = list(kinds)
    if column.dtype == np.int8 and 0 < len(codes) <= _FEW:
        chosen = column == codes[0]
        for code in codes[1:]:
            chosen |= column == code
        return np.asarray(chosen)
    table = np.zeros(_CODES, np.bool_)
    table[codes] = True
    return np.asarray(table[column])
