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
    """Return the waits for the data loader, and what the host does inside them where the loader has no workers."""
    graph = state.graph
    edges = graph.edges
    other = sorted(set(criteria) - {"rank", "step", "name", "op"})
    if other:
        msg = f"{other[0]}=: waits for a data loader are chosen by rank and step"
        raise SelectionError(msg)
    graph.select(**criteria)  # refuses ranks and steps that are not there
    mine = here(graph, criteria)
    waits = of_kind(graph, EdgeKind.DATALOADER) & mine[edges.target >> 1]
    names = np.unique(graph.activities.name[edges.activity[waits]])
    inside = np.zeros(len(graph.activities) + 1, np.bool_)
    for name in names:  # a handful: kinds of loaders
        rows = graph.select(op=glob.escape(graph.names[name]), kind="host", **criteria).activities
        inside[rows] = True
    rows = np.flatnonzero(waits | (of_kind(graph, EdgeKind.BODY) & inside[edges.activity]))
    gaps = np.flatnonzero((graph.gap_kind == GapKind.DATA_WAIT) & np.repeat(mine, 2))
    if not len(rows) and not len(gaps):
        msg = "no data loader in this graph: its waits are known by the name of the DataLoader's `__next__`"
        raise SelectionError(msg)
    return OwnTime(rows, np.zeros(len(rows), np.int64), gaps)
