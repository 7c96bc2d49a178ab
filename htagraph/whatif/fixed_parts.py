"""The fixed part of each transfer, which no network's rate changes: latency, scheduling and copies.

Transfers of several sizes show this part: a line through their times has it where nothing is moved. A barrier shows
it, too, because a barrier moves nothing. Transfers of one size do not: then the part that further operations of the
same hosts show counts, and last the part that is usual for their kind, each between two ends.
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

_OF_HOSTS, _MESSAGES, _OF_DEVICES = range(3)
"""The rows of `_USUAL`."""
_USUAL = np.array([[75_000.0, 150_000.0, 300_000.0], [0.0, 0.0, 150_000.0], [0.0, 0.0, 72_000.0]])
"""The fixed part of a transfer where no times show it, ns: at least, usually, at most; a row for collectives of hosts,
for messages of hosts, and for devices. Measured: gloo's collectives take 130 to 290 µs on two and three ranks of one
host, a barrier 150 µs, messages up to 100 µs; all-reduces of 2, 4 and 8 A100 47 to 74 µs (vidur, 7d47513), which is
little beside most of their transfers. Doubled, collectives of hosts that take less than 0.3 ms do not follow the
network."""
_MORE_TURNS = 2.0
"""How many times as many turns one operation of gloo takes as another one: a ring reduces to all ranks in two rounds,
and gathers in one. Doubled, an interval of a job with one size per operation is up to twice as wide."""


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


class FixedEnds(NamedTuple):
    """The fixed part of transfers that are alike, ns."""

    least: float
    usual: float
    most: float


@once
def fixed_parts(graph: DependencyGraph) -> FixedParts:
    """Return the fixed part of each transfer of matched collectives.

    Args:
        graph: the job.

    Returns:
        For each edge, the fixed part of its transfer at least, usually and at most, in ns: never more than the edge's
        recorded time, and 0 where the edge is no transfer.

    Example:
        >>> import htagraph as hg
        >>> least, usual, most = fixed_parts(hg.load("data/demo"))
        >>> bool((least <= usual).all() and (usual <= most).all())
        True
    """
    fixed = FixedParts(*np.zeros((3, len(graph.edges))))
    if not len(transfer_edges(graph)[0]):
        return fixed
    job = transfers(initial(graph))
    row = _row_of_usual(graph, job)
    for values, usual in zip(fixed, _USUAL[row].T, strict=True):
        values[job.edges] = usual
    alike = _alike(graph, job)
    shown = dict[int, FixedEnds]()
    for number in np.unique(alike).tolist():
        edges = job.edges[alike == number]
        known_ns = float((fixed.most - fixed.usual)[edges].max())
        ends = _shown_by_times(graph, job, alike == number, known_ns)
        if ends is not None:
            shown[number] = ends
    of_hosts = set(alike[row == _OF_HOSTS].tolist())
    borrowed = _shown_by_others([ends for number, ends in shown.items() if number in of_hosts])
    if borrowed is not None:
        _set(fixed, job.edges[row == _OF_HOSTS], borrowed)
    for number, ends in shown.items():
        _set(fixed, job.edges[alike == number], ends)
    longest = np.maximum(graph.edges.lag, 0)
    return FixedParts(*(np.minimum(values, longest) for values in fixed))


def _set(fixed: FixedParts, edges: Array, ends: FixedEnds) -> None:
    """Set the fixed part of the transfers of some edges."""
    for values, end in zip(fixed, ends, strict=True):
        values[edges] = end


def _shown_by_times(graph: DependencyGraph, job: Transfers, alike: Mask, known_ns: float) -> FixedEnds | None:
    """Return the fixed part that the times of transfers of one operation show.

    None if the transfers show none, or show it no better than the usual part is known, to `known_ns`.
    """
    lag = graph.edges.lag[job.edges]
    timed = alike & (lag > 0)
    if not timed.any():
        return None
    first = int(np.flatnonzero(timed)[0])
    if job.matches.op[job.collective[first]] == "barrier":
        least, usual, most = np.quantile(lag[timed], [0.05, 0.5, 0.95])
        return FixedEnds(float(least), float(usual), float(most)) if most - usual <= known_ns else None
    sized = timed & (job.moved >= 0)
    line = line_through(job.moved[sized], lag[sized], job.collective[sized])
    if line is None:
        return None
    off = DEVIATIONS_OF_90 * line.error
    if off > known_ns:
        return None
    return FixedEnds(max(line.fixed - off, 0.0), max(line.fixed, 0.0), max(line.fixed + off, 0.0))


def _shown_by_others(shown: list[FixedEnds]) -> FixedEnds | None:
    """Return the fixed part of host collectives by what further operations show; None if no operation shows any.

    gloo's operations differ in their turns among the ranks: a reduction to all ranks takes twice as many as a gather.
    """
    if not shown:
        return None
    least = min(ends.least for ends in shown) / _MORE_TURNS
    usual = float(np.median([ends.usual for ends in shown]))
    most = max(ends.most for ends in shown) * _MORE_TURNS
    return FixedEnds(least, usual, most)


def _row_of_usual(graph: DependencyGraph, job: Transfers) -> Array:
    """Return the row of `_USUAL` that each transfer has."""
    owner = graph.edges.activity[job.edges]
    on_device = graph.activities.kind[owner] == ActivityKind.COMMUNICATION
    is_message = np.array([op == PAIR for op in job.matches.op], np.bool_)
    on_host = np.where(is_message[job.collective], _MESSAGES, _OF_HOSTS)
    return np.where(on_device, _OF_DEVICES, on_host)


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
    """Return the line through the usual times of each size.

    The error is that of medians of as many collectives, or as much more as three or more sizes lie off the line.

    Args:
        moved: bytes that each transfer moves.
        lag: time of each transfer, ns.
        collective: number of the collective that each transfer belongs to.

    Returns:
        The line; None where the sizes hardly differ, or where more bytes take no longer.

    Example:
        >>> line = line_through(np.array([1e3, 1e3, 3e3, 3e3]), np.array([30.0, 30.0, 50.0, 50.0]), np.arange(4))
        >>> line is not None and round(line.fixed, 6)
        20.0
    """
    if not len(moved) or moved.max() < MIN_SIZE_RATIO * max(moved.min(), 1.0):
        return None
    sizes, number = np.unique(moved, return_inverse=True)
    median = np.add(*middles(lag, number)) / 2
    _, first = np.unique(number, return_index=True)
    usual = median[first]
    error = _error_of_medians(lag - median, number, collective)
    design = np.stack([1 / error, sizes / error], axis=1)
    solution, *_ = np.linalg.lstsq(design, usual / error, rcond=None)
    fixed, per_byte = solution.tolist()
    if per_byte <= 0:
        return None
    residual = design @ solution - usual / error
    excess = (residual**2).sum() / max(len(sizes) - 2, 1)
    covariance = np.linalg.inv(design.T @ design)
    spread = np.sqrt(covariance[0, 0] * max(excess, 1.0))
    return Line(fixed, per_byte, float(spread))


def _error_of_medians(off: Array, number: Array, collective: Array) -> Array:
    """Return the standard error of the usual time of each size, ns.

    Args:
        off: how far each transfer's time is from the usual time of its size, ns.
        number: number of the size of each transfer.
        collective: number of the collective that each transfer belongs to.

    Returns:
        One error per size, at least 1 ns, which is how finely times are recorded.
    """
    pairs = np.unique(np.stack([number, collective]), axis=1)
    collectives_of_size = np.bincount(pairs[0])
    variance = np.bincount(number, off**2) / np.bincount(number)
    return np.maximum(np.sqrt(variance / collectives_of_size), 1.0)
