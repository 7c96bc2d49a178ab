"""Whether odd steps, which make means per step uncertain, are told with their times."""

from __future__ import annotations

import pytest

from htagraph.findings.results import Results
from htagraph.findings.uneven_steps import (
    UNEVEN_STEPS,
    LongReason,
    StepTimes,
    UnevenStepsClaim,
    step_range_text,
    step_text,
    usual_step_text,
)
from tests.strategies import OTHER, Json, annotation, load, op, step


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        (
            (400, 100, 100),
            ["Step 0 takes 400.0 µs, the others about 100.0 µs; figures per step are of the others."],
        ),
        (
            (400, 100, 100, 300, 100),
            ["Steps 0 and 3 take 300.0 µs to 400.0 µs, the others about 100.0 µs; figures per step are of the others."],
        ),
        (
            (*((100, 100, 300) * 3), 100),
            ["Steps 2, 5 and 8 take 300.0 µs, the others about 100.0 µs; figures per step are of the others."],
        ),
        ((100, 160, 400), []),  # no step is usual, and the head has the range
        ((100, 100), []),
    ],
)
def test_odd_steps_make_means_uncertain(lengths: tuple[int, ...], words: list[str]) -> None:
    steps = [step(number, sum(lengths[:number]), each) for number, each in enumerate(lengths)]
    claims = UNEVEN_STEPS.when(Results(load([*steps, op("a", 0, 1)])))
    assert [UNEVEN_STEPS.short(claim) for claim in claims] == words


def test_the_figure_of_a_step_says_of_which_steps_it_is() -> None:
    assert (
        step_text(load(steps_of(110, 220, 370)))
        == "2 steps of 165.0 µs (110.0 µs to 220.0 µs), without step 2 (370.0 µs)"
    )
    assert step_text(load(steps_of(110, 220, 150))) == "3 steps of 160.0 µs (110.0 µs to 220.0 µs)"
    assert step_text(load(steps_of(100, 102, 149, 101))) == (
        "4 steps of 113.0 µs (step 2: 149.0 µs, the others: 100.0 µs to 102.0 µs)"
    )
    assert step_text(load(steps_of(100, 102, 98))) == "3 steps of 100.0 µs"
    assert step_text(load(steps_of(100, 102, 98, 350))) == "3 steps of 100.0 µs, without step 3 (350.0 µs)"
    assert step_text(load(steps_of(100, 300, 102, 350, 98, 320))) == (
        "3 steps of 100.0 µs, without steps 1, 3 and 5 (300.0 µs to 350.0 µs)"
    )


def test_steps_that_recur_are_no_usual_ones_alone() -> None:
    assert usual_step_text(load(steps_of(*(100, 300) * 5))) == "5 of 10 steps, of 100.0 µs"
    assert usual_step_text(load(steps_of(100, 102, 98, 350))) == "3 usual steps of 100.0 µs"


def test_no_step_is_left_out_silently_where_few_are_usual() -> None:
    two_usual = load(steps_of(110, 220, 370))
    assert usual_step_text(two_usual) == "2 of 3 steps, of 165.0 µs"
    assert step_range_text(two_usual) == "110.0 µs to 370.0 µs"
    long_first = load(steps_of(450, 145, 144))
    assert usual_step_text(long_first) == "2 of 3 steps, of 144.5 µs"
    assert step_range_text(long_first) == "144.0 µs to 450.0 µs"


def test_a_mean_that_no_step_takes_is_told_with_the_range() -> None:
    taking_turns = load(steps_of(*(60, 100, 125) * 2))
    assert usual_step_text(taking_turns) == "6 steps of 95.0 µs in the mean"
    assert step_range_text(taking_turns) == "60.0 µs to 125.0 µs"
    alike = load(steps_of(100, 150, 120))
    assert usual_step_text(alike) == "3 steps of 123.3 µs"
    assert step_range_text(alike) == ""


def steps_of(*lengths: int) -> list[Json]:
    """Return steps of some lengths, µs, one after the other."""
    return [step(number, sum(lengths[:number]), each) for number, each in enumerate(lengths)]


def taking_turns(*lengths: int) -> list[Json]:
    """Return steps of which every second one evaluates all the time."""
    events = steps_of(*lengths)
    for number, each in enumerate(lengths):
        at = sum(lengths[:number])
        events.append(op("work", at + 1, each - 20))
        events += [annotation("evaluate", at, each - 10)] * (number % 2)
    return events


def test_a_long_step_is_compared_with_those_that_do_the_same() -> None:
    """Steps 1, 3 and 5 evaluate. Step 3 takes 1.5 times as long, and 2.3 times the median, which no step does."""
    assert UNEVEN_STEPS.when(Results(load(taking_turns(80, 300, 90, 450, 80, 300)))) == []
    (claim,) = UNEVEN_STEPS.when(Results(load(taking_turns(80, 300, 90, 1350, 80, 300))))
    assert isinstance(claim, UnevenStepsClaim)
    assert isinstance(claim.how, LongReason)
    assert claim.how.more_us == 1350 - 300


def test_many_odd_steps_are_counted() -> None:
    times = StepTimes(low_us=1000.0, high_us=2000.0, usual_us=100.0)
    text = UNEVEN_STEPS.whole(UnevenStepsClaim("uneven_steps", "", 5, "count", odd=(1, 2, 3, 4, 5), how=times))
    assert text.startswith("5 steps take 1.00 ms to 2.00 ms, the others about 100.0 µs")
    assert text.endswith("figures per step are of the others.")


@pytest.mark.parametrize(
    ("tid", "words"),
    [
        (
            1,
            "Steps 3 and 7 take 300.0 µs longer than usual: evaluate runs then. Without that, the job would take up to",
        ),
        (
            OTHER,
            "Steps 3 and 7 take 400.0 µs, the others about 100.0 µs; figures per step are of the others.",
        ),  # by chance
    ],
)
def test_what_runs_in_long_steps_alone_makes_them_long(tid: int, words: str) -> None:
    at = [100 * number + 300 * ((number > 3) + (number > 7)) for number in range(11)]
    events = [step(number, at[number], at[number + 1] - at[number]) for number in range(10)]
    events += [op("work", each + 1, 90) for each in at[:-1]]
    events += [annotation("evaluate", at[number] + 95, 300, tid) for number in (3, 7)]
    results = Results(load(events))
    (claim,) = UNEVEN_STEPS.when(results)
    assert UNEVEN_STEPS.short(claim).startswith(words)
    assert bool(UNEVEN_STEPS.evidence(results, claim).rows.first) == (tid != OTHER)
