"""The time of a job's data loader: its waits for batches, and what the loader's workers take for them."""

from __future__ import annotations

import glob
from typing import Any

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind, GapKind, Provenance
from htagraph.core.naming import has_loader_workers
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import OwnTime, State, here, of_kind

__all__ = ["is_hidden", "loader_time"]


def loader_time(state: State, criteria: dict[str, Any]) -> OwnTime:
    """Return the waits for the data loader, with the host work inside them where the loader has no workers.

    Where workers limit the job, that includes the time that they take per batch, which is longer than the wait.

    Args:
        state: the weights so far.
        criteria: ``rank`` and ``step``, as `DependencyGraph.select` takes them.

    Raises:
        SelectionError: a rank or step is not in the graph, another criterion is given, or there is no data loader.
    """
    graph = state.graph
    edges = graph.edges
    other = sorted(set(criteria) - {"rank", "step", "name", "op"})
    if other:
        msg = f"{other[0]}=: waits for the data loader are selected by rank and step only"
        raise SelectionError(msg)
    graph.select(**criteria)  # raises for ranks and steps that are not in the graph
    selected = here(graph, criteria)
    waits = of_kind(graph, EdgeKind.DATALOADER) & selected[edges.target >> 1]
    names = np.unique(graph.activities.name[edges.activity[waits]])
    inside = np.zeros(len(graph.activities) + 1, np.bool_)
    for name in names:  # few: one per kind of loader
        rows = graph.select(op=glob.escape(graph.names[name]), kind="host", **criteria).activities
        inside[rows] = True
    rows = np.flatnonzero(waits | (of_kind(graph, EdgeKind.BODY) & inside[edges.activity]))
    gaps = np.flatnonzero((graph.gap_kind == GapKind.DATA_WAIT) & np.repeat(selected, 2))
    if not len(rows) and not len(gaps):
        msg = "no waits for a data loader in this graph: they are recognized by the name of the DataLoader's `__next__`"
        raise SelectionError(msg)
    return OwnTime(rows, np.zeros(len(rows), np.int64), gaps)


def is_hidden(graph: DependencyGraph, time: OwnTime) -> bool:
    """Return whether some time is that of a loader whose workers had each batch ready when it was asked for.

    Args:
        graph: the graph.
        time: of its data loader.
    """
    edges = graph.edges
    names = [graph.names[name] for name in np.unique(graph.activities.name[edges.activity[time.edges]])]
    waited = (edges.kind[time.edges] == EdgeKind.DATALOADER) & (edges.provenance[time.edges] == Provenance.INFERRED)
    return any(map(has_loader_workers, names)) and not waited.any()
