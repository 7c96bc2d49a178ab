"""Which operators had allocated the memory in use at the peak."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import memory_events
from htagraph.trace.profiler_files.memory_snapshot import lifetimes

__all__ = ["at_peak"]

TABLE = Table(
    "What held memory at the peak",
    Col("rank", "int64"),
    Col("device", "str"),
    Col("name", "str", "innermost operator, annotation, step or Python frame that allocated the memory; may be empty"),
    Col("known", "bool", "False for the row of everything allocated before the recording began"),
    Col("bytes", "int64"),
    Col("allocations", "int64", "number of allocations; 0 where unknown"),
    Col("share_percent", doc="share of the peak; the rows sum to 100"),
)


@described(TABLE)
def at_peak(graph: DependencyGraph) -> pd.DataFrame:
    """Return the memory in use on each device at its peak, by the operator that allocated it.

    Args:
        graph: the job.

    Returns:
        By rank, device and bytes, most first: {columns}.

    Example:
        >>> import htagraph as hg
        >>> len(hg.memory.at_peak(hg.load("data/demo")))
        0

    Source: torch.profiler's ``[memory]`` events; HTA does not read them.
    """
    events = memory_events(graph)
    parts = [
        _of_device(of_device.reset_index(drop=True)) for _, of_device in events.groupby(["rank", "device"], sort=False)
    ]
    return TABLE.frame(pd.concat(parts, ignore_index=True) if parts else ())


def _of_device(events: pd.DataFrame) -> pd.DataFrame:
    code, names = pd.factorize(events["name"])
    history = pd.DataFrame({
        "device": 0, "address": events["address"], "bytes": events["delta_bytes"], "stack": code,
        "action": np.where(events["delta_bytes"] > 0, "alloc", "free"),
    })  # fmt: skip
    made = lifetimes(history, history.iloc[:0].assign(requested_bytes=0), ("alloc",), ("free",))
    peak = int(np.argmax(events["allocated_bytes"]))
    alive = made[(made["born"] >= 0) & (made["born"] <= peak) & (made["died"] > peak)]
    table = alive.groupby("stack").agg(bytes=("bytes", "sum"), allocations=("bytes", "count"))
    table["name"] = np.asarray(names, object)[table.index]
    table["known"] = True
    whole = int(events["allocated_bytes"][peak])
    older = pd.DataFrame({"bytes": [whole - table["bytes"].sum()], "allocations": 0, "name": "", "known": False})
    table = pd.concat([table, older[older["bytes"] != 0]], ignore_index=True)
    table = table.sort_values(["bytes", "name"], ascending=[False, True], ignore_index=True)
    share = 100 * table["bytes"] / max(1, whole)
    return table.assign(rank=events["rank"][0], device=events["device"][0], share_percent=share)
