"""Whether one execution that takes most of the time of its name is named, with its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htagraph.findings.finding import claims_that_are
from htagraph.findings.one_execution import ONE_EXECUTION, OneExecutionClaim
from htagraph.findings.results import Results
from tests.strategies import Json, annotation, load, op, step

CLAIM = OneExecutionClaim(
    "one_execution",
    "aten::cat",
    80.0,
    "percent",
    ranks=(2,),
    own_us=400.0,
    count=6,
    step=3,
    start_us=1200.0,
    is_first=False,
    around="forward",
    has_ranks=True,
)


def job(long_us: int) -> list[Json]:
    """Return three steps of two operators; one execution of the fourth place takes longer."""
    events: list[Json] = []
    at = 0
    for number in range(3):
        begin = at
        for place in range(2):
            lasts = long_us if (number, place) == (1, 1) else 20
            events += [op("aten::cat", at + 5, lasts), op("aten::add", at + lasts + 10, 60)]
            at += lasts + 80
        events += [step(number, begin, at - begin - 2), annotation("forward", begin + 1, at - begin - 4)]
    return events


def test_the_execution_is_named_with_its_step_and_region() -> None:
    (claim,) = claims_that_are(OneExecutionClaim, ONE_EXECUTION.when(Results(load(job(400)))))
    assert (claim.about, claim.step, claim.count, claim.around, claim.is_first) == ("aten::cat", 1, 6, "forward", False)
    assert claim.figure == pytest.approx(80.0)
    assert claim.own_us == 400


@pytest.mark.parametrize("long_us", [20, 90])
def test_less_than_half_of_the_time_is_no_news(long_us: int) -> None:
    assert ONE_EXECUTION.when(Results(load(job(long_us)))) == []


def test_the_words_name_the_place() -> None:
    assert ONE_EXECUTION.whole(CLAIM) == (
        "Of 6 executions of aten::cat, one takes 400.0 µs, 80 % of the time of all of them: on rank 2, in step 3, in "
        "forward."
    )
    outside = replace(CLAIM, step=-1, has_ranks=False, around="", is_first=True)
    assert ONE_EXECUTION.whole(outside).endswith(
        "the first takes 400.0 µs, 80 % of the time of all of them: at 1.20 ms."
    )
