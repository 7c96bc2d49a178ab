"""How much time a change takes away: no more is saved, and a change that only takes time away makes nothing slower."""

from __future__ import annotations

import math

import numpy as np

from htagraph.core.arrays import Array
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import gain_steps, regular_steps
from htagraph.queries.weights import NEVER, State

__all__ = ["most_per_usual_steps", "possible_savings"]


def possible_savings(baseline: DependencyGraph, state: State, known_ns: float = 0.0) -> tuple[float, float] | None:
    """Return the least and the most that a change can save of the recorded run, ns; None if nothing limits it.

    Args:
        baseline: the job as recorded.
        state: the job as changed.
        known_ns: how much the change saves in another reading of the recording, in which more goes with it.

    Example:
        >>> import htagraph as hg
        >>> job = hg.load("data/demo")
        >>> possible_savings(job, hg.what_if(job).scale(factor=1).state)
        (0.0, 0.0)
    """
    if state.graph is not baseline or state.unsure or state.jitter or state.shared_link is not None:
        return None
    lag = baseline.edges.lag - state.lag
    gap = baseline.gap - state.gap
    if (lag < 0).any() or (gap < 0).any():
        return None
    if (state.lag <= NEVER).any():  # work that waits no more may begin at any time
        return 0.0, math.inf
    return 0.0, max(float(lag.sum() + gap.sum()), known_ns)


def most_per_usual_steps(baseline: DependencyGraph, state: State) -> float:
    """Return the most that a change saves of the time that `duration_ns` measures, ns: the usual steps, or the job.

    Example:
        >>> import htagraph as hg
        >>> job = hg.load("data/demo")
        >>> most_per_usual_steps(job, hg.what_if(job).scale(factor=1).state)
        0.0
    """
    ends = possible_savings(baseline, state)
    if ends is None or ends[1] == math.inf:
        return math.inf
    steps = gain_steps(baseline)
    numbers = regular_steps(baseline, baseline.time)[0]
    if steps <= 1 or not len(numbers):
        return ends[1]
    taken = _by_vertex(baseline, state)
    step = np.repeat(baseline.activities.step, 2)
    return float(taken[np.isin(step, numbers)].sum()) * steps / len(numbers)


def _by_vertex(baseline: DependencyGraph, state: State) -> Array:
    """Return how much time is taken away right before each vertex, ns."""
    less = baseline.edges.lag - state.lag
    return np.bincount(baseline.edges.target, less, baseline.vertex_count) + (baseline.gap - state.gap)
