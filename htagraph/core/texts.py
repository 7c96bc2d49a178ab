"""Columns of text made from numbers of texts: each text becomes a value of the column once, not once per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.distinct import distinct

if TYPE_CHECKING:
    from pandas.api.extensions import ExtensionArray

__all__ = ["texts_of"]


def texts_of(texts: Sequence[str], numbers: npt.ArrayLike) -> ExtensionArray:
    """Return the texts of some numbers as a pandas column of type ``str``; the empty text for -1.

    Args:
        texts: the texts.
        numbers: positions in `texts`.

    Example:
        >>> texts_of(("a", "b"), [1, -1, 1]).tolist()
        ['b', '', 'b']
    """
    import pandas as pd

    wanted = np.asarray(numbers, np.int64)
    wanted = np.where(wanted >= 0, wanted, len(texts))
    used = distinct(wanted, len(texts) + 1)
    place = np.zeros(len(texts) + 1, np.int64)
    place[used] = np.arange(len(used))
    few = pd.array([texts[number] if number < len(texts) else "" for number in used.tolist()], dtype="str")
    return few.take(place[wanted])
