"""Whether a straggler is named only where there is one."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from htagraph import Stragglers
from htagraph.output.wording.stragglers import sentences

RANKS = pd.DataFrame(
    {
        "rank": [0, 1],
        "share_percent": [10.0, 90.0],
        "blamed_us": [1.0, 9.0],
        "slow": [False, False],
        "evidence": ["a", "b"],
    }
)


def found(straggler: int | None, total_us: float = 10.0) -> Stragglers:
    return Stragglers(RANKS, pd.DataFrame(), straggler, total_us)


def test_the_straggler_has_its_share_its_evidence_and_a_command() -> None:
    first, why, command = sentences(found(1), 2, ["x"])
    assert first.startswith("Rank 1 is the straggler: 90 % of the wait time (10.0 µs over all ranks)")
    assert (why, command.rpartition(": ")[2]) == ("Why: b.", "htagraph what-if x --fix-straggler 1")


def test_without_a_straggler_the_largest_share_is_named() -> None:
    first, second = sentences(found(None), 2, [])
    assert "by more than chance" in first
    assert second == "The largest share, 90 %, is charged to rank 1: b."


@pytest.mark.parametrize(
    ("slow", "why"), [(0, "another one is charged more"), (1, "that is too little, or mostly its transfers")]
)
def test_a_slow_rank_that_is_not_the_straggler_is_said_to_be_slow(slow: int, why: str) -> None:
    ranks = RANKS.assign(slow=RANKS["rank"] == slow, slow_excess_us=5.0)
    first, _ = sentences(replace(found(None), ranks=ranks), 2, [])
    assert first.endswith(f"but no rank is the straggler: rank {slow} is slower by 5.0 µs a step, but {why}.")


def test_nothing_to_compare_is_said_so() -> None:
    assert sentences(found(None), 1, [])[0].startswith("Only one rank was read")
    assert sentences(found(None, 0.0), 2, ["x"])[0].endswith(": htagraph collectives x")


def test_where_nobody_can_be_charged_nobody_is_said_to_be() -> None:
    unknown = RANKS.assign(blamed_us=[0.0, 0.0], share_percent=[0.0, 0.0])
    (only,) = sentences(replace(found(None), ranks=unknown), 2, [])
    assert only.startswith("It is not known which rank waits for which")
    first, *_ = sentences(replace(found(1), ranks=unknown), 2, [])
    assert "slow by its own steps" in first
    assert "%" not in first
