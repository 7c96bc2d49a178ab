"""Transfers between ranks: their edges, their bytes, and the latency and bandwidth fitted to their times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, inverse_of
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import TRANSFERS
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import Matches
from htagraph.queries.weights import State, of_kind

__all__ = ["Transfers", "fitted", "link_share", "transfer_edges", "transfers"]


_MIN_SIZE_RATIO = 1.5
"""The least ratio of the largest to the smallest message for which latency and bandwidth are fitted.

Chosen: with sizes closer together, a few percent of noise in the times decide how they divide into latency and
bandwidth. Doubled, process groups with sizes within a factor of 3 take the line fitted to all groups, or
`network` asks for both numbers."""


@dataclass(frozen=True, eq=False)
class Transfers:
    """The transfers of matched collectives. Arrays have an entry per transfer: per member of a collective."""

    edges: npt.NDArray[np.int64]
    """The edge whose lag is the transfer."""
    collective: npt.NDArray[np.int64]
    """Index into the columns of `matches`."""
    moved: npt.NDArray[np.float64]
    """Bytes that a rank's link carries with ring algorithms; -1 where the size is unknown."""
    label: npt.NDArray[np.int64]
    """Number of its (group, op)."""
    matches: Matches
    """The matched collectives."""


def link_share(op: str, ranks: Array | float) -> Array:
    """Return the share of a collective's bytes on a rank's link with ring algorithms, as in NCCL's bus bandwidth."""
    ranks = np.maximum(np.asarray(ranks, np.float64), 1.0)
    ring = (ranks - 1) / ranks
    if op == "all_reduce":
        return 2 * ring
    if op in {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}:
        return ring
    return np.zeros_like(ring) if op == "barrier" else np.ones_like(ring)


def transfer_edges(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (the edges that are transfers of members of matched collectives, the place of each member in matches)."""
    nothing = np.zeros(0, np.int64)
    if graph.matches is None or not graph.matches.count:
        return nothing, nothing
    member = inverse_of(graph.matches.activity, len(graph.activities) + 1)  # the last is of edges without an activity
    member_of = member[graph.edges.activity]
    edges = np.flatnonzero(of_kind(graph, *TRANSFERS) & (member_of >= 0))
    return edges, member_of[edges]


def transfers(state: State) -> Transfers:
    """Return the transfers of a state."""
    matches = state.graph.matches
    edges, member_of = transfer_edges(state.graph)
    if matches is None or not len(edges):
        msg = "no collective is matched between the ranks of this graph; use scale_network(factor=) instead"
        raise SelectionError(msg)
    collective = matches.collective[member_of].astype(np.int64)
    present = np.bincount(matches.collective, minlength=matches.count)
    ranks = np.where(matches.size > 0, matches.size, present)
    labels: dict[tuple[str, str], int] = {}
    label = np.array([labels.setdefault(key, len(labels)) for key in zip(matches.group, matches.op, strict=True)])
    ops = np.array([op for _, op in labels])
    share = np.ones(matches.count)
    for op in np.unique(ops):
        of_op = ops[label] == op
        share[of_op] = link_share(str(op), ranks[of_op])
    bytes_ = matches.bytes[member_of]
    moved = np.where(bytes_ >= 0, bytes_ * share[collective], -1.0)
    return Transfers(edges, collective, moved, label[collective], matches)


def fitted(transfer: Transfers, lag: Array) -> list[tuple[float, float] | None]:
    """Return (latency in ns, ns per byte on the link) of each (group, op), fitted to its transfers.

    A (group, op) whose sizes hardly differ takes the line of all transfers; None if their sizes hardly differ either.
    """
    known = (transfer.moved >= 0) & (lag > 0)
    every = _line(transfer.moved[known], lag[known])
    count = int(transfer.label.max(initial=-1)) + 1
    lines = []
    for label in range(count):
        of_label = known & (transfer.label == label)
        lines.append(_line(transfer.moved[of_label], lag[of_label]) or every)
    return lines


def _line(moved: Array, lag: Array) -> tuple[float, float] | None:
    """Return the line with the least squared relative errors through (bytes, time); None if the sizes hardly differ."""
    if not len(moved) or moved.max() < _MIN_SIZE_RATIO * max(moved.min(), 1.0):
        return None
    constant, slope = 1 / lag, moved / lag  # (latency * constant + per_byte * slope - 1)² is the squared relative error
    if moved.min() > 0:
        latency, per_byte = np.linalg.lstsq(np.stack([constant, slope], axis=1), np.ones(len(lag)), rcond=None)[0]
    else:
        latency = float(np.median(lag[moved == 0]))
        per_byte = float(np.median((lag - latency)[moved > 0] / moved[moved > 0]))
    if per_byte <= 0:
        return float(np.median(lag)), 0.0
    return (0.0, float(slope.sum() / (slope**2).sum())) if latency < 0 else (float(latency), float(per_byte))
