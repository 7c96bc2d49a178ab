"""Which steps are recorded."""

from __future__ import annotations

from typing import Any

import pytest

from htagraph.core.errors import SelectionError
from htagraph.trace.recording.plan import Plan, plan_of


@pytest.mark.parametrize(
    ("steps", "warmup", "plan"),
    [
        (1, 0, Plan(1, 0, 1)),
        (3, 2, Plan(1, 2, 3)),
        ("5-7", 2, Plan(3, 2, 3)),
        (" 5 - 5 ", 2, Plan(3, 2, 1)),
        ("5", 9, Plan(0, 5, 1)),
        ("0", 2, Plan(0, 0, 1)),
    ],
)
def test_steps_are_as_many_or_those_of_a_range_with_a_warm_up_before(steps: Any, warmup: int, plan: Plan) -> None:
    assert plan_of(steps, warmup) == plan


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("last", range(6))
def test_a_range_records_exactly_its_steps(first: int, last: int) -> None:
    if last < first:
        with pytest.raises(SelectionError, match="such as '5-7'"):
            plan_of(f"{first}-{last}", 1)
        return
    plan = plan_of(f"{first}-{last}", 1)
    assert list(range(plan.first, plan.end)) == list(range(first, last + 1))


@pytest.mark.parametrize("steps", [0, -1, True, 2.0, None, "", "-3", "x", "1-", "1,2", "9" * 12])
def test_what_is_no_step_is_an_error(steps: Any) -> None:
    with pytest.raises(SelectionError, match="steps="):
        plan_of(steps, 1)


@pytest.mark.parametrize("warmup", [-1, 1.5, None])
def test_what_is_no_warm_up_is_an_error(warmup: Any) -> None:
    with pytest.raises(SelectionError, match="warmup="):
        plan_of(3, warmup)
