"""Whether the largest share of waiting decides who is named and what to run next."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import htagraph as hg
from htagraph import Stragglers
from htagraph.findings.verbs.ranks import collectives_sentences, stragglers_sentences
from htagraph.queries.straggler import Difference
from tests.reach import DATA, graph_of

LATE = pd.DataFrame({"last_rank": [3], "collectives": [1], "waited_us": [70.0]})


def parts(wait: float, transfer: float, *, matched: bool = True) -> pd.DataFrame:
    row = {"duration_us": [100.0], "wait_us": [wait], "transfer_us": [transfer], "excess_us": [100 - wait - transfer]}
    row |= {"beside_us": [0.0], "wait_or_transfer_us": [0.0], "collective": [0], "absent": [0]}
    row |= {"rank": [0], "bytes": [1e6], "start_us": [0.0], "busbw_gb_s": [1.0]}
    named = {"name": ["gloo:all_reduce"], "op": ["all_reduce"], "matched": [matched]}
    return pd.DataFrame({**row, **named})


def test_waiting_names_the_last_rank_and_transfers_name_the_network() -> None:
    assert collectives_sentences(parts(70, 30), LATE, ["x"])[1].endswith("rank 3 comes last: htagraph stragglers x")
    assert collectives_sentences(parts(10, 80), LATE, ["x"])[1].endswith("htagraph what-if x --network 0.5")
    assert len(collectives_sentences(parts(20, 40), LATE, ["x"])) == 1
    two = pd.DataFrame({"last_rank": [3, 1], "collectives": [1, 2], "waited_us": [70.0, 69.0]})
    answer, why = collectives_sentences(parts(70, 30), two, ["x"])
    assert "70 % waiting for the last rank to arrive (139.0 µs for ranks 1 and 3, last in 3 collectives)" in answer
    assert why == "To see why ranks 1 and 3 come last: htagraph stragglers x"


def test_a_network_that_gains_nothing_is_not_to_be_tried() -> None:
    hidden = collectives_sentences(parts(10, 80), LATE, ["x"], 0.0, hg.what_if(graph_of(DATA / "demo")).run)[1]
    assert "the job would hardly be shorter" in hidden
    assert hidden.endswith("htagraph critical-path x")


def test_unmatched_parts_and_jobs_without_collectives_are_named() -> None:
    assert "could not be matched" in collectives_sentences(parts(0, 0, matched=False), LATE, [])[-1]
    assert collectives_sentences(parts(0, 0).iloc[:0], LATE, []) == ["No collective was recorded."]


def test_what_may_be_waiting_for_ranks_without_a_recording_does_not_blame_the_network() -> None:
    table = parts(10, 0).assign(absent=[2], excess_us=[0.0], wait_or_transfer_us=[90.0])
    text = collectives_sentences(table, LATE, ["x"])
    assert "10 % waiting for the last rank to arrive (70.0 µs for rank 3, last in 1 collective), and 90 %" in text[0]
    assert "members were not recorded (up to 2 ranks)" in text[-1]
    assert not any("--network" in sentence for sentence in text)


def test_time_beside_other_work_is_no_time_in_collectives() -> None:
    text = collectives_sentences(parts(30, 20).assign(duration_us=[500.0], beside_us=[400.0]), LATE, ["x"])
    assert text[0].startswith("Rank 0 spends 100.0 µs in collectives: 30 % waiting")
    assert "lasted 400.0 µs more" in text[-1]


def test_waiting_that_is_not_known_is_no_share() -> None:
    alone = parts(0, 0, matched=False).assign(excess_us=0.0, wait_or_transfer_us=100.0)
    assert collectives_sentences(alone, LATE, [])[0] == (
        "Rank 0 spends 100.0 µs in collectives; how much of that is waiting, only the files of all ranks tell."
    )


def test_the_fastest_transfer_is_no_measure_without_sizes_or_where_it_took_no_time() -> None:
    two = pd.concat([parts(0.1, 50), parts(0, 50).assign(rank=1)])
    assert collectives_sentences(two, LATE, [])[0].endswith("and 50 % beyond the fastest transfer of the same kind.")
    assert collectives_sentences(two, LATE, [])[0].startswith(
        "All ranks together spend 200.0 µs in collectives: under 1 % waiting"
    )


def test_without_sizes_only_the_fastest_transfers_are_surely_transfer() -> None:
    said = collectives_sentences(parts(0, 1).assign(bytes=float("nan")), LATE, ["x"])
    answer = said[0]
    assert answer.endswith(
        "1 % surely transferring, and 99 % of which it is not known how much is transfer (sizes were not recorded)."
    )
    assert not any("--network" in line for line in said)


RANKS = pd.DataFrame({
    "rank": [0, 1], "share_percent": [10.0, 90.0], "blamed_us": [1.0, 9.0], "slow": [False, False],
    "step_excess_us": [1.0, 1.0], "evidence": ["a", "b"], "slow_excess_us": [5.0, 5.0], "slow_steps": [9, 9],
    "late_count": [2, 8], "step_error_us": [1.0, 1.0], "cause": ["none", "none"],
})  # fmt: skip


def found(straggler: int | None, total_us: float = 10.0) -> Stragglers:
    return Stragglers(RANKS, straggler, total_us)


def test_the_straggler_has_its_share_its_evidence_and_a_command() -> None:
    first, why, command = stragglers_sentences(found(1), 2, ["x"])
    assert first.startswith("Rank 1 is the straggler: 90 % of the wait time (10.0 µs over all ranks)")
    assert (why, command.rpartition(": ")[2]) == ("Why: b.", "htagraph what-if x --fix-straggler 1")


def test_without_a_straggler_the_largest_share_is_named() -> None:
    even = RANKS.assign(share_percent=[48.0, 52.0])
    first, second = stragglers_sentences(replace(found(None), ranks=even, steps=9), 2, [])
    assert first.endswith(
        "the largest part for rank 1 (52 %); but no single rank is slower than its peers beyond chance."
    )
    assert second == "Rank 1: b."


def test_too_few_steps_are_said_with_who_is_charged_what_it_did_and_what_to_record() -> None:
    """The sentence must not sound as if all ranks were even."""
    stalled = (
        Difference("aten::cat", 90.0, 2.0, 3, 3, 80.0), Difference("log", 9.0, 0.0, 3, 0, 3.0),
        Difference("aten::mm", 5.01, 5.0, 9, 9, 1.0),
    )  # fmt: skip
    few = replace(found(None), steps=3, differences=stalled, alone=(3, 9.0))
    first, second, more, todo = stragglers_sentences(few, 2, ["x"])
    assert "most of it for rank 1 (90 %); but from 3 steps nobody can tell" in first
    assert second == "Rank 1: b."
    assert (
        "aten::cat, 90.0 µs, 80.0 µs of it at once (the others at most 2.0 µs); log, 3 times, 9.0 µs (no other" in more
    )
    assert "aten::mm" not in more
    assert "record 5 steps or more" in todo
    assert len(stragglers_sentences(replace(found(None), steps=9), 2, [])) == 2


def test_a_rank_whose_result_all_wait_for_is_no_straggler() -> None:
    update = Difference("update", 30.0, 0.0, 3, 0, 10.0)
    (only,) = stragglers_sentences(replace(found(None), serves=0, differences=(update,)), 2, [])
    assert only.endswith("work that no other rank does (update, 3 times, 30.0 µs), and the others wait for its result.")


@pytest.mark.parametrize(
    ("slow", "why"), [(0, "explains too little"), (1, "costs too little, or is slow mostly in its transfers")]
)
def test_a_slow_rank_that_is_not_the_straggler_is_said_to_be_slow(slow: int, why: str) -> None:
    ranks = RANKS.assign(slow=RANKS["rank"] == slow)
    first, *_ = stragglers_sentences(replace(found(None), ranks=ranks), 2, [])
    assert first.endswith(f"but rank {slow}, slower than its peers by 5.0 µs a step, {why}.")


@pytest.mark.parametrize(
    ("cause", "excess_us", "why"),
    [("network", -3.0, "its transfers end later"), ("host", 9.0, "its transfers end later"),
     ("host", 1.0, "its own work takes no longer than that of its peers")],
)  # fmt: skip
def test_a_rank_that_is_always_last_is_said_to_be(cause: str, excess_us: float, why: str) -> None:
    ranks = RANKS.assign(late_count=[0, 8], cause=cause, step_excess_us=excess_us)
    slow = replace(found(None), ranks=ranks, steps=9, nobody_us={"clocks": 2.0})
    first, nobody, *_ = stragglers_sentences(slow, 2, [])
    assert first.endswith(f"but rank 1 comes last in 8 of 8 collectives, and {why}.")
    assert nobody == "Of the waiting, 20 % cannot be blamed: the clocks of the ranks were not compared."


def test_nothing_to_compare_is_said_so() -> None:
    assert stragglers_sentences(found(None), 1, [])[0].startswith("Only one rank was read")
    assert stragglers_sentences(found(None, 0.0), 2, ["x"])[0].endswith(": htagraph collectives x")


def test_where_nobody_can_be_charged_nobody_is_said_to_be() -> None:
    unknown = RANKS.assign(blamed_us=[0.0, 0.0], share_percent=[0.0, 0.0])
    (only,) = stragglers_sentences(replace(found(None), ranks=unknown), 2, [])
    assert only.startswith("It is not known which rank waits for which")
    first, *_ = stragglers_sentences(replace(found(1), ranks=unknown), 2, [])
    assert "slow by its own steps" in first
    assert "%" not in first
