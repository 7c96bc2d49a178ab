"""Reasons why devices were idle, by the binding edges back from the work that ended each pause.

The path from the begin of a pause to the work at its end says who spent the time: the host in a call, operator or
frame, its data loader, another rank, the device itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, Ints, texts_of
from htagraph.core.kinds import GapKind
from htagraph.core.naming import short_name
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.pauses import CAUSES, Pauses
from htagraph.queries.host_time import each_activity
from htagraph.queries.path_segments import CATEGORIES, HOST_CATEGORIES, Segments, segments_of_paths
from htagraph.queries.start_up import owners_in_start_up

__all__ = [
    "DEVICE",
    "EARLIER",
    "HOST",
    "LOADER",
    "OTHER",
    "OUTSIDE",
    "OWN_REASONS",
    "TABLE",
    "TRANSFER",
    "UNKNOWN",
    "WORK",
    "reason_of_each",
    "waited_for",
]

HOST: Final = "host"
LOADER: Final = "data loader"
DEVICE: Final = "device"
UNKNOWN: Final = "not known"
TRANSFER: Final = "transfer"
WORK: Final = "device work"
EARLIER: Final = "earlier work"
OTHER: Final = "other work"
OUTSIDE: Final = "outside"
_OF_CATEGORY: Final = {
    **dict.fromkeys(HOST_CATEGORIES, HOST),
    "data_loading": LOADER,
    "waiting": DEVICE,
    "gap": UNKNOWN,
    "communication": TRANSFER,
    "computation": WORK,
    "memory": WORK,
    "head": EARLIER,
    "other_work": OTHER,
    "outside": OUTSIDE,
    "allocator": HOST,
}
"""Reasons on the rank of the device, by the category of a segment."""
OWN_REASONS: Final = frozenset(_OF_CATEGORY.values())
"""Reasons on the rank of the device: a reason not among them is another rank, such as ``rank 2``."""
_KEYS: Final = ["rank", "device", "waited_for", "what", "inside", "before"]
TABLE: Final = Table(
    "What devices waited for while idle",
    Col("rank device", "int64"),
    Col(
        "waited_for",
        "str",
        "the ``host``; its ``data loader``; ``rank 2``, if another rank was late; a ``transfer``; the ``device`` "
        "itself, between two kernels; ``device work`` of another stream or device of the rank; ``earlier work`` and "
        "``other work``, which were not recorded; ``outside``, if the host waited for something that was not recorded, "
        "such as another process; ``not known``, where no dependency explains it",
    ),
    Col(
        "what", "str", "the call, operator, frame or kernel in which the time was spent; empty where no event covers it"
    ),
    Col("inside", "str", "as in `host_pauses`"),
    Col("before", "str", "the activity that came next, where no event covers the time"),
    Col("count", "int64", "number of activities or gaps"),
    Col("total_us longest_us"),
    Col("share_percent", doc="share of the time from the device's first to its last work"),
    Col("activity", "int64", "number of the longest activity, or of the activity after the longest gap"),
    rank_by="total_us",
)


@described(TABLE)
def waited_for(graph: DependencyGraph) -> pd.DataFrame:
    """Return the reasons why the devices of a job were idle, the most time first.

    Returns:
        One row per device, cause and place, whose times sum to the idle time of `idle_breakdown` by rank: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = waited_for(hg.load("data/demo"))
        >>> table["waited_for"].iloc[0]
        'data loader'
    """
    pauses = graph.device_pauses
    devices = [_of_device(graph, pauses, device) for device in range(len(pauses.places))]
    if not devices:
        return TABLE.frame()
    spent = pd.concat(devices, ignore_index=True)
    spent = spent.sort_values("ns", ascending=False, kind="stable")
    sums = spent.groupby(_KEYS, as_index=False, sort=False).agg(
        count=("count", "sum"),
        ns=("ns", "sum"),
        longest=("longest", "max"),
        activity=("activity", "first"),
        window=("window", "first"),
    )
    table = sums.assign(
        total_us=sums["ns"] / 1000,
        longest_us=sums["longest"] / 1000,
        share_percent=100 * sums["ns"] / sums["window"],
    )
    return TABLE.ranked(TABLE.frame(table))


def reason_of_each(graph: DependencyGraph, pauses: Pauses, rows: Array | Sequence[int]) -> list[str]:
    """Return the main reason of each pause in words: ``host: cudaMalloc``.

    Args:
        graph: the job.
        pauses: pauses of streams or of devices.
        rows: numbers of the pauses to look into.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> longest = graph.device_pauses.length.argmax()
        >>> reason_of_each(graph, graph.device_pauses, [longest])[0][:20]
        'data loader: enumera'
    """
    reasons = []
    for row in rows:
        rank = int(pauses.places[pauses.place[row], 0])
        spent = _spent(graph, rank, _segments(graph, pauses, np.array([row])))
        sums = spent.groupby(["waited_for", "what", "before"], as_index=False)["ns"].sum()
        reasons.append(_in_words(sums.iloc[int(sums["ns"].argmax())]) if len(sums) else "")
    return reasons


def _in_words(row: pd.Series) -> str:
    """Return a reason in words: the cause, and the name of the activity that took the time or came next."""
    if row["waited_for"] == DEVICE:  # the kernel of the row waited, and did nothing
        return DEVICE
    before = f"before {short_name(row['before'])}" if row["before"] else ""
    place = short_name(row["what"]) if row["what"] else before
    return f"{row['waited_for']}: {place}" if place else str(row["waited_for"])


def _of_device(graph: DependencyGraph, pauses: Pauses, device: int) -> pd.DataFrame:
    """Return the reasons of one device: a row per activity or gap, and a row for all delays between its kernels."""
    rank = int(pauses.places[device, 0])
    ordinal = int(pauses.places[device, 1])
    of_device = (pauses.place == device) & (pauses.length > 0)
    by_itself = of_device & (pauses.causes() == CAUSES.index("kernel_wait"))
    rows = np.flatnonzero(of_device & ~by_itself)
    spent = _spent(graph, rank, _segments(graph, pauses, rows))
    spent = spent.assign(count=1, longest=spent["ns"])
    if by_itself.any():
        delays = _delays(pauses, np.flatnonzero(by_itself))
        spent = pd.concat([spent, delays], ignore_index=True)
    window = max(1, int(pauses.window[device]))
    return spent.assign(rank=rank, device=ordinal, window=window)


def _delays(pauses: Pauses, rows: Ints) -> pd.DataFrame:
    """Return one row for the delays of a device between queued kernels."""
    delays = pauses.length[rows]
    longest = rows[delays.argmax()]
    return pd.DataFrame(
        {
            "waited_for": [DEVICE],
            "what": "",
            "inside": "",
            "before": "",
            "activity": int(pauses.after[longest]),
            "count": len(delays),
            "ns": int(delays.sum()),
            "longest": int(delays.max()),
        }
    )


def _segments(graph: DependencyGraph, pauses: Pauses, rows: Array) -> Segments:
    """Return the segments of the paths through some pauses of one device, or of one stream."""
    from htagraph.core import traverse  # numba takes a moment to load

    sources = graph.edges.source
    ends = (2 * pauses.after[rows]).tolist()
    begins = pauses.begin[rows].tolist()
    walks = [
        traverse.walk_back(graph.binding, sources, graph.time, end, begin)
        for end, begin in zip(ends, begins, strict=True)
    ]
    sizes = np.array([len(walk) for walk in walks], np.int64)
    vertices = np.concatenate([np.zeros(0, np.int64), *walks])
    into = graph.binding[vertices].astype(np.int64)
    into[np.cumsum(sizes) - sizes] = -1
    return segments_of_paths(graph, vertices, into, np.repeat(pauses.begin[rows], sizes))


def _spent(graph: DependencyGraph, rank: int, parts: Segments) -> pd.DataFrame:
    """Return a row per activity or gap of segments: the reason of a rank in words, ``ns``, ``activity``."""
    activities = each_activity(graph, parts, np.arange(len(parts)))
    category = parts.category[activities["segment"].to_numpy(np.int64)]
    words = np.array([_OF_CATEGORY[name] for name in CATEGORIES], object)
    cause = words[category]
    _charge_late_launches(graph, parts, activities, cause)
    _charge_calls(graph, activities, cause)
    place = activities["rank"].to_numpy()
    is_elsewhere = (place != rank) & (place >= 0)
    cause[is_elsewhere] = [f"rank {number}" for number in place[is_elsewhere].tolist()]
    return pd.DataFrame(
        {
            "waited_for": cause,
            "what": _names(graph, activities["what"].to_numpy(np.int64)),
            "inside": _names(graph, activities["inside"].to_numpy(np.int64)),
            "before": _names(graph, activities["before"].to_numpy(np.int64)),
            "ns": activities["ns"],
            "activity": activities["activity"],
        }
    )


def _charge_late_launches(graph: DependencyGraph, parts: Segments, activities: pd.DataFrame, cause: Array) -> None:
    """Name the launch, in place, where a kernel's first run waited for the launch to load the kernel's code.

    Args:
        graph: the job.
        parts: segments of paths.
        activities: a row per activity or gap of the segments.
        cause: the reason of each row.
    """
    acts = graph.activities
    segment = activities["segment"].to_numpy(np.int64)
    launch = owners_in_start_up(graph, parts)[segment]
    is_late = launch >= 0
    is_late &= parts.gap[segment] == GapKind.FIRST_RUN
    parent = graph.tree.parent[launch]
    around = np.where(parent >= 0, acts.name[parent], -1)
    cause[is_late] = HOST
    activities.loc[is_late, "what"] = acts.name[launch[is_late]]
    activities.loc[is_late, "inside"] = around[is_late]
    activities.loc[is_late, "before"] = -1


def _charge_calls(graph: DependencyGraph, activities: pd.DataFrame, cause: Array) -> None:
    """Name the launch call, in place, for the time from the call to its work: no kernel is code of the host.

    Args:
        graph: the job.
        activities: a row per activity or gap of segments.
        cause: the reason of each row.
    """
    acts = graph.activities
    row = activities["activity"].to_numpy(np.int64)
    name = activities["what"].to_numpy(np.int64)
    is_latency = (cause == HOST) & acts.on_device[row] & (name >= 0)
    call = np.where(is_latency, acts.cause[row], -1)
    is_unknown = is_latency & (call < 0)
    activities["before"] = np.where(is_unknown, name, activities["before"])
    code = np.where(call >= 0, acts.name[call], name)
    activities["what"] = np.where(is_unknown, -1, code)


def _names(graph: DependencyGraph, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    """Return names by code as texts, empty for -1."""
    return np.asarray(texts_of(graph.names, codes), object)
