"""Waits for data that are made elsewhere: by a data loader, or by something outside of the recording."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Mask
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.core.naming import has_loader_workers
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import in_data_loader
from htagraph.queries.weights import OwnTime, State, here, of_kind

__all__ = ["fetch_time", "is_hidden", "loader_time", "outside_time", "outside_waits"]


def outside_waits(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the edges by which threads wait for something outside of the recording that is no data loader.

    Example:
        >>> import htagraph as hg
        >>> len(outside_waits(hg.load("data/demo")))
        0
    """
    waits = np.flatnonzero(of_kind(graph, EdgeKind.OUTSIDE))
    owner = graph.edges.activity[waits]
    return waits[~in_data_loader(graph, owner)]


def loader_time(state: State, criteria: Mapping[str, Any]) -> OwnTime:
    """Return the waits for the data loader, with the host work inside them where the loader has no workers.

    Where workers limit the job, that includes the time that they take per batch, which is longer than the wait.

    Raises:
        SelectionError: nothing waits for a data loader, or a criterion is neither rank nor step.
    """
    graph = state.graph
    edges = graph.edges
    selected = _selected(graph, criteria, "waits for the data loader")
    waits = of_kind(graph, EdgeKind.DATALOADER, EdgeKind.OUTSIDE)
    waits[outside_waits(graph)] = False
    waits &= selected[edges.target >> 1]
    inside = _inside_loaders(graph, waits, criteria)
    rows = np.flatnonzero(waits | (of_kind(graph, EdgeKind.BODY) & inside[edges.activity]))
    gaps = np.flatnonzero((graph.gap_kind == GapKind.DATA_WAIT) & np.repeat(selected, 2))
    if not len(rows) and not len(gaps):
        msg = "no waits for a data loader in this graph: they are recognized by the name of the DataLoader's `__next__`"
        raise SelectionError(msg)
    return OwnTime(rows, np.zeros(len(rows), np.int64), gaps)


def _inside_loaders(graph: DependencyGraph, waits: Mask, criteria: Mapping[str, Any]) -> Mask:
    """Return which activities of the host are inside the data loaders that own some edges; one entry more, False.

    Args:
        graph: the job.
        waits: the edges.
        criteria: the ranks and steps to look into.
    """
    inside = np.zeros(len(graph.activities) + 1, np.bool_)
    loads = waits & of_kind(graph, EdgeKind.DATALOADER)
    owner = graph.edges.activity[loads]
    for name in np.unique(graph.activities.name[owner]):
        loader = glob.escape(graph.names[name])
        inside[graph.select(op=loader, kind="host", **criteria).activities] = True
    return inside


def outside_time(state: State, criteria: Mapping[str, Any]) -> OwnTime:
    """Return the waits for something outside of the recording; a data loader's are `loader_time`.

    Raises:
        SelectionError: nothing waits for something outside, or a criterion is neither rank nor step.
    """
    graph = state.graph
    selected = _selected(graph, criteria, "waits for something outside of the recording")
    rows = outside_waits(graph)
    rows = rows[selected[graph.edges.target[rows] >> 1]]
    if not len(rows):
        msg = "no waits for something outside of the recording: they are inferred where a thread keeps another's pace"
        raise SelectionError(msg)
    nothing = np.zeros(0, np.int64)
    return OwnTime(rows, np.zeros(len(rows), np.int64), nothing)


def fetch_time(state: State) -> OwnTime:
    """Return all waits for data loaders, and for something outside of the recording; empty where a job has none."""
    nothing = np.zeros(0, np.int64)
    edges = nothing
    gaps = nothing
    for select in (loader_time, outside_time):
        try:
            time = select(state, {})
        except SelectionError:  # the job has no waits of this kind
            continue
        edges = np.union1d(edges, time.edges)
        gaps = np.union1d(gaps, time.gaps)
    return OwnTime(edges, np.zeros(len(edges), np.int64), gaps)


def _selected(graph: DependencyGraph, criteria: Mapping[str, Any], waits: str) -> Mask:
    """Return which activities are of the ranks and steps in the criteria.

    Args:
        graph: the job.
        criteria: ``rank``, ``step``, and nothing else.
        waits: the waits to select, in words.

    Raises:
        SelectionError: a criterion is another one, or a rank or step is not in the graph.
    """
    unknown = sorted(set(criteria) - {"rank", "step"})
    if unknown:
        msg = f"{unknown[0]}=: {waits} are selected by rank and step only"
        raise SelectionError(msg)
    graph.select(**criteria)  # raises for ranks and steps that are not in the graph
    return here(graph, dict(criteria))


def is_hidden(graph: DependencyGraph, time: OwnTime) -> bool:
    """Return whether some time is that of a loader whose workers had each batch ready when it was asked for."""
    edges = graph.edges
    names = [graph.names[name] for name in np.unique(graph.activities.name[edges.activity[time.edges]])]
    return any(map(has_loader_workers, names)) and EdgeKind.OUTSIDE not in edges.kind[time.edges]
