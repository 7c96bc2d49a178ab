"""Every pause of every stream: the kernel before it, the kernel that ended it, and its cause."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, texts_of
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.pauses import CAUSES, KERNEL_PAUSE_US
from htagraph.queries.attribution import names_of

__all__ = ["idle_intervals"]

TABLE = Table(
    "Longest idle intervals",
    Col("rank device stream", "int64"),
    Col("step", "int64", "step of the work after the pause; -1 outside steps"),
    Col("before after", "int64", "activity numbers: the work that started before, and the one that ended the pause"),
    Col("before_name after_name", "str"),
    Col("start_us", doc="when all earlier work of the stream had ended, since the job's first activity"),
    Col(
        "pause_us", doc="from ``start_us`` to the start of the next work; 0 where both works overlap", heading="idle_us"
    ),
    Col("gap_us", doc="from the end of ``before`` to the start of ``after``; negative where both overlap"),
    Col("launch", "int64", "activity number of the launch that enqueued ``after``; -1 if unknown"),
    Col("launch_late_us", doc="how long after ``start_us`` the launch began; negative if earlier, NaN if unknown"),
    Col("cause", "str", "as in `idle_breakdown`"),
    rank_by="pause_us",
)


@described(TABLE)
def idle_intervals(
    graph: DependencyGraph, *, kernel_pause_us: float = KERNEL_PAUSE_US, longest: int | None = None
) -> pd.DataFrame:
    """Return one row for each piece of device work that follows another on its stream, and the pause between them.

    The pauses of a stream sum to its rows of `idle_breakdown`; a row with ``pause_us`` 0 is no pause.

    Args:
        graph: the job.
        kernel_pause_us: the longest pause, µs, that counts as the usual pause between two queued kernels.
        longest: only so many of the longest pauses, the longest first; they are all that is computed.

    Returns:
        By rank, device, stream and time: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.idle_intervals(hg.load("data/demo"))
        >>> bool((table["pause_us"] >= table["gap_us"]).any()), bool((table["pause_us"] >= 0).all())
        (True, True)

    Source: HTA's idle time breakdown, interval by interval.
    """
    acts, pauses = graph.activities, graph.pauses
    rows: Array | slice = slice(None)
    if longest is not None:
        rows = np.flatnonzero(pauses.length > 0)
        rows = rows[np.argsort(-pauses.length[rows], kind="stable")[:longest]]
    before, after = pauses.before[rows], pauses.after[rows]
    launch = acts.cause[after].astype(np.int64)
    places = pd.DataFrame(pauses.places[pauses.place[rows]], columns=["rank", "device", "stream"])
    table = places.assign(
        step=acts.step[after],
        before=before,
        after=after,
        before_name=names_of(graph, before),
        after_name=names_of(graph, after),
        start_us=(pauses.begin[rows] - graph.origin_ns) / 1000,
        pause_us=pauses.length[rows] / 1000,
        gap_us=(acts.start[after] - acts.end[before]) / 1000,
        launch=launch,
        launch_late_us=np.where(launch >= 0, acts.start[launch] - pauses.free[rows], np.nan) / 1000,
        cause=texts_of(CAUSES, pauses.causes(kernel_pause_us)[rows]),
    )
    return TABLE.frame(table)
