"""Whether totals may be given per step: there are steps, and they are nearly all of the recording."""

from __future__ import annotations

import pytest

from htagraph.queries.whole_steps import whole_steps
from tests.strategies import load, op, step


@pytest.mark.parametrize(("beside_us", "steps"), [(0, 4), (20, 4), (200, 0)])
def test_steps_count_where_they_cover_the_recording(beside_us: int, steps: int) -> None:
    events = [step(number, 100 * number, 99) for number in range(4)]
    assert whole_steps(load([*events, op("a", 10, 20), op("after", 400, beside_us)])) == steps


def test_without_steps_there_are_none() -> None:
    assert whole_steps(load([op("a", 0, 10)])) == whole_steps(load([])) == 0


def test_ranks_that_number_their_steps_differently_have_them_once() -> None:
    """Of ten steps numbered 2 to 11 on one rank and 102 to 111 on the other, a gain per step was half of what it is."""
    ranks = {rank: [step(100 * rank + number, 100 * number, 99) for number in range(4)] for rank in (0, 1)}
    assert whole_steps(load({rank: [*steps, op("a", 10, 20)] for rank, steps in ranks.items()})) == 4
