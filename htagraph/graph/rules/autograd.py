"""AUTOGRAD: end of a forward operator → start of its backward operator. Lag 0; known by flow or sequence number."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import joined, looked_up, run_starts
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Activities, Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.trace.columns import Flows

__all__ = ["autograd"]


def autograd(job: RecordedJob) -> Edges:
    """Return an edge from the end of each forward operator to the start of its backward operator.

    The pairs come from the ``fwdbwd`` flows of the rank's trace. Where a rank has none, they come from sequence
    numbers: of the operators with one number, the forward one is the last to start on its own thread; the backward one
    is the first to start with a forward thread id (inside the engine's frame, which has the same number). Operators
    that a capture lent to a CUDA graph come after the module of their forward operator.
    """
    acts = job.activities
    sequence = acts.arg("sequence_number")
    threads = {_thread(lane.rank, lane.pid, lane.tid): i for i, lane in enumerate(job.lanes) if lane.device < 0}
    pairs = []
    for rank, trace in job.traces.items():
        of_rank = acts.of_rank(rank)
        rows = of_rank.start + np.flatnonzero(acts.kind[of_rank] == ActivityKind.OP)
        lanes = np.array([threads.get(_thread(rank, *lane), -1) for lane in trace.lanes], np.int32)
        by_flow = _by_flow(acts, rows, trace.flows, lanes)
        pairs.append(by_flow if len(by_flow[0]) else _by_sequence_number(job, rows, sequence))
    forward, backward = joined(pairs, 2)
    observed = Edges.of(2 * forward + 1, 2 * backward, 0, EdgeKind.AUTOGRAD, Provenance.OBSERVED)
    lent = np.flatnonzero(acts.borrowed)
    back = acts.arg("borrowed_forward")[lent]
    lent, back = lent[back > 0], back[back > 0]
    inferred = Edges.of(2 * (lent - back) + 1, 2 * lent, 0, EdgeKind.AUTOGRAD, Provenance.INFERRED)
    return Edges.concatenate([observed, inferred])


def _thread(rank: int, pid: int | str, tid: int | str) -> str:
    """Return a text that differs between threads; there are numbers whose hashes are equal."""
    return f"{rank} {pid!r} {tid!r}"


def _by_flow(acts: Activities, rows: np.ndarray, flows: Flows, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the (forward, backward) operators at the two ends of each flow.

    A flow end names a thread and a time; the operator is the one that starts there, the outermost if several do.
    """
    none = np.zeros(0, np.int64)
    if not len(flows.id) or not len(rows):
        return none, none
    order = rows[np.lexsort((-acts.duration[rows], acts.start[rows], acts.lane[rows]))]
    corner = int(acts.lane[order[0]]), int(acts.start[rows].min())
    key = _key(acts.lane[order], acts.start[order], corner)
    wanted = _key(lanes[flows.lane], flows.time, corner)
    op = np.where(lanes[flows.lane] >= 0, looked_up(key, order, wanted), -1)
    begins, ends = flows.is_start & (op >= 0), ~flows.is_start & (op >= 0)
    _, first, second = np.intersect1d(flows.id[begins], flows.id[ends], return_indices=True)
    return op[begins][first], op[ends][second]


def _key(lane: np.ndarray, time: np.ndarray, corner: tuple[int, int]) -> np.ndarray:
    """Return one sortable number per (lane, moment), counted from a rank's first lane and moment.

    A rank's window is shorter than 2^47 ns, 39 hours, and it has fewer than 2^16 threads.
    """
    return (lane.astype(np.int64) - corner[0] << 47) + (time - corner[1])


def _by_sequence_number(job: RecordedJob, rows: np.ndarray, sequence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (forward, backward) operators that share a sequence number, given that of each activity (-1 for none)."""
    acts, number, thread = job.activities, sequence[rows], job.forward_thread[rows]
    is_forward, is_backward = (number >= 0) & (thread == 0), (number >= 0) & (thread > 0)
    above = acts.parent[rows[is_backward]]
    same = (above >= 0) & (sequence[above] == number[is_backward])
    is_backward &= ~np.isin(rows, above[same])  # the frame of the autograd engine around the operator
    forward = _one_per_number(rows[is_forward], number[is_forward], -acts.start[rows[is_forward]])
    backward = _one_per_number(rows[is_backward], number[is_backward], acts.start[rows[is_backward]])
    _, first, second = np.intersect1d(forward[1], backward[1], return_indices=True)
    return forward[0][first], backward[0][second]


def _one_per_number(rows: np.ndarray, number: np.ndarray, preference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, number) with the smallest preference for each number."""
    order = np.lexsort((preference, number))
    rows, number = rows[order], number[order]
    first = run_starts(number)
    return rows[first], number[first]
