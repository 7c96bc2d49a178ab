"""Hosts whose cores are shared fairly: nobody is slower than in turn, and nobody is faster than alone."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.simulate import Job, simulate
from tests.simulate.test_cores import STEADY


def spans(job: Job) -> list[int]:
    """Return how long the host threads and devices of each rank are at work, from first to last event, ns."""
    ranks = simulate(job).ranks
    return [int(rank.end_ns.max() - rank.start_ns.min()) for rank in ranks]


def with_cores(cores: int | None, ranks: int = 2) -> Job:
    """Return a job of ranks whose threads begin at once and take turns."""
    update = {"ranks": ranks, "cores_per_host": cores, "fair_cores": True, "start_skew_us": 0.0}
    return STEADY.model_copy(update=update)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_with_a_core_for_each_rank_all_is_as_without_limits(ranks: int) -> None:
    limited, unlimited = (simulate(with_cores(cores, ranks)) for cores in (ranks, None))
    for one, other in zip(limited.ranks, unlimited.ranks, strict=True):
        np.testing.assert_array_equal(one.start_ns, other.start_ns)
        np.testing.assert_array_equal(one.end_ns, other.end_ns)


def test_ranks_that_share_a_core_are_slower_than_alone_and_no_slower_than_in_turn() -> None:
    alone = max(spans(with_cores(2)))
    shared = max(spans(with_cores(1)))
    assert alone < shared <= 2 * alone


def test_ranks_that_share_a_core_are_equally_fast() -> None:
    first, second = spans(with_cores(1))
    assert first == pytest.approx(second, rel=0.01)
