"""The layout of a job: which process groups are data, tensor and pipeline parallel, and what their sizes change."""

from __future__ import annotations

import fnmatch

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import SelectionError
from htagraph.graph.matches import Matches

__all__ = ["group_sizes", "in_groups"]


def group_sizes(matches: Matches) -> npt.NDArray[np.int64]:
    """Return, per collective, how many ranks its group has: all of its members where the recording does not say."""
    return np.where(matches.size > 0, matches.size, np.bincount(matches.collective)).astype(np.int64)


def in_groups(matches: Matches, pattern: str) -> npt.NDArray[np.bool_]:
    """Return True for each collective whose group's label matches a glob.

    Raises:
        SelectionError: none does.
    """
    chosen = np.array([fnmatch.fnmatchcase(group, pattern) for group in matches.group], np.bool_)
    if not chosen.any():
        msg = f"no process group matches {pattern!r}; the graph has: {', '.join(sorted(set(matches.group)))}"
        raise SelectionError(msg)
    return chosen
