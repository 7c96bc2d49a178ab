"""The binding edge of each vertex, and what kind of time each gap (time that no edge explains) is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Ints, Mask, occurring
from htagraph.core.kinds import EDGES, KERNELS, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.graph.tolerances import LIMITS, Confidence

if TYPE_CHECKING:
    from htagraph.graph.activities import Activities, Edges

__all__ = ["binding_edges", "gap_kinds"]


def binding_edges(
    edges: Edges, time: Ints, offsets: Ints, in_edges: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], Ints]:
    """Return (the binding edge of each vertex, its gap, ns): the incoming edge with the latest source time plus lag.

    Where no edge enters, that is -1, and the gap 0. On ties a LAUNCH edge is binding; among several, and where there is
    none, the one with the lowest number.
    """
    from htagraph.core.traverse import deciding  # numba takes a moment to load

    return deciding(offsets, in_edges, edges.source, edges.lag, edges.kind == EdgeKind.LAUNCH, time)


def gap_kinds(acts: Activities, edges: Edges, binding: npt.NDArray[np.int32], gap: Ints) -> npt.NDArray[np.int8]:
    """Return the GapKind of each vertex, which follows from the kind of its binding edge."""
    meaning = np.zeros(len(EdgeKind) + 1, np.int8)
    meaning[list(EDGES)] = [each.gap for each in EDGES.values()]
    meaning[-1] = GapKind.TRACE_HEAD
    kind = np.append(edges.kind, np.int8(-1))  # of no edge
    late = gap > 0
    kinds = meaning[kind[binding]] * (late | (binding < 0))  # NONE is 0
    by_thread = np.flatnonzero(late & (kind[binding] == EdgeKind.THREAD))
    loaders = edges.activity[edges.kind == EdgeKind.DATALOADER]
    kinds[by_thread[np.isin(edges.activity[binding[by_thread]], loaders)]] = GapKind.DATA_WAIT
    kinds[_cut_off(acts, edges, by_thread, binding)] = GapKind.THREAD_IDLE
    idle = np.flatnonzero((kinds == GapKind.HOST_UNTRACED) & (gap > LIMITS.python_ns))
    idle = idle[(edges.activity[binding[idle]] < 0) & (edges.kind[binding[idle]] == EdgeKind.HOST_ORDER)]
    served = (edges.kind == EdgeKind.THREAD) & (edges.confidence >= Confidence.EVEN)
    # a thread whose caller is known is idle when its caller is: its gaps are host time like those of the caller
    awake = np.concatenate((_main_lanes(acts), acts.lane[edges.target[served] // 2]))
    kinds[idle[~np.isin(acts.lane[idle // 2], awake)]] = GapKind.THREAD_IDLE
    late_starts = _late_starts(acts, gap, kinds)
    is_first = _is_first_run(acts, late_starts >> 1)
    kinds[late_starts] = GapKind.OTHER_WORK
    kinds[late_starts[is_first]] = GapKind.FIRST_RUN
    return kinds


def _late_starts(acts: Activities, gap: Ints, kinds: npt.NDArray[np.int8]) -> Ints:
    """Return the starts of device work that came late, although the launch had long returned.

    Everything recorded that the work depends on was over, and the device ran nothing recorded: probably another process
    had the device, or work that was not recorded. An idle device starts launched work within `idle_start_ns`.
    """
    late = np.flatnonzero(of_kinds(kinds, (GapKind.LAUNCH_EXCESS, GapKind.STREAM_IDLE)) & (gap > LIMITS.idle_start_ns))
    late = late[acts.on_device[late >> 1] & (acts.cause[late >> 1] >= 0)]
    work = late >> 1
    since_call = acts.start[work] - acts.end[acts.cause[work]]
    return late[since_call > LIMITS.idle_start_ns]


def _is_first_run(acts: Activities, works: Ints) -> Mask:
    """Return which device activities are the first run of a kernel on a rank: code of a kernel loads once."""
    is_run = of_kinds(acts.kind, KERNELS)
    is_run &= np.isin(acts.name, acts.name[works])
    runs = np.flatnonzero(is_run)
    by_start = runs[np.argsort(acts.start[runs], kind="stable")]
    name_count = int(acts.name.max(initial=0)) + 1
    rank = acts.rank[by_start].astype(np.int64)
    kernel = rank * name_count + acts.name[by_start]
    _, first = np.unique(
        kernel,
        return_index=True,
    )
    return np.isin(
        works,
        by_start[first],
    )


def _cut_off(acts: Activities, edges: Edges, by_thread: Ints, binding: npt.NDArray[np.int32]) -> Ints:
    """Return the vertices, of some, at which a thread begins that nothing that ended may have set off.

    It may have been at work before: the recording begins in the middle of that, and its time is no pause of a host.
    """
    by_thread = by_thread[(by_thread % 2 == 0) & (edges.source[binding[by_thread]] % 2 == 0)]
    lanes, since = acts.lane[by_thread >> 1], acts.start[by_thread >> 1]
    latest = np.iinfo(np.int64).max
    begins = np.full(int(acts.lane.max(initial=0)) + 1, latest)
    np.minimum.at(begins, acts.lane, acts.start)
    begun = acts.start[edges.source[binding[by_thread]] >> 1]
    return by_thread[(since == begins[lanes]) & (begun == acts.start[: acts.ranked].min(initial=latest))]


def _main_lanes(acts: Activities) -> Ints:
    """Return the threads of each rank that have step annotations; without any, the thread with the most activities."""
    lanes = set()
    for rank in occurring(acts.rank[: acts.ranked]):
        of_rank = acts.of_rank(rank)
        marks = acts.lane[of_rank][acts.kind[of_rank] == ActivityKind.STEP]
        on_host = of_rank.start + np.flatnonzero(~acts.on_device[of_rank])
        if len(marks):
            lanes |= set(np.unique(marks).tolist())
        elif len(on_host):
            busy = np.bincount(acts.lane[on_host])[acts.lane[on_host]]
            first = np.lexsort((acts.start[on_host], -busy))[0]  # on ties, the one that starts first
            lanes.add(int(acts.lane[on_host[first]]))
    return np.array(sorted(lanes), np.int64)
