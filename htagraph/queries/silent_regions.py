"""Regions of a path in which nothing was recorded: a wait, or code that the profiler did not see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Mask, sums_by
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, GapKind
from htagraph.core.naming import inference_phase
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.interruptions import LONG_NS
from htagraph.queries.path_segments import CATEGORIES, Segments

__all__ = ["SilentRegion", "silent_region", "silent_regions"]


class SilentRegion(NamedTuple):
    """The region that holds most of the time of a path in which nothing was recorded."""

    name: str
    """The name of the region, with * in place of its numbers."""
    percent: float
    """Percent of the path."""


@once
def silent_regions(graph: DependencyGraph) -> Mask:
    """Return which activities are named regions of a host thread that last 1 ms or more and enclose nothing.

    A region that waits for a request, a lock or a file looks like this, and so does code that records no event, as in a
    data loader.

    Example:
        >>> import htagraph as hg
        >>> int(silent_regions(hg.load("data/demo")).sum())
        12
    """
    acts = graph.activities
    is_silent = (acts.kind == ActivityKind.ANNOTATION) & ~acts.on_device & (acts.duration >= LONG_NS)
    parent = graph.tree.parent
    is_silent[parent[parent >= 0]] = False
    return np.asarray(is_silent)


def silent_region(graph: DependencyGraph, parts: Segments) -> SilentRegion | None:
    """Return the region with most time of some segments in which nothing was recorded; None for none.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> silent_region(path.graph, path.segments) is None
        True
    """
    in_silence = (parts.gap == GapKind.HOST_UNTRACED) & (parts.category == CATEGORIES.index("host"))
    in_silence &= (parts.region >= 0) & silent_regions(graph)[parts.region]
    if not in_silence.any():
        return None
    names, time = sums_by(graph.activities.name[parts.region[in_silence]], parts.length[in_silence])
    by_word: dict[str, int] = {}
    for name, lasted in zip(names.tolist(), time.tolist(), strict=True):
        word = inference_phase(graph.names[name])[0]
        by_word[word] = by_word.get(word, 0) + lasted
    longest = max(by_word, key=lambda word: by_word[word])
    return SilentRegion(longest, 100 * by_word[longest] / max(int(parts.length.sum()), 1))
