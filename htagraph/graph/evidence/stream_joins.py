"""Stream waits that point the wrong way: they would leave the kernels and copies of a stream unused.

``a.wait_stream(b)`` records an event on b and makes a wait for it, in two neighbouring calls that name neither. Where
such a wait never took time, the streams of the launches around it decide which waits for which. A loop that launches
copies for the next step right after it waited for those of this one looks like a fork then, though it is a join.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.graph.evidence.call_sites import grouped
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.stream_waits import StreamWaits
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["joined"]


def joined(calls: Calls, rank: int, waits: StreamWaits) -> StreamWaits:
    """Return the waits of a rank, with those turned around that leave a stream's work awaited by nobody.

    A stream's results are used somewhere: by a stream or a thread that waits for it. Where no wait and no
    synchronization is for a stream, but the stream itself is said to wait, without any evidence from time, the other
    stream is taken to wait for it, if the recorded times allow that. Streams that communicate are left alone, since
    other ranks wait for those, and so are waits inside operators: a library forks and joins in one.

    Args:
        calls: the calls of the job.
        rank: the rank of the waits.
        waits: its waits, as inferred.
    """
    syncs, own = calls.of_kind_on(rank, ActivityKind.SYNC), calls.of_rank(rank)
    synchronized, communicating = calls.lane_at(calls.before[syncs]), calls.launched[own][calls.communicates[own]]
    awaited = np.concatenate((waits.record_lane, synchronized, communicating))
    turnable = (waits.confidence == Confidence.POSSIBLE) & (waits.record_lane >= 0) & ~calls.in_operator[waits.position]
    lane, record_lane = waits.lane.copy(), waits.record_lane.copy()
    awaited_streams = {*awaited.tolist(), *calls.lanes[rank][:1].tolist()}
    some = np.flatnonzero(turnable)
    for rows in (some[group] for group in grouped(waits.lane[some])):
        if int(waits.lane[rows[0]]) not in awaited_streams and _is_possible(calls, waits, rows):
            lane[rows], record_lane[rows] = waits.record_lane[rows], waits.lane[rows]
    return StreamWaits(lane, waits.position, record_lane, waits.record, waits.provenance, waits.confidence)


def _is_possible(calls: Calls, waits: StreamWaits, rows: Array) -> bool:
    """Return whether the work before each record on the stream that waits was over when the other stream went on."""
    acts = calls.job.activities
    source = calls.enqueued.last_before(waits.lane[rows], waits.record[rows])
    target = calls.enqueued.first_from(waits.record_lane[rows], waits.position[rows])
    known = (source >= 0) & (target >= 0)
    over = acts.end[source[known]] <= acts.start[target[known]] + LIMITS.tick_ns
    return bool(known.any() and over.mean() >= 1 - LIMITS.damaged)
