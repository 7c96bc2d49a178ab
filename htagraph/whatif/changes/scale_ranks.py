"""More ranks, or fewer: an extrapolation from the recorded ranks."""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.queries.replay import predict
from htagraph.queries.weights import ChangeError, State, checked, weighed
from htagraph.whatif.links import Transfers, fitted, link_share, transfers

__all__ = ["scale_ranks"]

_SYMMETRIC = ("all_reduce", "all_gather", "reduce_scatter", "barrier")
"""Operations in which every member waits for the last to arrive."""


def scale_ranks(state: State, n: int, *, groups: str = "*") -> State:
    """Return the state of the job on `n` ranks that all do what the recorded ones do: an extrapolation, noted as such.

    A process group of p ranks becomes one of ``p n / R``, R being the ranks recorded. Of each transfer, the part that
    bytes explain grows as the share of bytes that a ring moves, such as ``2 (p - 1) / p``, and the latency grows as the
    depth of a tree, ``log2 p``; sizes stay (weak scaling). Among more ranks, the last rank arrives later: the JOIN of
    each collective moves by the growth of the expected maximum of p normal draws, times the spread of arrivals. How
    late each rank is on average is taken out of this spread, so that a rank that is always late does not add to it.
    Nothing is known of networks that are slower between nodes than within: add ``.network()`` for that.

    Args:
        state: the weights so far.
        n: number of ranks.
        groups: glob on the labels of the process groups that grow, for jobs where only the data-parallel groups do.

    Raises:
        SelectionError: `n` is no whole number of at least 1, no collective is matched, or no group matches.
    """
    wanted = checked(n, "n", least=1)
    if wanted != int(wanted):
        msg = f"n={n!r}: give a whole number of ranks"
        raise ChangeError(msg)
    job_transfers, have = transfers(state), len(state.graph.ranks)
    grows = np.array([fnmatch.fnmatchcase(group, groups) for group in job_transfers.matches.group])
    if not grows.any():
        msg = (
            f"no process group matches {groups!r}; the graph has: {', '.join(sorted(set(job_transfers.matches.group)))}"
        )
        raise SelectionError(msg)
    before = np.where(
        job_transfers.matches.size > 0, job_transfers.matches.size, np.bincount(job_transfers.matches.collective)
    )
    after = np.where(grows, np.maximum(1, np.rint(before * wanted / have)), before).astype(np.int64)
    note = f"extrapolation: {have} ranks → {int(wanted)}, by transfer formulas and the spread of arrivals"
    arrived = _later_joins(state, job_transfers, before, after)
    state = weighed(arrived, job_transfers.edges, _longer(state, job_transfers, before, after)).with_note(note)
    if grows.all() and (before < have).any():
        note = "extrapolation: groups of some ranks grow as those of all; groups= says which, such as '*dp*'"
        state = state.with_note(note)
    return state


def _longer(state: State, job_transfers: Transfers, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return how long each transfer takes in its group's new size, ns."""
    lag = state.lag[job_transfers.edges].astype(np.float64)
    lines = fitted(job_transfers, lag)
    ops = np.array(job_transfers.matches.op)[job_transfers.collective]
    was, now = before[job_transfers.collective], after[job_transfers.collective]
    depth = np.log2(np.maximum(now, 2)) / np.log2(np.maximum(was, 2))
    new = lag.copy()
    for op in np.unique(ops):
        if op == "send_recv":
            continue
        rows = np.flatnonzero(ops == op)
        old = link_share(op, was[rows])
        wider = np.divide(link_share(op, now[rows]), old, out=np.ones(len(rows)), where=old > 0)
        latency, per_byte = np.array([line or (0.0, 1.0) for line in lines])[job_transfers.label[rows]].T
        bytes_part = np.maximum(job_transfers.moved[rows], 0) * per_byte
        whole = latency + bytes_part
        of_latency = np.divide(latency, whole, out=np.zeros(len(rows)), where=whole > 0)
        of_latency = np.where(op == "barrier", 1.0, of_latency)
        new[rows] = lag[rows] * (of_latency * depth[rows] + (1 - of_latency) * wider)
    return np.where(lag > 0, np.rint(new), lag).astype(np.int64)


def _later_joins(state: State, job_transfers: Transfers, before: np.ndarray, after: np.ndarray) -> State:
    """Return the state in which collectives start later, by how much later the last of more arrivals is."""
    matches, graph = job_transfers.matches, state.graph
    arrival = predict(graph, state.lag, state.gap, state.head)[2 * matches.activity]
    rank = graph.activities.rank[matches.activity]
    gap = state.gap.copy()
    of_member = np.array(matches.group)[matches.collective]
    meets = np.isin(np.array(matches.op), _SYMMETRIC)
    for group in np.unique(of_member):
        rows = np.flatnonzero((of_member == group) & meets[matches.collective])
        if not len(rows):
            continue
        spread = _spread(arrival[rows], matches.collective[rows], rank[rows])
        joins, which = np.unique(matches.join[rows], return_index=True)
        collective = matches.collective[rows][which]
        later = np.array([_expected_last(after[c]) - _expected_last(before[c]) for c in collective])
        gap[2 * joins] = np.maximum(0, gap[2 * joins] + np.rint(spread * later)).astype(np.int64)
    return replace(state, gap=gap)


def _spread(arrival: np.ndarray, collective: np.ndarray, rank: np.ndarray) -> float:
    """Return the standard deviation of arrivals about their collective's mean and their rank's usual lateness, ns."""
    late = arrival.astype(np.float64)
    late -= arrival.min()
    for group in (collective, rank):
        _, member = np.unique(group, return_inverse=True)
        member = member.ravel()
        late -= (np.bincount(member, late) / np.bincount(member))[member]
    freedom = len(late) - len(np.unique(collective)) - len(np.unique(rank)) + 1
    return float(np.sqrt((late**2).sum() / freedom)) if freedom > 0 else 0.0


def _expected_last(count: int) -> float:
    """Return the expected maximum of `count` standard normal draws.

    Source: G. Blom, Statistical Estimates and Transformed Beta-Variables, 1958: the quantile at
    (count - 3/8) / (count + 1/4), within 5 % of the exact value.
    """
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0
