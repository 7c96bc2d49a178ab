"""Each rank's part in each collective: how long it waited and transferred, and at which bandwidth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.tables import Col, Table, described
from htagraph.graph.clocks import agreement_ns
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import Waits, bus_factor, lacks_members
from htagraph.graph.selection import columns_of
from htagraph.queries.own_sizes import own_sizes

__all__ = ["collectives"]

TABLE = Table(
    "Each rank's part in each collective",
    Col("collective", "int64", "-1 if not matched", heading="number"),
    Col(
        "op group",
        "str",
        "operation, such as ``all_reduce``, empty if unknown; label of the process group, empty if not matched",
    ),
    Col("rank activity", "int64"),
    Col("name", "str"),
    Col("step", "int64", "-1 outside steps"),
    Col("size", "int64", "number of the collective's members in the graph"),
    Col("absent", "int64", "number of members that are not in the graph; 0 if none or unknown"),
    Col("key", "str", "how the collective was matched; empty if not matched"),
    Col("start_us", doc="arrival of the rank, on the common clock, since the job's first activity"),
    Col("duration_us"),
    Col("beside_us", doc="time in which the rank's thread ran other work, before the thread waited"),
    Col("wait_us"),
    Col("transfer_us", doc="time of the data transfer, without ``excess_us``"),
    Col("excess_us", doc="time of the data transfer beyond the shortest one of its kind"),
    Col("wait_or_transfer_us", doc="time that is wait or transfer; the recording does not show which"),
    Col("bytes", doc="NaN if unknown"),
    Col(
        "algbw_gb_s busbw_gb_s",
        doc="bytes over transfer and excess, and the same times the factor of NCCL's tests; at least this much where "
        "members are absent, NaN where a part of the transfer may have been over before the thread waited",
    ),
    Col("last_rank", "int64", "the rank that arrived last; -1 if not matched"),
    Col(
        "wait_error_us", doc="possible error of the wait from the clocks of this rank and the last rank; NaN if unknown"
    ),
    Col("matched", "bool"),
)


@described(TABLE)
def collectives(graph: DependencyGraph) -> pd.DataFrame:
    """Return each rank's part in each collective: when it arrived, how long it waited and how long it transferred.

    A part's duration is, exactly, the sum of four times: the time in which its thread still ran other work, its wait
    for the last arrival, the pure transfer (the shortest of the same group, operation and bytes, by its last part)
    and the excess over the pure transfer. A thread runs other work beside asynchronous sends and receives on hosts
    (gloo). These are recorded from the call to the return of their wait; how long the data was under way in that time
    is not recorded. In an operation with a root, only the ranks that need the root wait, or the root waits for the
    others; in an all-to-all each rank waits for the arrivals before its end.

    Where members are absent (their ranks were not recorded, or may be, as neither the group was recorded nor all ranks
    were read), the time after the last recorded arrival is transfer, or
    wait for the absent members: the recording does not show which, so this time is a part of its own. Likewise, all
    time of collectives that were not matched between the ranks is such a part (their partners may not be in the graph).

    Args:
        graph: the job.

    Returns:
        One row per part, ordered by collective and rank, unmatched ones last: {columns}.

    Example:
        >>> import htagraph as hg
        >>> parts = hg.collectives(hg.load("data/demo"))
        >>> total = parts[["beside_us", "wait_us", "transfer_us", "excess_us", "wait_or_transfer_us"]].sum(axis=1)
        >>> bool((abs(total - parts["duration_us"]) < 1e-6).all())
        True
    """
    acts, waits, matches = graph.activities, graph.waits, graph.matches
    known = waits.collective >= 0
    texts = {"op": (), "group": (), "key": ()} if matches is None else {
        "op": matches.op, "group": matches.group, "key": matches.key
    }  # fmt: skip
    columns = {word: [each[i] if i >= 0 else "" for i in waits.collective.tolist()] for word, each in texts.items()}
    group = waits.size.copy()  # how many members there are, in the graph or not, as far as that is known
    if matches is not None:
        group[known] = np.maximum(group[known], np.asarray(matches.size)[waits.collective[known]])
    absent = group - waits.size
    bytes_of = waits.bytes.copy()
    alone = np.flatnonzero(~known)
    if len(alone):  # what the recording of their own rank says
        sizes = own_sizes(graph, waits.activity[alone])
        bytes_of[alone] = sizes.bytes
        group[alone] = sizes.group_size
        for place, op in zip(alone.tolist(), sizes.op, strict=True):
            columns["op"][place] = op
    algorithm, bus = _bandwidths(waits, bytes_of, columns["op"], group)
    whole = known & (absent == 0) & ~lacks_members(graph)[waits.activity]  # all members are in the graph
    late = np.where(waits.late >= 0, acts.rank[np.maximum(waits.late, 0)], -1) if len(waits) else waits.late
    return TABLE.frame({
        "collective": waits.collective,
        "op": pd.array(columns["op"], dtype="str"),
        "group": pd.array(columns["group"], dtype="str"),
        "rank": waits.rank,
        "activity": waits.activity,
        **columns_of(graph, waits.activity, "name", "step"),
        "size": waits.size,
        "absent": absent,
        "key": pd.array(columns["key"], dtype="str"),
        "start_us": (waits.arrival - graph.origin_ns) / 1000,
        "duration_us": (waits.beside + waits.wait + waits.transfer) / 1000,
        "beside_us": waits.beside / 1000,
        "wait_us": waits.wait / 1000,
        "transfer_us": np.where(whole, waits.pure, 0) / 1000,
        "excess_us": np.where(whole, waits.excess, 0) / 1000,
        "wait_or_transfer_us": np.where(whole, 0, waits.transfer) / 1000,
        "bytes": np.where(bytes_of >= 0, bytes_of.astype(np.float64), np.nan),
        "algbw_gb_s": algorithm,
        "busbw_gb_s": bus,
        "last_rank": late.astype(np.int64),
        "wait_error_us": _wait_errors(graph, waits.rank, late) / 1000,
        "matched": known,
    })  # fmt: skip


def _wait_errors(graph: DependencyGraph, rank: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return by how much the clocks of two ranks may be wrong against each other, ns; NaN where it is unknown."""
    pairs, at = np.unique(np.stack((rank, last)), axis=1, return_inverse=True)
    errors = [agreement_ns(graph.clocks, pair) if min(pair) >= 0 else -1 for pair in pairs.T.tolist()]
    return np.where(np.array(errors) >= 0, errors, np.nan)[at.ravel()] if len(errors) else np.empty(0)


def _bandwidths(waits: Waits, bytes_of: np.ndarray, ops: list[str], group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (algorithm bandwidth, bus bandwidth) in 10^9 bytes/s; NaN where bytes are unknown or no time passed."""
    timed = (bytes_of >= 0) & (waits.transfer > 0) & waits.shows_transfer
    algorithm = np.full(len(waits), np.nan)
    algorithm[timed] = bytes_of[timed] / waits.transfer[timed]
    factors = [bus_factor(op, each) for op, each in zip(ops, group.tolist(), strict=True)]
    return algorithm, algorithm * np.array(factors, np.float64)
