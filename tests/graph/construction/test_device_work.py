from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Ints
from htagraph.graph.construction.device_work import WorkInOrder


def work(*intervals: tuple[int, int]) -> WorkInOrder:
    rows = np.arange(len(intervals)) + 10
    start, end = np.array(intervals, np.int64).reshape(-1, 2).T
    return WorkInOrder(rows, start, end)


def moments(*values: int) -> Ints:
    return np.array(values, np.int64)


def test_busy_time_counts_what_overlaps_once() -> None:
    assert work((0, 10), (5, 20), (30, 40)).busy_before(moments(0, 7, 25, 35, 99)).tolist() == [0, 7, 20, 25, 30]


def test_a_device_without_work_was_never_busy() -> None:
    assert work().busy_before(moments(5)).tolist() == [0]
    assert work().ends_last(moments(5))[0].tolist() == [-1]


def test_the_work_that_ends_last_may_have_started_first() -> None:
    rows, ends = work((0, 50), (5, 20)).ends_last(moments(0, 30))
    assert rows.tolist() == [-1, 10]
    assert ends.tolist()[1] == 50


def test_a_part_of_the_work_is_in_the_same_order() -> None:
    chosen = work((0, 10), (5, 20), (30, 40)).only(np.array([True, False, True]))
    assert chosen.rows.tolist() == [10, 12]
