"""What is said of a job whose host code is interrupted: how often, how it lies in time, and only what is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import htagraph as hg
from htagraph.findings.finding import claims_that_are
from htagraph.findings.gain import GAIN, GainClaim
from htagraph.findings.host_pause import HOST_PAUSE
from htagraph.findings.interrupted import INTERRUPTED, InterruptedClaim, NativeShares
from htagraph.findings.results import Results
from htagraph.output.reports.ranks import stragglers_report
from tests.findings.claims_by_hand import gained
from tests.queries.test_interruptions import MANY, host_job
from tests.reach import DATA, graph_of
from tests.strategies import load


def claim(**more: Any) -> InterruptedClaim:
    made = InterruptedClaim(
        "interrupted",
        "",
        346_300.0,
        "us",
        gain=gained(346_300.0, 50.0),
        counts={0: 18, 1: 40, 2: 20},
        shares={0: 68.2, 1: 73.1, 2: 70.0},
        pattern="",
        going=2,
        activities=frozenset(),
        native=NativeShares(interrupted=0.0, usual=0.9),
    )
    return replace(made, **more)


def test_the_claim_gives_what_a_replay_without_them_gains() -> None:
    graph = load(host_job(MANY))
    (found,) = INTERRUPTED.when(Results(graph))
    assert found.figure == hg.what_if(graph).no_interruptions().run().saved_ns / 1000
    assert found.interval is not None
    assert found.interval[0] <= found.figure <= found.interval[1]
    assert isinstance(found, InterruptedClaim)
    assert found.counts == {0: 3, 1: 3}


def test_a_summary_says_it_and_gives_the_command_first() -> None:
    summary = hg.summarize(load(host_job(MANY)))
    assert summary.verdict[1].startswith("Host code is interrupted on all ranks, 3 times each, for ")
    assert "Without that, the job would take " in summary.verdict[1]
    assert summary.head.why[0].startswith("Something outside of host code interrupts it for ")
    first = summary.changes.first
    assert first is not None
    assert first.options == ("--no-interruptions",)
    assert len(summary.tables["interruptions"]) == len(summary.whole()["interruptions"]) == 6


def test_an_interrupted_operator_is_not_named_as_what_the_host_does() -> None:
    results = Results(load(host_job(MANY)))
    assert HOST_PAUSE.when(results) == []
    gains = claims_that_are(GainClaim, GAIN.when(results))
    assert all(each.is_interrupted for each in gains)
    assert "interruptions of host code" not in [each.about for each in gains]


@pytest.mark.slow
def test_of_interruptions_that_cost_little_nothing_is_said() -> None:
    stops = {(0, number, 9 * call): 1_000 for number, call in enumerate((9, 7, 5, 3, 2, 6))}
    little = load(host_job(stops, ranks=1, steps=6, calls=110))
    assert len(hg.interruptions(little)) == len(stops)
    assert INTERRUPTED.when(Results(little)) == []


@pytest.mark.parametrize("stops", [{}, {(0, 0, 20): 30_000}])
def test_of_none_and_of_one_nothing_is_said(stops: dict[tuple[int, int, int], int]) -> None:
    assert INTERRUPTED.when(Results(load(host_job(stops)))) == []


def test_how_often_how_long_and_where() -> None:
    assert INTERRUPTED.short(claim()) == (
        "Host code is interrupted on all ranks, 18 to 40 times each, for 68 to 73 % of its time, by something "
        "outside of it. Without that, the job would take 346.3 ms less (50 %)."
    )
    some = claim(counts={0: 9, 1: 1}, shares={0: 20.0, 1: 0.1})
    assert INTERRUPTED.short(some).startswith("Host code is interrupted on rank 0, 9 times, for 20 % of its")


@pytest.mark.parametrize(
    ("pattern", "words", "check"),
    [
        ("in turn", "only 2 of 3 ranks runs at a time, as if all shared 2 cores", "taskset"),
        ("together", "on all ranks at the same moments", "swapping"),
        ("", "by something outside of it.", "garbage collector"),
    ],
)  # fmt: skip
def test_only_what_the_trace_shows_is_said_of_the_cause(pattern: str, words: str, check: str) -> None:
    assert words in INTERRUPTED.short(claim(pattern=pattern))
    advice = INTERRUPTED.advice(claim(pattern=pattern, shares={0: 10.0, 1: 60.0}))
    assert check in advice
    assert ("gc.freeze" in advice) == (pattern == "")
    assert "gc.freeze" not in INTERRUPTED.advice(claim(pattern=pattern))  # 68 % are no garbage collector


def test_inside_operators_no_garbage_collector_runs() -> None:
    graph = load(host_job(MANY))
    (found,) = INTERRUPTED.when(Results(graph))
    assert isinstance(found, InterruptedClaim)
    assert found.native.interrupted == 1.0
    assert "inside operators of PyTorch, where no Python runs" in INTERRUPTED.short(found)
    assert "gc.freeze" not in INTERRUPTED.advice(found)
    assert INTERRUPTED.advice(found).startswith("Give the processes more cores")


@pytest.mark.parametrize(
    ("native", "usual", "first"),
    [
        (0.0, 0.9, "Check Python's garbage collector"),  # what stops any code would hit operators, too
        (0.3, 0.4, "Check the cores"),
        (0.0, 0.0, "Check the cores"),  # there is no code that could tell
        (0.8, 0.9, "Give the processes more cores"),
    ],
)
def test_what_is_checked_first_follows_from_the_code_that_was_hit(native: float, usual: float, first: str) -> None:
    some = claim(pattern="", shares={0: 10.0}, native=NativeShares(native, usual))
    assert INTERRUPTED.advice(some).startswith(first)


def test_the_longest_are_shown_with_their_places() -> None:
    results = Results(load(host_job(MANY)))
    evidence = INTERRUPTED.evidence(results, *INTERRUPTED.when(results))
    assert evidence.rows.frame["name"].str.startswith("aten::op").sum() == len(evidence.rows.places) == 5


def test_stragglers_end_with_it() -> None:
    assert stragglers_report(load(host_job(MANY)), ["job"]).sentences[-1].startswith("Host code is interrupted on")
    assert not any("interrupted" in line for line in stragglers_report(graph_of(DATA / "demo"), ["job"]).sentences)
