"""Whether a straggler is named only where there is one."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from htagraph import Stragglers
from htagraph.findings.verbs.stragglers import sentences
from htagraph.queries.straggler import Difference

RANKS = pd.DataFrame(
    {
        "rank": [0, 1],
        "share_percent": [10.0, 90.0],
        "blamed_us": [1.0, 9.0],
        "slow": [False, False],
        "step_excess_us": [1.0, 1.0],
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
    even = RANKS.assign(share_percent=[48.0, 52.0])
    first, second = sentences(replace(found(None), ranks=even, steps=9), 2, [])
    assert first.endswith("charged to many of them; no rank's steps are slower by more than chance.")
    assert second == "The largest share, 52 %, is charged to rank 1: b."


def test_too_few_steps_are_said_with_who_is_charged_what_it_did_and_what_to_record() -> None:
    """The sentence must not sound as if all ranks were even."""
    stalled = (
        Difference("aten::cat", 90.0, 2.0, 3, 3, 80.0), Difference("log", 9.0, 0.0, 3, 0, 3.0),
        Difference("aten::mm", 5.01, 5.0, 9, 9, 1.0),
    )  # fmt: skip
    few = replace(found(None), steps=3, differences=stalled, alone=(3, 9.0))
    first, second, more, alone, todo = sentences(few, 2, ["x"])
    assert "most of it for rank 1 (90 %); but from 3 steps nobody can tell" in first
    assert second == "Rank 1: b."
    assert (
        "aten::cat, 90.0 µs, 80.0 µs of it at once (the others at most 2.0 µs); log, 3 times, 9.0 µs (no other" in more
    )
    assert "aten::mm" not in more
    assert alone == "Rank 1 also does 3 operators and kernels that no other rank does (9.0 µs in all)."
    assert "record 5 steps or more" in todo
    late = sentences(replace(few, ranks=few.ranks.assign(step_excess_us=-1.0)), 2, [])
    assert late[1].endswith("It is late at single collectives, not over whole steps.")
    assert len(sentences(replace(found(None), steps=9), 2, [])) == 2


def test_a_rank_whose_result_all_wait_for_is_no_straggler() -> None:
    update = Difference("update", 30.0, 0.0, 3, 0, 10.0)
    (only,) = sentences(replace(found(None), serves=0, differences=(update,)), 2, [])
    assert only.endswith("work that no other rank does (update, 3 times, 30.0 µs), and the others wait for its result.")


@pytest.mark.parametrize(
    ("slow", "why"), [(0, "another one is charged more"), (1, "that is too little, or mostly its transfers")]
)
def test_a_slow_rank_that_is_not_the_straggler_is_said_to_be_slow(slow: int, why: str) -> None:
    ranks = RANKS.assign(slow=RANKS["rank"] == slow, slow_excess_us=5.0)
    first, *_ = sentences(replace(found(None), ranks=ranks), 2, [])
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
