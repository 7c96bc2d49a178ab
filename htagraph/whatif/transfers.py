"""Transfers between ranks: which edges, how many bytes, and the latency and bandwidth that explain their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import SelectionError
from htagraph.queries.weights import TRANSFERS, of_kind

if TYPE_CHECKING:
    from htagraph.graph.matches import Matches
    from htagraph.queries.weights import State

__all__ = ["Line", "Transfers", "fitted", "link_share", "transfers"]

Array: TypeAlias = npt.NDArray[Any]

_WIDE = 1.5  # sizes must differ by this factor for latency and bandwidth to be told apart


@dataclass(frozen=True, eq=False)
class Transfers:
    """The transfers of matched collectives. Arrays have an entry per transfer, a member's part of a collective."""

    edges: npt.NDArray[np.int64]
    """Whose lag the transfer is."""
    collective: npt.NDArray[np.int64]
    """Index into the columns of `matches`."""
    ranks: npt.NDArray[np.int64]
    """Members of the process group."""
    moved: npt.NDArray[np.float64]
    """Bytes that a rank's link carries, by ring algorithms; -1 where the size is unknown."""
    label: npt.NDArray[np.int64]
    """Which (group, op) it is of."""
    matches: Matches


class Line(NamedTuple):
    """How long a transfer takes: ``latency + moved * per_byte``, ns."""

    latency: float
    per_byte: float


def link_share(op: str, ranks: Array | float) -> Array:
    """Return what share of a collective's bytes a rank's link carries, by ring algorithms, as NCCL's bus bandwidth."""
    ranks = np.maximum(np.asarray(ranks, np.float64), 1.0)
    ring = (ranks - 1) / ranks
    if op == "all_reduce":
        return 2 * ring
    if op in {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}:
        return ring
    return np.zeros_like(ring) if op == "barrier" else np.ones_like(ring)


def transfers(state: State) -> Transfers:
    """Return the transfers of a state.

    Raises:
        SelectionError: no collective was matched between ranks.
    """
    graph, matches = state.graph, state.graph.matches
    edges = np.flatnonzero(of_kind(graph, *TRANSFERS) & (graph.edges.activity >= 0))
    if matches is None or not matches.count or not len(edges):
        msg = "no collective is matched between the ranks of this graph; scale_network(factor=) needs none"
        raise SelectionError(msg)
    member = np.full(len(graph.activities), -1, np.int64)
    member[matches.activity] = np.arange(len(matches.activity))
    of = member[graph.edges.activity[edges]]
    edges, of = edges[of >= 0], of[of >= 0]
    collective = matches.collective[of].astype(np.int64)
    present = np.bincount(matches.collective, minlength=matches.count)
    ranks = np.where(matches.size > 0, matches.size, present)
    labels: dict[tuple[str, str], int] = {}
    label = np.array([labels.setdefault(key, len(labels)) for key in zip(matches.group, matches.op, strict=True)])
    ops = np.array([op for _, op in labels])
    share = np.ones(matches.count)
    for op in np.unique(ops):
        mine = ops[label] == op
        share[mine] = link_share(str(op), ranks[mine])
    bytes_ = matches.bytes[of]
    moved = np.where(bytes_ >= 0, bytes_ * share[collective], -1.0)
    return Transfers(edges, collective, ranks[collective], moved, label[collective], matches)


def fitted(transfer: Transfers, lag: Array) -> list[Line | None]:
    """Return latency and time per byte of each (group, op); None where neither it nor all together have two sizes.

    Args:
        transfer: the transfers.
        lag: how long each took, ns.
    """
    known = (transfer.moved >= 0) & (lag > 0)
    every = _line(transfer.moved[known], lag[known])
    count = int(transfer.label.max(initial=-1)) + 1
    lines = []
    for label in range(count):
        mine = known & (transfer.label == label)
        lines.append(_line(transfer.moved[mine], lag[mine]) or every)
    return lines


def _line(moved: Array, lag: Array) -> Line | None:
    """Return the line of least relative errors through (bytes, time); None where the sizes hardly differ."""
    if not len(moved) or moved.max() < _WIDE * max(moved.min(), 1.0):
        return None
    constant, slope = 1 / lag, moved / lag  # (latency * constant + per_byte * slope - 1)² is the squared relative error
    if moved.min() > 0:
        latency, per_byte = np.linalg.lstsq(np.stack([constant, slope], axis=1), np.ones(len(lag)), rcond=None)[0]
    else:
        latency = float(np.median(lag[moved == 0]))
        per_byte = float(np.median((lag - latency)[moved > 0] / moved[moved > 0]))
    if per_byte <= 0:
        return Line(float(np.median(lag)), 0.0)
    return Line(0.0, float(slope.sum() / (slope**2).sum())) if latency < 0 else Line(float(latency), float(per_byte))
