"""The fixed part of each transfer, which no network's rate changes: latency, scheduling and copies.

Transfers of several sizes show this part: a line through their times has it where nothing is moved. Transfers of one
size do not; then the part that is usual for their kind counts, between two ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import DEVIATIONS_OF_90, middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.recordings import hosts_of
from htagraph.graph.matches import PAIR
from htagraph.queries.weights import initial
from htagraph.whatif.links import MIN_SIZE_RATIO, Transfers, transfer_edges, transfers

__all__ = ["FixedParts", "Line", "fixed_parts", "line_through"]

_USUAL_NS = {
    "collectives of hosts": (75_000, 150_000, 300_000),
    "messages of hosts": (0, 0, 150_000),
    "devices": (0, 0, 72_000),
}
"""The fixed part of a transfer where no sizes show it, ns: at least, usually, at most. Measured: gloo's
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
    fixed = FixedParts(*np.zeros((3, len(graph.edges))))
    if not len(transfer_edges(graph)[0]):
        return fixed
    job = transfers(initial(graph))
    for values, usual in zip(fixed, _usual(graph, job), strict=True):
        values[job.edges] = usual
    alike = _alike(graph, job)
    for number in np.unique(alike):
        _set_as_shown(fixed, graph, job, alike == number)
    longest = np.maximum(graph.edges.lag, 0)
    return FixedParts(*(np.minimum(values, longest) for values in fixed))


def _set_as_shown(fixed: FixedParts, graph: DependencyGraph, job: Transfers, alike: Mask) -> None:
    """Set the fixed part of transfers that are alike as their sizes show, unless the usual part is known better."""
    lag = graph.edges.lag[job.edges]
    timed = np.flatnonzero(alike & (job.moved >= 0) & (lag > 0))
    line = line_through(job.moved[timed], lag[timed], job.collective[timed])
    rows = job.edges[timed]
    if line is None:
        return
    off = DEVIATIONS_OF_90 * line.error
    if off > (fixed.most - fixed.usual)[rows].max():
        return
    fixed.least[rows] = max(line.fixed - off, 0.0)
    fixed.usual[rows] = max(line.fixed, 0.0)
    fixed.most[rows] = max(line.fixed + off, 0.0)


def _usual(graph: DependencyGraph, job: Transfers) -> Array:
    """Return the fixed parts of transfers at least, usually and at most where no sizes show these, ns."""
    owner = graph.edges.activity[job.edges]
    on_device = graph.activities.kind[owner] == ActivityKind.COMMUNICATION
    is_message = np.array([op == PAIR for op in job.matches.op], np.bool_)
    on_host = np.where(is_message[job.collective], 1, 0)
    row = np.where(on_device, 2, on_host)
    table = np.array(list(_USUAL_NS.values()), np.float64)
    return table[row].T


def _alike(graph: DependencyGraph, job: Transfers) -> Array:
    """Return the number of the operation of each transfer, or of its operation and group where hosts are several.

    Groups of ranks on one host have the same links; links between hosts may be slower for one group than for another.
    """
    hosts = set(hosts_of(graph.traces).values())
    if len(hosts) != 1:
        return job.label
    _, operation = np.unique(np.array(job.matches.op), return_inverse=True)
    return operation[job.collective]


def line_through(moved: Array, lag: Array, collective: Array) -> Line | None:
    """Return the line through the usual times of each size; None where the sizes hardly differ.

    The error is that of medians of as many collectives, or as much more as three or more sizes lie off the line.
    """
    if not len(moved) or moved.max() < MIN_SIZE_RATIO * max(moved.min(), 1.0):
        return None
    sizes, number = np.unique(moved, return_inverse=True)
    median = np.add(*middles(lag, number)) / 2
    _, first = np.unique(number, return_index=True)
    usual = median[first]
    pairs = np.unique(np.stack([number, collective]), axis=1)
    count = np.bincount(pairs[0])  # collectives of each size
    variance = np.bincount(number, (lag - median) ** 2) / np.bincount(number)
    error = np.maximum(np.sqrt(variance / count), 1.0)
    design = np.stack([1 / error, sizes / error], axis=1)
    (fixed, per_byte), *_ = np.linalg.lstsq(design, usual / error, rcond=None)
    if per_byte <= 0:
        return None
    residual = design @ [fixed, per_byte] - usual / error
    excess = (residual**2).sum() / max(len(sizes) - 2, 1)
    covariance = np.linalg.inv(design.T @ design)
    spread = np.sqrt(covariance[0, 0] * max(excess, 1.0))
    return Line(float(fixed), float(per_byte), float(spread))
