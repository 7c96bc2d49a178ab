"""Whether the least wait and slow transfers are told of one rank, and nothing where the network may be the reason."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.findings.verbs.ranks import collectives_sentences
from htagraph.findings.verbs.unread_ranks import least_wait_us, unread_sentences

SLOW = "check the transport (NCCL_DEBUG=INFO)"


def unread(
    size: float, lasted_us: list[float], *, pause_us: float = 10.0, name: str = "ncclDevKernel_Generic"
) -> pd.DataFrame:
    """Return pairs of collectives of one rank: a small one, and behind it one of a size that lasts a time."""
    rows = list[dict[str, object]]()
    at = 0.0
    for number, us in enumerate(lasted_us):
        rows.append({"start_us": at, "duration_us": 50.0, "bytes": 8.0, "busbw_gb_s": 1e-4, "op": "broadcast"})
        begin = at + 50.0 + pause_us
        rate = size / us / 1000 * 1.75
        rows.append({"start_us": begin, "duration_us": us, "bytes": size, "busbw_gb_s": rate, "op": "all_reduce"})
        at = begin + us + 5000.0 * (number + 1)
    frame = pd.DataFrame(rows).assign(rank=0, name=name, matched=False, absent=0, collective=-1)
    zeros = dict.fromkeys(["wait_us", "transfer_us", "excess_us", "beside_us"], 0.0)
    return frame.assign(**zeros, wait_or_transfer_us=frame["duration_us"])


def test_the_least_wait_of_small_messages_is_what_no_network_takes() -> None:
    parts = unread(8.0, [1200.0, 1200.0])
    assert least_wait_us(parts) == pytest.approx(2000.0, abs=1.0)
    assert "At least 2.00 ms of 2.50 ms is waiting" in unread_sentences(parts)[0]


def test_large_messages_may_be_transfer() -> None:
    assert not unread_sentences(unread(1e9, [9000.0, 2000.0, 5000.0], pause_us=900.0))


def test_a_large_message_that_is_slow_each_time_right_behind_another_one_is_named() -> None:
    (sentence,) = unread_sentences(unread(17.6e6, [8900.0, 9200.0, 8700.0]))
    assert sentence.startswith("Each all_reduce of 17.6 MB takes about 8.90 ms")
    assert sentence.endswith(f"{SLOW}.")


@pytest.mark.parametrize(
    ("lasted_us", "pause_us", "name"),
    [
        ([8900.0, 3200.0, 18700.0], 10.0, "ncclDevKernel_Generic"),  # another rank may set the time
        ([8900.0, 9200.0, 8700.0], 900.0, "ncclDevKernel_Generic"),  # other ranks may work in between
        ([890.0, 920.0, 870.0], 10.0, "ncclDevKernel_Generic"),  # the rate of a link inside a node
        ([8900.0, 9200.0, 8700.0], 10.0, "gloo:all_reduce"),  # a network between hosts
        ([8900.0, 9200.0], 10.0, "ncclDevKernel_Generic"),  # too few
    ],
)
def test_transfers_that_may_wait_or_are_fast_are_not_named(lasted_us: list[float], pause_us: float, name: str) -> None:
    sentences = unread_sentences(unread(17.6e6, lasted_us, pause_us=pause_us, name=name))
    assert not any(SLOW in sentence for sentence in sentences)


def test_time_of_one_rank_has_no_share_of_waiting() -> None:
    text = collectives_sentences(unread(1e9, [9000.0]), pd.DataFrame(), ["x"])[0]
    assert text.endswith("in collectives; how much of that is waiting, only the files of all ranks tell.")


@pytest.mark.parametrize(
    ("transfer_us", "size", "is_slow"),
    [(1000.0, 99_000.0, True), (1000.0, 101_000.0, False), (999.0, 50_000.0, False)],
)
def test_long_transfers_at_the_rate_of_no_network_may_be_waits(
    transfer_us: float, size: float, *, is_slow: bool
) -> None:
    """From 1 ms on, below 0.1 GB/s."""
    zeros = {part: [0.0] for part in ("wait_us", "excess_us", "beside_us", "wait_or_transfer_us")}
    frame = pd.DataFrame({**zeros, "transfer_us": [transfer_us], "duration_us": [transfer_us], "bytes": [size]})
    frame = frame.assign(rank=0, matched=True, absent=0, collective=0)
    text = collectives_sentences(frame, pd.DataFrame(), ["x"])[0]
    assert ("waiting for something else meanwhile" in text) is is_slow
