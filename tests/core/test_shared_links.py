"""Transfers that share links, against a simulation in small steps of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.shared_links import shared_lags, work_alone

Job = list[tuple[int, int, int]]  # per transfer: link, start, work


def _in_small_steps(job: Job, in_turn: int) -> list[float]:
    """Return when each transfer ends, by letting time go on by a hundredth."""
    left = [float(work) for _, _, work in job]
    ends, now = [0.0] * len(job), 0.0
    while any(rest > 1e-9 for rest in left):
        running = [i for i, (_, start, _) in enumerate(job) if start <= now + 1e-9 and left[i] > 1e-9]
        for i in running:
            same = [j for j in running if job[j][0] == job[i][0]]
            first = min(same, key=lambda j: (job[j][1], j))
            rate = float(first == i) if in_turn else 1 / len(same)
            left[i] -= 0.01 * rate
            ends[i] = now + 0.01
        now += 0.01
    return ends


def _ends(job: Job, in_turn: int) -> list[int]:
    """Return when each transfer ends, as `shared_lags` has it: transfer i is the edge from vertex 2i to 2i + 1."""
    count = len(job)
    head = np.zeros(2 * count, np.int64)
    head[0::2] = [start for _, start, _ in job]
    work = np.array([work for _, _, work in job], np.float64)
    nothing, no_gap = np.zeros(count, np.int64), np.zeros(2 * count, np.int64)
    offsets, links = np.arange(count + 1), np.array([link for link, _, _ in job])
    lags = shared_lags(
        _offsets(count, 1), _offsets(count, 0), 2 * np.arange(count) + 1, nothing, no_gap, head, np.arange(count), work,
        offsets, links, in_turn,
    )  # fmt: skip
    return [start + int(lag) for (_, start, _), lag in zip(job, lags, strict=True)]


def _offsets(count: int, odd: int) -> np.ndarray:
    return np.cumsum([0] + [int(vertex % 2 == odd) for vertex in range(2 * count)])


@pytest.mark.parametrize("in_turn", [0, 1])
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=4))
@settings(max_examples=15)
def test_transfers_end_as_in_a_simulation_in_small_steps(in_turn: int, job: Job) -> None:
    slow = _in_small_steps(job, in_turn)
    assert _ends(job, in_turn) == pytest.approx(slow, abs=0.6)  # whole ns, and steps of 0.01


@pytest.mark.parametrize("in_turn", [0, 1])
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2000), st.integers(100, 900)), min_size=1, max_size=5))
@settings(max_examples=15)
def test_the_work_of_what_was_recorded_gives_back_the_recording(in_turn: int, job: Job) -> None:
    ends = np.array(_ends(job, in_turn), np.float64)
    starts = np.array([start for _, start, _ in job], np.float64)
    links = np.arange(len(job) + 1), np.array([link for link, _, _ in job])
    work = work_alone(starts, ends, np.arange(len(job)), *links, in_turn)
    assert work == pytest.approx([work for _, _, work in job], abs=2)


def test_two_at_once_take_twice_as_long_and_in_turn_the_second_waits() -> None:
    job: Job = [(0, 0, 10), (0, 0, 10)]
    assert _ends(job, 0) == [20, 20]
    assert _ends(job, 1) == [10, 20]
    assert _ends([(0, 0, 10), (1, 0, 10)], 0) == [10, 10]
