"""How late each rank starts the collective in which the ranks differ most: HTA's hint at a straggler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import columns_of

__all__ = ["late_starts"]

TABLE = Table(
    "Late starts",
    Col("rank step stream", "int64"),
    Col("kernel", "str"),
    Col("start_us", doc="on the common clock, since the job's first activity"),
    Col("duration_us"),
    Col("late_us", doc="how much later the rank starts than the first rank in the same step"),
    Col("normalized_start", doc="start since the first start in any step, divided by the mean step time"),
)
_PLACE = ["stream", "name"]


@described(TABLE)
def late_starts(
    graph: DependencyGraph, *, steps: int | Sequence[int] | None = None, least_share: float = 0.01
) -> pd.DataFrame:
    """Return when each rank started, in each step, the last communication kernel of the sort that differs most.

    Ranks leave a collective together: the rank that starts the collective last kept the other ranks waiting. For each
    rank, stream, step and name, the last communication kernel that took at least `least_share` of a mean step counts.
    The result shows the stream and name whose duration differs most between ranks (by the mean over steps of the
    standard deviation). The mean step is the time from the first start to the last end in the steps, divided by the
    number of steps.

    `htagraph.stragglers` uses the dependencies between ranks to find which rank is slow, and where.

    Args:
        graph: the job.
        steps: N of ProfilerStep#N; all if not given.
        least_share: the share of a mean step that a kernel must take at least.

    Returns:
        One row per rank and step, in that order; none if fewer than two ranks have such a kernel in a step:
        {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.late_starts(hg.load("data/demo"))
        >>> bool((table["late_us"] >= 0).all())
        True

    Source: HTA's potential stragglers, for communication kernels of every name and stream.
    """
    acts, time = graph.activities, graph.time
    inside = graph.select(step=list(graph.steps) if steps is None else steps).activities
    inside = inside[acts.step[inside] >= 0]
    if not len(inside):
        return TABLE.frame()
    first = time[2 * inside].min()
    mean_step = (time[2 * inside + 1].max() - first) / len(np.unique(acts.step[inside]))
    some = inside[(acts.kind[inside] == ActivityKind.COMMUNICATION)]
    some = some[(acts.duration[some] >= least_share * mean_step) & (acts.duration[some] > 0)]
    some = some[np.argsort(time[2 * some], kind="stable")]
    kernels = pd.DataFrame({
        **columns_of(graph, some, "rank", "step", "stream", "name", "start_us", "duration_us"),
        "normalized_start": (time[2 * some] - first) / max(mean_step, 1),
    }).drop_duplicates(["rank", "stream", "step", "name"], keep="last")  # fmt: skip
    spread = kernels.groupby([*_PLACE, "step"])["duration_us"].std().groupby(_PLACE).mean().dropna()
    most = spread.reset_index().iloc[spread.argmax() : spread.argmax() + 1] if len(spread) else kernels.head(0)
    table = kernels.merge(most[_PLACE], on=_PLACE).sort_values(["rank", "step"])
    table["late_us"] = table["start_us"] - table.groupby("step")["start_us"].transform("min")
    return TABLE.frame(table.rename(columns={"name": "kernel"})).reset_index(drop=True)
