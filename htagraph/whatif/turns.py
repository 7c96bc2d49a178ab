"""Turns as a reading: work that shared cores or an interpreter with other work may have been slower for that."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import dag_of
from htagraph.graph.evidence.turns import Turns, turns_of_cores, turns_of_interpreters
from htagraph.queries.weights import State
from htagraph.whatif.interval_cause import IntervalCause

__all__ = ["moments_in_turns", "takes_turns"]


def takes_turns(graph: DependencyGraph) -> dict[IntervalCause, Turns]:
    """Return the work of a job that may have taken turns, by the cause of an interval's width."""
    by_cause = {
        IntervalCause.SHARED_CORES: turns_of_cores(graph),
        IntervalCause.SHARED_INTERPRETER: turns_of_interpreters(graph),
    }
    return {cause: turns for cause, turns in by_cause.items() if turns is not None}


def moments_in_turns(state: State) -> dict[IntervalCause, Array]:
    """Return when each vertex of a changed job happens if work takes turns, ns on the common clock.

    Args:
        state: the changed job.

    Returns:
        The moments by the cause of an interval's width; nothing where no work takes turns.
    """
    return {cause: _moments(state, turns) for cause, turns in takes_turns(state.graph).items()}


def _moments(state: State, turns: Turns) -> Array:
    """Return when each vertex happens if some work takes turns, ns on the common clock."""
    from htagraph.core import shared_turns

    graph = state.graph
    recorded = np.concatenate((graph.edges.lag, graph.gap))
    predicted = np.concatenate((state.lag, state.gap))
    factor = np.maximum(predicted, 0) / np.maximum(recorded, 1)
    origin_ns = int(state.head.min())
    dag = dag_of(graph, state.lag, state.gap, state.head - origin_ns)
    return shared_turns.moments(dag, turns.users, turns.demand * factor) + origin_ns
