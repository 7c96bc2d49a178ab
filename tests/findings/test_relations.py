"""Whether related claims are said beside each other without saying one thing twice."""

from __future__ import annotations

from dataclasses import replace

from htagraph.findings.change import PredictedChange
from htagraph.findings.finding import Claim, saved_claim
from htagraph.findings.relations import gain_us, related
from htagraph.findings.remedy import RemedyClaim
from tests.findings.claims_by_hand import blocking, bound, gain, gained


def test_the_straggler_stands_in_the_place_of_its_gain() -> None:
    straggler = Claim("straggler", "2", 90.0, "percent")
    work = gain("rank 2 beyond its peers'", 50.0, 9.0, "straggler", target="", ranks=(2,))
    other = gain("aten::mm", 40.0, 8.0, "operator")
    assert related([straggler, work, other]) == [straggler, other]
    assert related([work]) == [work]


def test_ranks_that_wait_for_a_slow_stage_are_not_said_to_wait() -> None:
    stage = Claim("slow_stage", "1", 10.0, "us")
    waiting = Claim("waiting", "1", 10.0, "us")
    assert related([waiting, stage]) == [stage]


def test_fewer_messages_that_gain_more_take_the_gain_of_transfers() -> None:
    free = replace(bound("communication"), gain=gained(100.0, 10.0))
    for us, is_taken in ((200.0, True), (50.0, False)):
        change = PredictedChange("one call", ("--remove", "x"), gained(us, 20.0))
        fewer = RemedyClaim("remedy", "calls", us, "us", change=change, text="", name="", is_of_transfers=True)
        remedy = saved_claim(fewer)
        (said, _) = related([free, remedy])
        assert (said.gain is None) == is_taken


def test_gains_are_the_others_where_a_finding_gains_more() -> None:
    (code, _) = related([gain("aten::mm", 40.0, 8.0), blocking(60.0, 12.0)])
    assert code.is_beside
    (code, _) = related([gain("aten::mm", 90.0, 8.0), blocking(60.0, 12.0)])
    assert not code.is_beside
    assert gain_us(Claim("ranks_missing", "3", 8, "count")) == 0.0
