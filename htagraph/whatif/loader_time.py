"""The time that a job spends waiting for its data loader."""

from __future__ import annotations

import glob
from typing import Any

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.queries.weights import OwnTime, State, here, of_kind

__all__ = ["loader_time"]


def loader_time(state: State, criteria: dict[str, Any]) -> OwnTime:
    """Return the waits for the data loader, with the host work inside them where the loader has no workers.

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
