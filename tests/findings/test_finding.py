"""Whether a trial becomes a command, and a part of a sentence a whole one."""

from __future__ import annotations

from htagraph.findings.finding import Trial, in_full, in_short


def test_a_trial_is_a_what_if_on_the_same_files() -> None:
    assert Trial(1.0, "x", ("--scale", "a:0.5")).command(["my job"]) == "htagraph what-if 'my job' --scale a:0.5"


def test_names_are_shorter_in_brief() -> None:
    name = "a" * 100
    assert (len(in_full(name)), len(in_short(name))) == (60, 32)
