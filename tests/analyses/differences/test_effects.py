"""Effects of changed work, on jobs whose answer is obvious."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from htagraph import DependencyGraph
from htagraph.analyses.differences.alignment import align
from htagraph.analyses.differences.compared_parts import parts_of
from htagraph.analyses.differences.effects import Effects, effects
from tests.strategies import Json, load, op, traces

COLUMNS = ["name", "kind", "before_us", "after_us", "change_us", "effect_us"]


def between(before: DependencyGraph, after: DependencyGraph, count: int = 10) -> Effects:
    return effects(align(before, after), parts_of(before, after, None, None, None), count)


def in_a_row(**durations: int) -> list[Json]:
    """Return operators of one thread, each starting when the one before ends."""
    events, at = [], 0
    for name, duration in durations.items():
        events.append(op(name, at, duration))
        at += duration
    return events


def test_on_one_thread_an_effect_is_the_change_of_the_operators_own_time() -> None:
    result = between(load(in_a_row(a=10, b=20, c=5)), load(in_a_row(a=10, b=50, c=2)))
    assert result.to_frame()[COLUMNS].to_numpy().tolist() == [
        ["b", "op", 20.0, 50.0, 30.0, 30.0], ["c", "op", 5.0, 2.0, -3.0, -3.0]
    ]  # fmt: skip
    assert result.explained_us == pytest.approx(27)


def test_an_operator_beside_a_longer_one_has_no_effect() -> None:
    def job(aside: int) -> DependencyGraph:
        return load([op("main", 0, 100), op("aside", 0, aside, tid=77)])

    (row,) = between(job(10), job(40)).to_frame().to_dict("records")
    assert (row["name"], row["change_us"], row["effect_us"]) == ("aside", 30.0, 0.0)


def test_only_the_operators_that_changed_most_are_replayed_one_by_one_but_all_together() -> None:
    result = between(load(in_a_row(a=10, b=20, c=5)), load(in_a_row(a=11, b=50, c=2)), count=1)
    assert result.to_frame()["name"].tolist() == ["b"]
    assert result.explained_us == pytest.approx(28)


def test_an_empty_job_has_no_effects() -> None:
    result = between(load([]), load(in_a_row(a=10)))
    assert (len(result.to_frame()), result.explained_us) == (0, 0.0)
    full = between(load(in_a_row(a=1)), load(in_a_row(a=2)))
    assert result.to_frame().dtypes.to_dict() == full.to_frame().dtypes.to_dict()


@settings(max_examples=15, deadline=None)
@given(traces(), traces())
def test_the_other_way_round_effects_have_the_other_sign(first: Any, second: Any) -> None:
    before, after = load(first), load(second)
    there, back = between(before, after, 0), between(after, before, 0)
    assert there.explained_us == pytest.approx(-back.explained_us, abs=0.01)
