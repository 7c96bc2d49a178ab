"""What the collectives of one rank show without the other ranks: the least wait, and transfers at a slow rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from htagraph.core.naming import is_nccl_kernel
from htagraph.core.statistics import SEVERAL
from htagraph.findings.limits import MIN_SHARE
from htagraph.findings.phrases import short_number, size_text, spoken, time_text

__all__ = ["SLOW_GB_S", "least_wait_us", "unread_sentences"]

SLOW_GB_S: Final = 0.1
"""GB/s below which a long transfer may have waited meanwhile, as for cores. Chosen: that of a network of 1 Gbit/s.
Doubled, all transfers through a network of 2 Gbit/s are doubted."""
_LATENCY_US: Final = 200.0
"""µs in which a message of a few bytes has passed through a collective. Source: nccl-tests, 8 bytes on tens of nodes;
hosts take as long. Doubled, waits of 0.2 to 0.4 ms are not known as waits."""
_TWICE: Final = 2.0
"""How often an all-reduce of many ranks sends its bytes over each link, the most of all operations. Source: the bus
bandwidth of nccl-tests."""
_BEHIND_US: Final = 50.0
"""µs after a collective within which the next one begins as all its ranks have just met. Chosen: a few launches of
kernels. Doubled, other ranks may do work of their own in between."""
_INSIDE_NODE_GB_S: Final = 5.0
"""Bus bandwidth below which a large transfer inside a node is slow. Source: half of PCIe 3.0 with 16 lanes, the slowest
link between devices of servers since 2015. Doubled, devices on PCIe 3.0 that share a switch are doubted."""
_LARGE_BYTES: Final = 4_000_000
"""Bytes from which latency is no part of the rate. Chosen: on a link of 5 GB/s 4 MB take 0.8 ms. Doubled, buckets of a
few layers say nothing about a link."""


_STEADY: Final = 0.8
"""The shortest of some transfers as a share of the longest, from which on a link sets their time, and not another rank.
Chosen: times of one link vary by a tenth. Doubled, no transfers are alike."""


def least_wait_us(parts: pd.DataFrame) -> float:
    """Return how much of the time that is wait or transfer is wait for sure, µs: no network takes so long.

    Args:
        parts: a result of `htagraph.collectives`.

    Example:
        >>> parts = pd.DataFrame({"wait_or_transfer_us": [900.0, 900.0], "bytes": [64.0, 1e9]})
        >>> round(least_wait_us(parts))
        699
    """
    slowest_us = _LATENCY_US + _TWICE * parts["bytes"] / SLOW_GB_S / 1000
    beyond = parts["wait_or_transfer_us"] - slowest_us
    return float(beyond.clip(lower=0.0).sum())


def unread_sentences(parts: pd.DataFrame) -> list[str]:
    """Return the least wait for ranks that were not read, and large transfers at a rate of no link inside a node."""
    open_us = float(parts["wait_or_transfer_us"].sum())
    least_us = least_wait_us(parts)
    waiting = ""
    if least_us >= MIN_SHARE * open_us > 0:
        waiting = (
            f"At least {time_text(least_us)} of {time_text(open_us)} is waiting: messages of this size need less time "
            "on any network."
        )
    return spoken(waiting, *_slow_transfers(parts))


def _slow_transfers(parts: pd.DataFrame) -> Iterator[str]:
    """Yield large transfers of one operation and size that begin right behind a collective, and are slow each time."""
    if not parts["wait_or_transfer_us"].any():
        return
    for (op, _size), alike in _behind_others(parts).groupby(["op", "bytes"]):
        size = float(alike["bytes"].iloc[0])
        rates = alike["busbw_gb_s"].to_numpy()
        lasted = alike["duration_us"].to_numpy()
        is_steady = lasted.min() >= _STEADY * lasted.max()
        usual_rate = float(np.median(rates))
        usual_us = float(np.median(lasted))
        if len(alike) < SEVERAL or not is_steady or usual_rate >= _INSIDE_NODE_GB_S:
            continue
        yield (
            f"Each {op} of {size_text(size)} takes about {time_text(usual_us)} though it begins right behind another "
            f"collective: {short_number(usual_rate)} GB/s. If these ranks share a node, check the transport "
            "(NCCL_DEBUG=INFO)."
        )


def _behind_others(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the large transfers with unknown waits that begin right behind another collective of their rank."""
    ordered = parts.sort_values(["rank", "start_us"], kind="stable")
    ends = (ordered["start_us"] + ordered["duration_us"]).groupby(ordered["rank"]).shift()
    pause_us = ordered["start_us"] - ends
    is_behind = (pause_us >= 0) & (pause_us <= _BEHIND_US)
    is_large = (ordered["bytes"] >= _LARGE_BYTES) & (ordered["wait_or_transfer_us"] > 0)
    has_transport = ordered["name"].map(is_nccl_kernel).astype(bool)
    return ordered[is_behind & is_large & has_transport & ordered["busbw_gb_s"].notna()]
