"""The record of tolerances, and the ladder of confidence."""

from __future__ import annotations

from dataclasses import astuple

from htagraph.core.kinds import UNCERTAIN
from htagraph.graph.tolerances import LIMITS, Confidence


def test_a_clock_is_more_exact_than_two() -> None:
    assert LIMITS.resolution_ns < LIMITS.tick_ns < LIMITS.two_clocks_ns < LIMITS.proven_by_id_ns
    assert LIMITS.tick_ns < LIMITS.window_ns < LIMITS.queued_ns < LIMITS.idle_start_ns
    assert LIMITS.own_call_ns < LIMITS.usual_return_ns < LIMITS.long_call_ns
    assert min(astuple(LIMITS)) > 0


def test_what_no_call_or_occurrence_shows_is_uncertain() -> None:
    assert list(Confidence) == sorted(Confidence, reverse=True)
    assert Confidence.COUNTED < UNCERTAIN <= Confidence.NOT_RECORDED
