"""Predictions against the simulator: a small sample of what ``benchmarks/accuracy.py`` measures at large."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.accuracy import Trial, trial

RECORDED = ("complete", "no cuda_sync", "no group args", "neither", "skewed clocks", "old era")
REGIMES = ("graphed forward", "host_bound", "communication_bound", "straggler", "mesh", "fsdp")


@cache
def found(recorded: str) -> list[Trial]:
    """Return six changes to a job, of another regime for each way of recording."""
    number = RECORDED.index(recorded)
    return list(trial(70_000 + 10 * number, REGIMES[number], recorded, count=6))


@pytest.mark.slow
@pytest.mark.parametrize("recorded", RECORDED)
def test_no_prediction_is_far_off(recorded: str) -> None:
    off = [each for each in found(recorded) if each.error > 0.02]
    assert len(found(recorded)) >= 3
    assert not off


def test_most_predictions_are_as_good_as_exact() -> None:
    errors = sorted(each.error for recorded in RECORDED for each in found(recorded))
    assert errors[len(errors) // 2] <= 0.005


def test_changes_that_change_much_are_among_them() -> None:
    effects = [abs(each.true_ns / each.baseline_ns - 1) for recorded in RECORDED for each in found(recorded)]
    assert sum(effect > 0.05 for effect in effects) >= 5
