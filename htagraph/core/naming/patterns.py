"""Which names a pattern or a rule fits: case does not count for patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["matches", "names_like", "names_that"]


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern is found anywhere in a name, in capitals or not."""
    return _compiled(pattern).search(name) is not None


def names_like(pattern: str, names: Sequence[str], codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which codes, as indices into names, are of a name in which a pattern of `Naming` is found."""
    return np.isin(codes, [code for code in np.unique(codes).tolist() if matches(pattern, names[code])])


def names_that(fits: Callable[[str], bool], names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which names a rule fits.

    Example:
        >>> names_that(str.isupper, ("a", "B")).tolist()
        [False, True]
    """
    return np.fromiter(map(fits, names), np.bool_, len(names))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
