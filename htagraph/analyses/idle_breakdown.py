"""Why streams, or whole ranks, are idle: by which edge of the graph the kernel that ended each pause was held up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.choices import check_choice
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.idle_cause import CAUSES, KERNEL_PAUSE_US, binding_kind, pause_cause
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["idle_breakdown"]

TABLE = Table(
    "Idle time of streams by cause",
    Col("rank device stream", "int64"),
    Col("cause", "str"),
    Col("idle_us"),
    Col("count", "int64", "pauses"),
    Col("mean_us max_us", doc="0 without pauses"),
    Col("share_percent", doc="of the stream's idle time, NaN without"),
)
RANKS = Table(
    "Idle device time by cause",
    Col("rank", "int64"),
    Col("cause", "str"),
    Col("idle_us", doc="a rank's rows sum to ``idle_us`` of `temporal_breakdown`"),
    Col("count", "int64", "pauses"),
    Col("share_percent", doc="of the time from the rank's first to its last device work; NaN if that is none"),
)


@described(TABLE, RANKS)
@rank_by_rank
def idle_breakdown(
    graph: DependencyGraph, *, by: Literal["stream", "rank"] = "stream", kernel_pause_us: float = KERNEL_PAUSE_US
) -> pd.DataFrame:
    """Return how long each stream, or each rank, was idle between its first and its last device work, by cause.

    A stream is idle from the end of all its earlier work to the start of the next; a rank is idle while none of its
    streams runs anything. The cause of a pause is that of the kernel (or copy) that ends it, by the binding edge into
    that kernel, which is the edge that allowed it to start last:

    - ``host_wait``: the LAUNCH edge, or the launch call was still running for most of the pause: the host enqueued the
      kernel too late.
    - ``kernel_wait``: another edge or none, and the pause is short: the usual pause of a device between two kernels.
    - ``other``: neither explains the pause: the kernel waited for another stream, an event, a late rank, a resource.

    Args:
        graph: the job.
        by: ``"stream"``: one row per stream and cause. ``"rank"``: one row per rank and cause; a stream that waits
            while another stream of the rank runs is not idle.
        kernel_pause_us: the longest pause, µs, that counts as the usual pause between two queued kernels.

    Returns:
        By stream: one row per rank, stream and cause, in that order, all three causes for each stream with device
        work: {columns}.

        By rank: one row per rank with device work and cause: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> sorted(set(hg.idle_breakdown(graph)["cause"]))
        ['host_wait', 'kernel_wait', 'other']
        >>> idle = hg.idle_breakdown(graph, by="rank").groupby("rank")["idle_us"].sum()
        >>> bool(abs(idle.to_numpy() - hg.temporal_breakdown(graph)["idle_us"].to_numpy()).max() < 1e-6)
        True

    Source: HTA's idle time breakdown, whose ``host_wait`` asks only whether the launch began after the pause did.
    """
    check_choice("by", by, ("stream", "rank"))
    binding = binding_kind(graph)
    columns, groups = (TABLE, _streams(graph)) if by == "stream" else (RANKS, _ranks(graph))
    rows: list[tuple[object, ...]] = []
    for keys, work in groups:
        rows += _cause_rows(graph, keys, work, binding, kernel_pause_us)
    return columns.frame(rows)


def _streams(graph: DependencyGraph) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield ((rank, device, stream), the stream's device work by start)."""
    acts = graph.activities
    lanes = [(graph.lanes[acts.lane[work[0]]], work) for work in acts.by_stream()]
    places = [((lane.rank, lane.device, lane.stream), work) for lane, work in lanes]
    yield from sorted(places, key=lambda place: place[0])


def _ranks(graph: DependencyGraph) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield ((rank,), the rank's device work by start), for ranks that have any."""
    acts = graph.activities
    for rank in graph.ranks:
        of_rank = acts.of_rank(rank)
        work = of_rank.start + np.flatnonzero(acts.on_device[of_rank])
        if len(work):
            yield (rank,), work[np.argsort(acts.start[work], kind="stable")]


def _cause_rows(
    graph: DependencyGraph, keys: tuple[int, ...], work: Array, binding: Array, kernel_pause_us: float
) -> list[tuple[object, ...]]:
    """Return a row per cause for device work that is in the order of its starts."""
    acts = graph.activities
    busy_until = np.maximum.accumulate(acts.end[work])
    free, after = busy_until[:-1], work[1:]
    pause = np.maximum(0, acts.start[after] - free)
    cause = pause_cause(graph, binding, after, free, kernel_pause_us)
    idle, window = int(pause.sum()), int(busy_until[-1] - acts.start[work[0]])
    rows: list[tuple[object, ...]] = []
    for word in CAUSES:
        pauses = pause[(cause == word) & (pause > 0)]
        total, count = int(pauses.sum()), len(pauses)
        if len(keys) > 1:
            mean, longest = total / count / 1000 if count else 0.0, int(pauses.max(initial=0)) / 1000
            rows.append((*keys, word, total / 1000, count, mean, longest, _percent(total, idle)))
        else:
            rows.append((*keys, word, total / 1000, count, _percent(total, window)))
    return rows


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else float("nan")
