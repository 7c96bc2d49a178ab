"""What of each transfer no network's rate changes: latency, scheduling and copies, as far as the recording shows it.

Transfers of several sizes show it: it is what a line through their times leaves where nothing is moved. Transfers of
one size do not, so that it lies between nothing and what is usual for their kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.recordings import hosts_of
from htagraph.graph.matches import PAIR
from htagraph.queries.weights import initial
from htagraph.whatif.links import MIN_SIZE_RATIO, Transfers, transfer_edges, transfers

__all__ = ["FixedParts", "Line", "fixed_parts", "line_through"]

_Z = 1.645
"""Standard deviations on each side of the mean that hold 90 % of a normal distribution. Doubled, 99.9 %."""
_USUAL_NS = {
    "collectives of hosts": (75_000, 150_000, 300_000), "messages of hosts": (0, 0, 150_000), "devices": (0, 0, 72_000),
}  # fmt: skip
"""What a transfer takes besides its bytes where no sizes show it, ns: at least, usually, at most. Measured: gloo's
collectives take 130 to 290 µs on two and three ranks of one host, a barrier 150 µs, messages up to 100 µs; all-reduces
of 2, 4 and 8 A100 47 to 74 µs (vidur, 7d47513), which is little beside most of their transfers. Doubled, collectives
of hosts that take less than 0.3 ms do not follow the network."""


class FixedParts(NamedTuple):
    """The fixed part of the transfer of each edge, ns; 0 for edges that are none."""

    least: Array
    usual: Array
    most: Array


class Line(NamedTuple):
    """A line through sizes and times."""

    fixed: float
    """Time of a transfer of no bytes, ns; below 0 where chance or another law makes it so."""
    per_byte: float
    """ns per byte."""
    error: float
    """Standard error of the fixed part, ns."""


@once
def fixed_parts(graph: DependencyGraph) -> FixedParts:
    """Return the fixed part of each transfer of matched collectives."""
    nothing = np.zeros((3, len(graph.edges)))
    if not len(transfer_edges(graph)[0]):
        return FixedParts(*nothing)
    job = transfers(initial(graph))
    lag = graph.edges.lag[job.edges]
    parts = FixedParts(*nothing)
    for values, usual in zip(parts, _usual(graph, job), strict=True):
        values[job.edges] = usual
    alike = _alike(graph, job)
    for each in np.unique(alike):
        own = np.flatnonzero((alike == each) & (job.moved >= 0) & (lag > 0))
        line = line_through(job.moved[own], lag[own], job.collective[own])
        rows = job.edges[own]
        if line is None or _Z * line.error > (parts.most - parts.usual)[rows].max():
            continue  # what is usual is known better
        for values, errors in zip(parts, (-_Z, 0, _Z), strict=True):
            values[rows] = max(line.fixed + errors * line.error, 0.0)
    return FixedParts(*(np.minimum(each, np.maximum(graph.edges.lag, 0)) for each in parts))


def _usual(graph: DependencyGraph, job: Transfers) -> Array:
    """Return what transfers take besides their bytes at least, usually and at most where no sizes show it, ns."""
    on_device = graph.activities.kind[graph.edges.activity[job.edges]] == ActivityKind.COMMUNICATION
    message = np.array([op == PAIR for op in job.matches.op], np.bool_)[job.collective]
    which = np.where(on_device, 2, np.where(message, 1, 0))
    return np.array(list(_USUAL_NS.values()), np.float64)[which].T


def _alike(graph: DependencyGraph, job: Transfers) -> Array:
    """Return the number of the operation of each transfer, or of its operation and group where hosts are several.

    Groups of ranks on one host have the same links; among hosts, those of one group may be slower than those of
    another.
    """
    operation = np.unique(np.array(job.matches.op), return_inverse=True)[1][job.collective]
    return operation if len(set(hosts_of(graph.traces).values())) == 1 else job.label


def line_through(moved: Array, lag: Array, collective: Array) -> Line | None:
    """Return the line through the usual times of each size; None where the sizes hardly differ.

    The error is that of medians of as many collectives, or as much more as three or more sizes lie off the line.
    """
    if not len(moved) or moved.max() < MIN_SIZE_RATIO * max(moved.min(), 1.0):
        return None
    sizes, group = np.unique(moved, return_inverse=True)
    usual = np.add(*middles(lag, group))[np.unique(group, return_index=True)[1]] / 2
    count = np.array([len(np.unique(collective[group == each])) for each in range(len(sizes))])
    deviation = np.sqrt(np.bincount(group, (lag - usual[group]) ** 2) / np.bincount(group))
    error = np.maximum(deviation / np.sqrt(count), 1.0)
    design = np.stack([1 / error, sizes / error], axis=1)
    (fixed, per_byte), *_ = np.linalg.lstsq(design, usual / error, rcond=None)
    off = ((design @ [fixed, per_byte] - usual / error) ** 2).sum() / max(len(sizes) - 2, 1)
    spread = np.linalg.inv(design.T @ design)[0, 0] * max(off, 1.0)
    if per_byte <= 0:
        return None
    return Line(float(fixed), float(per_byte), float(np.sqrt(spread)))
