"""Which names match a pattern (regular expression, case ignored) or a predicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["exact_glob", "matches", "names_like", "names_that"]

_MAGIC = re.compile(r"[*?[]")
"""What means something in a glob."""


def exact_glob(name: str) -> str:
    r"""Return a glob that fits a name, in a single line: what cannot be printed is any character.

    Example:
        >>> exact_glob("copy[2]"), exact_glob("two\nlines")
        ('copy[[]2]', 'two?lines')
    """
    exact = _MAGIC.sub(r"[\g<0>]", name)
    return exact if exact.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in exact)


def matches(pattern: str, name: str) -> bool:
    """Return True if a pattern matches anywhere in a name; case is ignored."""
    return _found(pattern, name)


def names_like(pattern: str, names: Sequence[str], codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the codes (indices into `names`) whose name a pattern matches."""
    return np.isin(codes, [code for code in np.unique(codes).tolist() if matches(pattern, names[code])])


def names_that(fits: Callable[[str], bool], names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return a mask of the names for which a predicate is true.

    Example:
        >>> names_that(str.isupper, ("a", "B")).tolist()
        [False, True]
    """
    return np.fromiter(map(fits, names), np.bool_, len(names))


@lru_cache(maxsize=1 << 15)  # ranks of a job share their names: a few thousand, and some 20 patterns that ask for few
def _found(pattern: str, name: str) -> bool:
    return _compiled(pattern).search(name) is not None


@lru_cache(maxsize=64)  # patterns: there are about 20, and those of users; twice as many would save nothing
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
