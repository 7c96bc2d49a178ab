"""Stretches that take turns, as arrays: how long each takes alone, and when it ends beside other stretches."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.shared_cores import Dag
from htagraph.core.shared_turns import TurnUsers, demands, moments


def job(lengths: list[int], gaps: list[int]) -> Dag:
    """Return activities on threads of their own: each has a gap behind a common beginning, and a length."""
    count = len(lengths)
    begin = np.zeros(count, np.int64)
    start = 1 + 2 * np.arange(count)
    source = np.concatenate((begin, start))
    target = np.concatenate((start, start + 1))
    lag = np.concatenate((begin, lengths))
    gap = np.zeros(2 * count + 1, np.int64)
    gap[start] = gaps
    in_offsets = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=len(gap)))))
    out_offsets = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=len(gap)))))
    head = np.zeros(len(gap), np.int64)
    return Dag(in_offsets, out_offsets, target, lag, gap, head, np.ones(len(lag), np.bool_))


def users(count: int, places: int, *, with_gaps: bool = False) -> TurnUsers:
    """Return the lengths of such a job, and the gaps, as users of one resource."""
    lags = np.repeat([-1, 0], count)
    gaps = np.full(2 * count + 1, -1)
    if with_gaps:
        gaps[1 + 2 * np.arange(count)] = 0
    return TurnUsers(np.concatenate((lags, gaps)), np.array([places]), count + 1)


def ends(time: np.ndarray) -> list[int]:
    """Return when each activity ends."""
    return [int(end) for end in time[2::2]]


def test_two_that_share_one_place_are_half_as_fast_while_both_are_there() -> None:
    dag, shares = job([20, 30], [0, 0]), users(2, 1)
    demand = demands(dag, shares)
    assert demand[2:4].tolist() == [10, 20]
    assert ends(moments(dag, shares, demand)) == [20, 30]


def test_one_is_done_sooner_if_the_other_one_needs_less() -> None:
    dag, shares = job([20, 30], [0, 0]), users(2, 1)
    demand = demands(dag, shares)
    demand[2] = 5
    assert ends(moments(dag, shares, demand)) == [10, 25]


@pytest.mark.parametrize("places", [2, 3])
def test_nobody_is_slowed_down_where_there_is_a_place_for_each(places: int) -> None:
    dag, shares = job([20, 30], [0, 5]), users(2, places)
    demand = demands(dag, shares)
    assert demand[2:4].tolist() == [20, 30]
    demand[3] = 60
    assert ends(moments(dag, shares, demand)) == [20, 65]


def test_gaps_take_turns_as_lags_do() -> None:
    dag, shares = job([8, 8], [4, 12]), users(2, 1, with_gaps=True)
    demand = demands(dag, shares)
    assert demand[2:4].tolist() == [4, 8]
    assert demand[[4 + 1, 4 + 3]].tolist() == [2, 6]
    assert ends(moments(dag, shares, demand)) == [12, 20]


def test_what_takes_no_time_alone_takes_none_beside_others() -> None:
    dag, shares = job([20, 30], [0, 0]), users(2, 1)
    demand = demands(dag, shares)
    demand[2] = 0
    assert ends(moments(dag, shares, demand)) == [0, 20]
