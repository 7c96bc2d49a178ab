"""Where host threads stopped inside code that is quick as a rule, which points to a cause outside of that code."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import columns_of
from htagraph.queries.attribution import names_of
from htagraph.queries.interruptions import interrupted

__all__ = ["interruptions"]

TABLE = Table(
    "Interruptions of host code: stretches of ten times their usual time and more, the longest first",
    Col("rank", "int64"),
    Col("step", "int64", "-1 outside of steps"),
    Col("thread", "str"),
    Col("name", "str", "the activity that was interrupted; empty for host code that no event covers"),
    Col("before", "str", "the activity that came next on the thread"),
    Col("start_us", doc="since the job's first activity, on the common clock"),
    Col("interrupted_us", doc="how long the stretch of host code took"),
    Col("usual_us", doc="how long the same code usually takes"),
    Col("activity", "int64", "number of the interrupted activity, or of the next one where no event covers the code"),
    rank_by="interrupted_us",
)


@described(TABLE)
def interruptions(graph: DependencyGraph) -> pd.DataFrame:
    """Return where host code was interrupted: it took at least ten times as long as the same code usually does.

    An interruption is a stretch of a host thread, between two recorded moments, that lasts at least 1 ms and far longer
    than usual: longer than stretches of the same name between the same neighbours, and longer than the same stretch in
    other steps and on other ranks. Calls that wait for the device, data loaders, compilation and first calls do not
    count. If the cause were in an operator, only that operator would be long; so interruptions count only if they hit
    at least five different places, none of which has more than half of the interrupted time. A trace does not show what
    stopped a thread: another process on its core, Python's garbage collector, swapping or the profiler. The exact
    definition is at `htagraph.queries.interruptions`; ``htagraph what-if --no-interruptions`` predicts the job without
    them.

    Args:
        graph: the job.

    Returns:
        One row per interruption, by rank and time: {columns}.

    Example:
        >>> import htagraph as hg
        >>> len(hg.interruptions(hg.load("data/demo")))
        0
    """
    found = interrupted(graph)
    at = found.vertex >> 1
    start = graph.time[found.vertex] - found.length - graph.origin_ns
    return TABLE.frame({
        **columns_of(graph, at, "rank", "step"), "thread": columns_of(graph, at, "lane")["lane"],
        "name": names_of(graph, found.activity), "before": names_of(graph, np.where(found.vertex % 2, -1, at)),
        "start_us": start / 1000,
        "interrupted_us": found.length / 1000, "usual_us": found.usual / 1000,
        "activity": np.where(found.activity >= 0, found.activity, at),
    })  # fmt: skip
