"""How many steps a recording consists of, so that totals can be given per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.kinds import ActivityKind

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["whole_steps"]

_MIN_COVERED = 0.9
"""Share of the recording, from the first moment to the last, that its steps must cover. Chosen: in the rest there are
the profiler's start and end; where it is larger, a total divided by the steps is no time of a step. It cannot be
doubled; at 1, no total of a real recording is given per step."""


def whole_steps(graph: DependencyGraph) -> int:
    """Return how many steps a recording consists of; 0 if it has none, or they cover less than 90 % of it.

    Example:
        >>> import htagraph as hg
        >>> whole_steps(hg.load("data/demo"))
        3
    """
    acts = graph.activities
    marks, ends = (np.flatnonzero(acts.kind == kind) for kind in (ActivityKind.STEP, ActivityKind.BOUNDARY))
    if not len(marks) or not len(ends):
        return 0
    covered = int(graph.time[2 * ends].max() - graph.time[2 * marks].min())
    whole = int(graph.time[1::2][graph.awake].max()) - graph.origin_ns
    _, count = np.unique(acts.rank[ends], return_counts=True)  # ranks may number the same steps differently
    return int(count.max()) if covered >= _MIN_COVERED * whole else 0
