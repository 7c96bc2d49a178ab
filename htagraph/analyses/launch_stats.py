"""Every launch with the device work it enqueued: the duration of the call, and how long the work waited."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import LAUNCHES, ActivityKind, of_kinds
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import columns_of
from htagraph.queries.attribution import names_of

__all__ = ["launch_stats"]

TABLE = Table(
    "Launches and their work",
    Col("rank correlation", "int64"),
    Col("launch work", "int64", "activity numbers"),
    Col("launch_name work_name work_kind", "str"),
    Col("stream step", "int64"),
    Col("launch_us work_us", doc="durations"),
    Col("delay_us", doc="from the end of the launch call to the start of the work; 0 if the work started earlier"),
    Col("short", "bool", "whether the call is not excessive, but took longer than the work that it enqueued, if any"),
    Col("excessive_runtime excessive_delay", "bool"),
)


@described(TABLE)
def launch_stats(
    graph: DependencyGraph, *, runtime_cutoff_us: float = 50.0, launch_delay_cutoff_us: float = 100.0
) -> pd.DataFrame:
    """Return one row per piece of device work and the launch that enqueued it.

    Args:
        graph: the job.
        runtime_cutoff_us: a launch call that takes longer is excessive, µs.
        launch_delay_cutoff_us: a delay above this is excessive, µs.

    Returns:
        One row per pair of a LAUNCH or GRAPH edge, by rank, time of the launch and of the work: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.launch_stats(hg.load("data/demo"))
        >>> bool((table["delay_us"] >= 0).all())
        True

    Source: HTA's kernel launch statistics, for every launching call instead of six of them.
    """
    acts = graph.activities
    pairs = graph.edges.take(of_kinds(graph.edges.kind, LAUNCHES))
    call, work = pairs.source.astype(np.int64) // 2, pairs.target.astype(np.int64) // 2
    order = np.lexsort((acts.start[work], acts.start[call], acts.rank[work]))
    call, work = call[order], work[order]
    launch_us, work_us = acts.duration[call] / 1000, acts.duration[work] / 1000
    enqueued_us = np.bincount(call, work_us, len(acts))[call]  # a graph launch enqueues many
    is_work = acts.kind[work] != ActivityKind.DEVICE_OTHER  # which records or awaits an event, in no time
    delay_us = np.maximum(0, acts.start[work] - acts.end[call]) / 1000
    return TABLE.frame({
        **columns_of(graph, work, "rank", "correlation", "stream", "step"),
        "launch": call,
        "work": work,
        "launch_name": names_of(graph, call),
        **{f"work_{word}": column for word, column in columns_of(graph, work, "name", "kind").items()},
        "launch_us": launch_us,
        "work_us": work_us,
        "delay_us": delay_us,
        "short": is_work & (launch_us <= runtime_cutoff_us) & (enqueued_us < launch_us),
        "excessive_runtime": launch_us > runtime_cutoff_us,
        "excessive_delay": delay_us > launch_delay_cutoff_us,
    })  # fmt: skip
