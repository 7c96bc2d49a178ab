"""Why streams, or whole ranks, are idle: by which edge of the graph the kernel that ended each pause was held up."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.statistics import summed
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.pauses import CAUSES, KERNEL_PAUSE_US
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["idle_breakdown"]

TABLE = Table(
    "Idle time of streams by cause",
    Col("rank device stream", "int64"),
    Col("cause", "str"),
    Col("idle_us"),
    Col("count", "int64", "number of pauses"),
    Col("mean_us max_us", doc="0 without pauses"),
    Col("share_percent", doc="share of the stream's idle time; NaN without idle time"),
)
RANKS = Table(
    "Idle device time by cause",
    Col("rank", "int64"),
    Col("cause", "str"),
    Col("idle_us", doc="the rows of a rank with one device sum to ``idle_us`` of `temporal_breakdown`"),
    Col("count", "int64", "number of pauses"),
    Col(
        "share_percent",
        doc="share of the time from the devices' first to their last work; NaN if that time is 0",
    ),
)


@described(TABLE, RANKS)
@rank_by_rank
def idle_breakdown(
    graph: DependencyGraph, *, by: Literal["stream", "rank"] = "stream", kernel_pause_us: float = KERNEL_PAUSE_US
) -> pd.DataFrame:
    """Return how long each stream, or each rank, was idle between its first and its last device work, by cause.

    A stream is idle from the end of all its earlier work to the start of the next; a device is idle while none of its
    streams runs anything, and a rank as long as its devices are, summed. The cause of a pause follows from the binding
    edge into the kernel (or copy) that ends the pause: the edge that allowed this kernel to start last.

    - ``host_wait``: the LAUNCH edge is binding, or the launch call was still running for most of the pause: the host
      enqueued the kernel too late.
    - ``kernel_wait``: another edge or none is binding, and the pause is short: the usual pause of a device between two
      kernels.
    - ``other``: neither explains the pause: the kernel waited for another stream, an event, a late rank, a resource.

    Args:
        graph: the job.
        by: ``"stream"``: one row per stream and cause. ``"rank"``: one row per rank and cause; a stream that waits
            while another stream of the device runs is not idle.
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
    table, pauses = (TABLE, graph.pauses) if by == "stream" else (RANKS, graph.device_pauses)
    places = pauses.places
    group_of = np.arange(len(places))
    window = pauses.window
    if by == "rank":  # all devices of a rank
        places, group_of = np.unique(pauses.places[:, :1], axis=0, return_inverse=True)
        group_of = group_of.ravel()
        window = np.bincount(group_of, pauses.window, len(places))
    count = len(places)
    some = np.flatnonzero(pauses.length)
    group = group_of[pauses.place[some]] * len(CAUSES) + pauses.causes(kernel_pause_us)[some]
    idle = summed(pauses.length[some], group, count * len(CAUSES))
    of_stream = np.bincount(group_of[pauses.place], pauses.length, count)  # exact: sums of ns below 2^53
    whole = np.repeat(of_stream if by == "stream" else window, len(CAUSES))
    keys = dict(zip(table.types, np.repeat(places, len(CAUSES), axis=0).T, strict=False))
    figures = {
        "cause": np.tile(np.array(CAUSES, object), count), "idle_us": idle["sum"] / 1000, "count": idle["count"],
        "mean_us": np.nan_to_num(idle["mean"]) / 1000, "max_us": np.nan_to_num(idle["max"]) / 1000,
        "share_percent": 100 * idle["sum"] / np.where(whole > 0, whole, np.nan),
    }  # fmt: skip
    return table.frame({**keys, **figures})
