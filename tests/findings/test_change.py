"""Whether gains are worded with what is known of them, and changes become commands and replays."""

from __future__ import annotations

import pytest

from htagraph.findings.change import (
    Gain,
    PredictedChange,
    Whole,
    brief_gain,
    gain_of,
    gain_without_interval,
    is_sure,
    less_text,
    likely,
    saves_text,
    scenario_of,
    steps_of,
)
from tests.findings.claims_by_hand import gained
from tests.reach import DATA, graph_of


def test_a_change_is_a_what_if_on_the_same_files() -> None:
    change = PredictedChange("x", ("--scale", "a:0.5"), gained(1.0, 1.0))
    assert change.command(["my job"]) == "htagraph what-if 'my job' --scale a:0.5"


def test_a_gain_is_per_step_where_there_are_steps() -> None:
    assert less_text(gained(3e5, 53.0)) == "the job would take 300.0 ms less (53 %)"
    assert less_text(gained(3e5, 53.0, steps=3)) == "a step would take 100.0 ms less (53 %)"


@pytest.mark.parametrize(
    ("interval", "shown", "sure"),
    [
        (None, "", True),
        ((280_000.0, 320_000.0), "", True),
        ((100_000.0, 320_000.0), "; likely 50.0 ms to 160.0 ms", True),
        ((-10_000.0, 320_000.0), "; likely 0 to 160.0 ms", False),
    ],
)
def test_an_interval_is_said_where_it_is_wide(interval: tuple[float, float] | None, shown: str, *, sure: bool) -> None:
    gain = gained(3e5, 53.0, steps=2, interval=interval)
    assert likely(gain) == shown
    assert is_sure(gain) == sure
    assert saves_text(gain) == f"saves {'' if sure else 'up to '}150.0 ms per step"


def test_of_a_job_without_usual_steps_gains_are_of_the_job() -> None:
    assert [Gain(1.0, 1.0, 1.0, steps, 9.0).scope for steps in (0, 1, 2)] == ["job", "job", "step"]
    assert Gain(0.0, 0.0, 0.0, 0, 0.0).percent == 0.0


def test_a_share_names_the_time_of_which_it_is() -> None:
    of_job = gain_without_interval(3000.0, Whole(12_000_000, 0))
    apart = gain_without_interval(3000.0, Whole(12_000_000, 0, is_without_start_up=True))
    of_step = gain_without_interval(3000.0, Whole(12_000_000, 3, is_without_start_up=True))
    assert brief_gain(of_job) == "3.00 ms less (25 % of the job)"
    assert brief_gain(apart) == "3.00 ms less (25 % of the job apart from start-up)"
    once = Gain(3000.0, 3000.0, 3000.0, 0, 12_000.0, mostly_in=4)
    assert brief_gain(once) == "3.00 ms less, mostly in step 4 (25 % of the job)"
    assert brief_gain(of_step) == "1.00 ms less per step (25 %)"


def test_options_are_read_in_their_order() -> None:
    options = ("--fix-straggler", "auto", "--remove-sync=op=aten::item", "--free-dataloader", "--scale", "rank=0:0.5")
    assert steps_of(options) == [
        ("fix-straggler", "auto"),
        ("remove-sync", "op=aten::item"),
        ("free-dataloader", ""),
        ("scale", "rank=0:0.5"),
    ]


def test_a_gain_is_that_of_the_command() -> None:
    graph = graph_of(DATA / "demo")
    outcome = scenario_of(graph, ("--remove-sync=op=aten::item", "--scale", "op=aten::mm:0.5")).run()
    gain = gain_of(outcome, Whole(1000, 3))
    assert gain.low_us <= gain.value_us <= gain.high_us
    assert gain.value_us > 0
