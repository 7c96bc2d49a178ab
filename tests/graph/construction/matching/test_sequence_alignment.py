"""How sequences of collectives lie side by side: shift and clock offset are recovered where they were put in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.graph.construction.matching.sequence_alignment import Track, fit_pair, slope


def recorded(seed: int, ranks: int, count: int = 40) -> list[Track]:
    """Return the sequences of ranks that met `count` times, all on one clock, from the first meeting to the last."""
    draw = np.random.default_rng(seed)
    now = np.zeros(ranks)
    arrivals, ends = [], []
    for _ in range(count):
        arrivals.append(now + draw.exponential(80_000, ranks) + 5_000)
        ends.append(arrivals[-1].max() + draw.uniform(20_000, 60_000) + draw.uniform(0, 1_500, ranks))
        now = ends[-1] + draw.uniform(1_000, 300_000)
    return [track(rank, np.array(arrivals)[:, rank], np.array(ends)[:, rank]) for rank in range(ranks)]


def track(number: int, start: np.ndarray, end: np.ndarray, rank: int = -1) -> Track:
    same = np.zeros(len(start), np.int64)
    return Track(
        number, rank if rank >= 0 else number, np.arange(len(start)), start, end, same, same == 0, 0, certain=False
    )


def cut(whole: Track, head: int, offset: float) -> Track:
    """Return a sequence without its first meetings, on a clock that is off."""
    return track(whole.number, whole.start[head:] + offset, whole.end[head:] + offset, whole.rank)


@given(st.integers(0, 10**6), st.integers(0, 6), st.floats(-5e6, 5e6))
@settings(max_examples=60)
def test_a_pair_is_fitted_at_the_true_shift_and_offset(seed: int, head: int, offset: float) -> None:
    a, b = recorded(seed, 2)
    fit = fit_pair(a, cut(b, head, offset))
    assert fit is not None
    assert fit.shift == head
    assert abs(fit.offset - offset) <= 2_000
    turned = fit_pair(cut(b, head, offset), a)
    assert turned is not None
    assert (turned.shift, round(turned.offset)) == (-head, -round(fit.offset))


@pytest.mark.parametrize("period", [0.0, 1.0])
def test_collectives_of_one_step_lie_side_by_side_whatever_ends_suggest(period: float) -> None:
    """On host threads ends lie apart; a whole step later they may seem to fit better."""
    start = np.arange(10) * 1e6
    a = track(0, start, start + 4e5)
    b = track(1, start, start + 4e5 + 1e3 * np.arange(10) % 7 + period * 1e6)
    numbers = np.arange(10) + 3
    first, second = (replace(each, steps=numbers, on_host=True) for each in (a, b))
    fit = fit_pair(first, second)
    assert fit is not None
    assert fit.shift == 0


def test_steps_decide_however_much_is_missing() -> None:
    a, b = recorded(5, 2, count=60)
    numbers = np.arange(60) // 3
    whole = replace(a, steps=numbers)
    for head, tail in ((0, 50), (50, 60), (29, 31), (3, 59)):
        part = Track(
            1, 1, b.rows[head:tail], b.start[head:tail] + 7e6, b.end[head:tail] + 7e6, b.label[head:tail],
            b.barrier[head:tail], 0, certain=True, steps=numbers[head:tail],
        )  # fmt: skip
        fit = fit_pair(whole, part)
        assert fit is not None
        assert fit.shift == head


def test_no_shift_fits_different_operations() -> None:
    a, b = recorded(3, 2)
    other = Track(1, 1, b.rows, b.start, b.end, b.label + 1, b.barrier, 0, certain=False)
    assert fit_pair(a, other) is None


@pytest.mark.parametrize("follows", [0.0, 1.0])
def test_the_slope_is_how_much_ends_follow_arrivals(follows: float) -> None:
    draw = np.random.default_rng(1)
    arrivals, when = draw.normal(0, 100_000, 200), np.arange(200) * 1e6
    ends = follows * arrivals + 0.002 * when + draw.normal(0, 500, 200)
    value, doubt, _, _ = slope(ends, arrivals + 0.002 * when, when)
    assert value == pytest.approx(follows, abs=0.05)
    assert doubt < 0.1
