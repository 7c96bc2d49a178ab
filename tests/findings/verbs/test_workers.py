"""What is said of ranks on workers that wait for each other."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.findings.verbs.workers import late
from htagraph.queries.straggler import RankStragglers


@pytest.mark.parametrize(
    ("steps", "is_slow", "serves", "why"),
    [
        (1, "no", None, "from 1 step nobody can tell whether a rank is slow or was late by chance"),
        (4, "no", None, "from 4 steps nobody can tell whether a rank is slow or was late by chance"),
        (5, "no", None, "no single rank is slower than its peers beyond chance"),
        (1, "yes", None, "rank 1, slower than its peers by 900.0 µs a step, explains too little"),
        (1, "yes", 1, "rank 1 does work that no other rank does, and the others wait for its result"),
    ],
)
def test_that_nobody_is_slow_is_said_only_where_there_are_steps_to_tell(
    steps: int, is_slow: str, serves: int | None, why: str
) -> None:
    ranks = pd.DataFrame(
        {
            "rank": [0, 1, 2],
            "share_percent": [60.0, 30.0, 10.0],
            "slow": [False, is_slow == "yes", False],
            "slow_excess_us": 900.0,
            "slow_steps": 1,
            "step_excess_us": 1.0,
            "step_error_us": 1.0,
            "late_count": 3,
        }
    )
    whom = "most of it for rank 0 (60 %)"
    said = late(RankStragglers(ranks, None, 2_000.0, serves, steps))
    assert said == [f"Ranks wait 2.00 ms for each other (summed over ranks), {whom}; but {why}."]


def test_where_nobody_waits_nobody_islate() -> None:
    ranks = pd.DataFrame({"rank": [0], "share_percent": [0.0], "slow": [False]})
    assert late(RankStragglers(ranks, None, 0.0, None, 9)) == ["No rank waits for another."]
