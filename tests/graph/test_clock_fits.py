"""Fits of clock offsets against brute force and known truth."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.graph.clock_fits import as_recorded_is_possible, feasible_offsets, limits


def met(seed: int, ranks: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (ends, arrivals, offsets) of ranks that met, a row per meeting, on clocks that are off."""
    draw = np.random.default_rng(seed)
    start = 5e6 * np.arange(count)[:, None] + draw.exponential(3e5, (count, ranks))
    end = start.max(axis=1)[:, None] + draw.uniform(1e4, 4e5, (count, ranks))  # ends scatter
    offset = np.concatenate(([0.0], draw.uniform(-1e6, 1e6, ranks - 1)))
    return end + offset, start + offset, offset


@pytest.mark.parametrize("seed", range(20))
def test_limits_hold_the_truth_and_the_middle_is_possible(seed: int) -> None:
    end, start, offset = met(seed, 2 + seed % 3, 1 + seed % 5)
    low, high = limits(end, start, 0)
    assert (low <= offset + 1).all()
    assert (offset <= high + 1).all()
    middle = feasible_offsets(end, start)
    assert ((start - middle).max(axis=1) <= (end - middle).min(axis=1) + 1).all()


def test_one_direction_limits_one_side() -> None:
    """A send limits the clock of its receive only: the receive may be over any time later."""
    start, waited = np.array([[0.0, np.nan]]), np.array([[np.nan, 50.0]])
    low, high = limits(waited, start, 0)
    assert (low[1], high[1]) == (-np.inf, 50.0)


@pytest.mark.parametrize("seed", range(20))
def test_clocks_may_be_right_unless_somebody_ends_before_another_arrives(seed: int) -> None:
    end, start, _ = met(seed, 3, 5)
    assert as_recorded_is_possible(end, start) == bool((start.max(axis=1) <= end.min(axis=1) + 2_000).all())
