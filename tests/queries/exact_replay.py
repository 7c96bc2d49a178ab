"""The oracle of skeletons: a replay of the whole graph with factors of classes, whose sums are rounded once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph import DependencyGraph
from htagraph.core import traverse
from htagraph.queries.time_classes import Classes, Factors, WeightedPaths, as_nanoseconds, paths_of, state_of
from htagraph.queries.weights import State


def replay_with_factors(job: DependencyGraph | State, classes: Classes, factors: Factors) -> npt.NDArray[np.int64]:
    """Return the moment of each vertex with the time of classes multiplied, ns on the common clock."""
    return times_on_paths(paths_of(job, classes), factors)[: state_of(job).graph.vertex_count]


def times_on_paths(paths: WeightedPaths, factors: Factors | None = None) -> npt.NDArray[np.int64]:
    """Return the moment of each vertex, ns on the common clock."""
    count, weights = len(paths.vertex), paths.weights
    numerators, unit = paths.classes.numerators(factors)
    vectors = np.zeros((len(weights.base), len(numerators)), np.int64)
    vectors[:, 0] = weights.base
    edge = np.repeat(np.arange(len(weights.base)), np.diff(weights.offsets))
    np.add.at(vectors, (edge, weights.component), weights.amount)
    offsets, entering = traverse.counting_order(paths.target, count)
    nothing = np.zeros(count, np.int64)
    time = traverse.schedule(paths.order, offsets, entering, paths.source, vectors @ numerators, nothing, nothing)
    return paths.origin_ns + as_nanoseconds(time, unit)
