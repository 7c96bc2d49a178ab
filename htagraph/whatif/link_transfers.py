"""Transfers by the link that they go over: which overlap, and how long each would take alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import TRANSFERS, ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import of_kind

if TYPE_CHECKING:
    from htagraph.graph.matches import Matches

__all__ = ["KINDS", "LinkTransfers", "Sharing", "link_transfers", "places_of_links"]


KINDS = (ActivityKind.HOST_COMMUNICATION, ActivityKind.COMMUNICATION)


class Sharing(Enum):
    """How transfers that overlap on a link share it."""

    NONE = "transfers do not slow each other down"
    EQUAL = "transfers get equal shares of the link"
    IN_TURN = "the link serves one transfer after the other"


@dataclass(frozen=True, eq=False)
class LinkTransfers:
    """The transfers of one kind of communication that have known partners."""

    edges: npt.NDArray[np.int64]
    """The edges whose lags they are."""
    start: Array
    """Of each edge: when it began, ns since the job did."""
    lag: npt.NDArray[np.int64]
    """Of each edge: how long it took, ns."""
    transfer: npt.NDArray[np.int64]
    """Of each edge: the transfer."""
    key: Array
    """Of each transfer: its class; those of one class move as much."""
    operation: Array
    """Of each transfer: the number of its group and operation."""
    size: Array
    """Of each transfer: how much it moves, bytes; -1 if unknown."""
    link_offsets: npt.NDArray[np.int64]
    link_ids: npt.NDArray[np.int64]

    def alone(self, sharing: Sharing) -> Array:
        """Return how long each edge would have taken alone in the recording, ns."""
        return self._alone_equal if sharing is Sharing.EQUAL else self._alone(sharing)

    @cached_property
    def _alone_equal(self) -> Array:
        return self._alone(Sharing.EQUAL)

    def _alone(self, sharing: Sharing) -> Array:
        lag = np.maximum(self.lag, 0).astype(np.float64)
        if sharing is Sharing.NONE:
            return lag
        from htagraph.core import shared_links  # numba takes a moment to load

        start = self.start.astype(np.float64)
        links = self.link_offsets, self.link_ids, int(sharing is Sharing.IN_TURN)
        return np.asarray(shared_links.work_alone(start, start + lag, self.transfer, *links))

    @cached_property
    def overlapped(self) -> bool:
        """Whether some of them overlapped on one link in the recording."""
        return self.overlap(self.start, self.lag)

    def overlap(self, start: Array, lag: Array) -> bool:
        """Return whether some overlap on one link, given the start of each edge since the job's and its lag, ns."""
        count = len(self.link_offsets) - 1
        first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        np.minimum.at(first, self.transfer, start)
        np.maximum.at(last, self.transfer, start + np.maximum(lag, 0))
        of_link = np.repeat(np.arange(count), np.diff(self.link_offsets))
        start, end = first[of_link], last[of_link]
        order = np.lexsort((start, self.link_ids))
        apart = self.link_ids[order] * (int(end.max(initial=0)) + 1)  # links lie one behind the other
        return bool((np.maximum.accumulate(end[order] + apart)[:-1] > (start[order] + apart)[1:]).any())


_KNOWN: WeakKeyDictionary[DependencyGraph, dict[ActivityKind, LinkTransfers | None]] = WeakKeyDictionary()
"""The transfers of graphs that are in use: many predictions are made from one graph."""


def link_transfers(graph: DependencyGraph, kind: ActivityKind) -> LinkTransfers | None:
    """Return the transfers of one kind of communication; None if there are fewer than two."""
    known = _KNOWN.setdefault(graph, {})
    if kind not in known:
        known[kind] = _anew(graph, kind)
    return known[kind]


def _anew(graph: DependencyGraph, kind: ActivityKind) -> LinkTransfers | None:
    matches, edges = graph.matches, graph.edges
    if matches is None or not matches.count:
        return None
    collective = np.full(len(graph.activities) + 1, -1, np.int64)
    collective[matches.activity] = matches.collective
    rows = np.flatnonzero(of_kind(graph, *TRANSFERS) & (collective[edges.activity] >= 0))
    rows = rows[graph.activities.kind[edges.activity[rows]] == kind]
    number, transfer = np.unique(collective[edges.activity[rows]], return_inverse=True)
    if len(number) < 2:
        return None
    place = places_of_links(graph, kind)[graph.activities.rank[matches.activity]]
    pairs = np.unique(np.stack([matches.collective, place]), axis=1)
    pairs = pairs[:, np.isin(pairs[0], number)]
    offsets = np.concatenate((np.searchsorted(pairs[0], number), [pairs.shape[1]]))
    start = graph.time[edges.source[rows]] - graph.origin_ns
    classes, operation, size = (column[number] for column in _classes(graph, matches))
    return LinkTransfers(rows, start, edges.lag[rows], transfer.ravel(), classes, operation, size, offsets, pairs[1])


def _classes(graph: DependencyGraph, matches: Matches) -> tuple[Array, Array, Array]:
    """Return (class, group and operation, size in bytes or -1) of each collective; those of a class move as much.

    Where sizes are unknown, those at one place in the sequence of a step count as one size.
    """
    size = np.full(matches.count, -1, np.int64)
    np.maximum.at(size, matches.collective, matches.bytes)
    start = np.full(matches.count, np.iinfo(np.int64).max)
    step = np.full(matches.count, -1, np.int64)
    np.minimum.at(start, matches.collective, graph.time[2 * matches.activity])
    np.maximum.at(step, matches.collective, graph.activities.step[matches.activity])
    label = {key: n for n, key in enumerate(dict.fromkeys(zip(matches.group, matches.op, strict=True)))}
    name = np.array([label[key] for key in zip(matches.group, matches.op, strict=True)], np.int64)
    order = np.lexsort((start, step, name))
    opens = np.ones(len(order), np.bool_)
    opens[1:] = (np.diff(step[order]) != 0) | (np.diff(name[order]) != 0)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.maximum.accumulate(np.where(opens, np.arange(len(order)), 0))
    _, number = np.unique(np.stack([name, np.where(size >= 0, size, -1 - position)]), axis=1, return_inverse=True)
    return number.ravel(), name, size


def places_of_links(graph: DependencyGraph, kind: ActivityKind) -> npt.NDArray[np.int64]:
    """Return for each rank, by its number, the number of its link.

    Devices have a link each; threads share that of their host, or of their rank where hosts are not known.
    """
    ranks = graph.ranks
    names = [getattr(getattr(graph.traces.get(rank), "header", None), "host_name", None) for rank in ranks]
    place = np.arange(max(ranks, default=0) + 2)
    if all(names) and kind == ActivityKind.HOST_COMMUNICATION:
        hosts = {name: number for number, name in enumerate(dict.fromkeys(names))}
        for rank, name in zip(ranks, names, strict=True):
            place[rank] = hosts[name]
    return place
