"""Another network: transfers take a given latency and bandwidth in place of the measured ones."""

from __future__ import annotations

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.core.statistics import middles
from htagraph.queries.weights import ChangeError, State, checked, end_spread, weighed
from htagraph.whatif.links import Transfers, fitted, transfers

__all__ = ["network"]


def network(state: State, /, *, latency_us: float | None = None, bandwidth_gb_s: float | None = None) -> State:
    """Return the state in which transfers take ``latency + bytes on the link / bandwidth``.

    A number that is not given is fitted to the transfers of each (process group, operation), or to all transfers where
    the transfers of a group and operation have one size only. The ratio of each transfer to the model is kept. Bytes on
    the link follow ring algorithms, such as ``2 (n - 1) / n`` of an all-reduce: the bandwidth is NCCL's bus bandwidth.

    Args:
        latency_us: latency of a collective, µs; None keeps the measured one.
        bandwidth_gb_s: bandwidth of a rank, GB/s (10^9 bytes per second); None keeps the measured one.

    Raises:
        SelectionError: neither is given, a number is out of range, or no message sizes are known.
    """
    if latency_us is None and bandwidth_gb_s is None:
        msg = "give latency_us=, bandwidth_gb_s= or both"
        raise ChangeError(msg)
    latency = None if latency_us is None else checked(latency_us, "latency_us") * 1000
    per_byte = None if bandwidth_gb_s is None else 1 / checked(bandwidth_gb_s, "bandwidth_gb_s", least=1e-6)
    job_transfers = transfers(state)
    spread = end_spread(state, job_transfers.edges)
    lag = state.lag[job_transfers.edges] - spread
    known = job_transfers.moved >= 0
    if not known.any():
        msg = (
            "these traces have no message sizes (PyTorch records them since 2.4, in "
            "`record_param_comms`); use scale_network(factor=) instead"
        )
        raise SelectionError(msg)
    if latency is not None and per_byte is not None:
        model, other = _usual(job_transfers, lag), latency + job_transfers.moved * per_byte
    else:
        measured = _measured(job_transfers, lag)
        model = measured[:, 0] + job_transfers.moved * measured[:, 1]
        slope = measured[:, 1] if per_byte is None else per_byte
        other = (measured[:, 0] if latency is None else latency) + job_transfers.moved * slope
    ratio = np.divide(lag, model, out=np.ones(len(lag)), where=model > 0)
    new = np.where(known & (lag > 0), np.rint(ratio * other), lag).astype(np.int64) + spread
    if not known.all():
        state = state.with_reason(f"{int((~known).sum())} transfers of unknown size keep their time")
    return weighed(state, job_transfers.edges, new)


def _usual(job_transfers: Transfers, lag: np.ndarray) -> np.ndarray:
    """Return the usual time of each transfer, ns: the mean for its (group, op) and size, with outliers clipped."""
    _, member = np.unique(np.stack([job_transfers.label, job_transfers.moved]), axis=1, return_inverse=True)
    member = member.ravel()
    median = middles(lag, member)[1]
    usual: np.ndarray = np.bincount(member, np.clip(lag, median / 2, median * 2)) / np.bincount(member)
    return usual[member]


def _measured(job_transfers: Transfers, lag: np.ndarray) -> np.ndarray:
    """Return latency and time per byte of each transfer's (group, op), as fitted, ns."""
    lines = fitted(job_transfers, lag)
    if any(line is None for line in lines):
        msg = (
            "all messages have about the same size, so latency and bandwidth cannot be separated; "
            "give both latency_us= and bandwidth_gb_s=, or use scale_network(factor=)"
        )
        raise SelectionError(msg)
    return np.array(lines, np.float64)[job_transfers.label]
