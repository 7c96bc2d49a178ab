"""Findings say what claims say, in a line or two; what to try is a prediction that a claim has."""

from __future__ import annotations

import shlex
import textwrap
from typing import Any

import pytest

import htagraph as hg
from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import sentences
from htagraph.findings.conclusions.findings import findings, trial_of
from tests.reach import REPOSITORY

GAIN: dict[str, Any] = {
    "what": "operator", "target": "op=aten::mm", "note": "", "percent": 20.0, "half_us": 40.0, "makespan_us": 500.0,
    "loader": False, "steps": 2, "shared": False,
}  # fmt: skip
BLOCKING = {"count": 3, "blocked_us": 90.0, "percent": 6.0, "target": "op=aten::item", "steps": 2, "several": False}
BOUND = {
    "shares": {"computation": 70.0, "communication": 20.0, "head": 8.0}, "ranks": {2: 99.0}, "by_workers": False,
    "batches": (0, 0), "unexplained_percent": 0.0, "several": True, "absent": "",
}  # fmt: skip
IDLE = {"rank": 0, "rank_percent": 9.0, "several": True, "host": "loader"}


def test_each_is_short_and_has_the_claims_figure() -> None:
    claims = [
        Claim(Says.BOUND, "computation", 70.0, "percent", facts=BOUND),
        Claim(Says.GAIN, "aten::mm", 100.0, "us", facts=GAIN),
        Claim(Says.BLOCKING, "aten::item", 30.0, "us", facts=BLOCKING),
    ]
    said, more = findings(claims)
    assert more == 0
    assert said == [
        "Bound by computation: 70 % of the critical path, on rank 2; then transfers between ranks 20 %, time before "
        "its first activity 8 %.",
        "Largest gains per step, were it to take no time: operator aten::mm, 50.0 µs (20 %).",
        "The host waits for its device in aten::item (3 times). Without these waits a step would take 15.0 µs less "
        "(6 %).",
    ]


def test_a_wide_interval_is_not_lost() -> None:
    wide = Claim(Says.GAIN, "aten::mm", 100.0, "us", interval=(20.0, 180.0), facts=GAIN)
    assert "likely 10.0 µs to 90.0 µs" in findings([wide])[0][0]


def test_what_is_uncertain_is_one_finding_and_never_left_out() -> None:
    idle = [Claim(Says.DEVICE_IDLE, cause, 9.0, "percent", facts=IDLE) for cause in ("host_wait", "kernel_wait")]
    claims = [
        Claim(Says.BOUND, "computation", 70.0, "percent", facts=BOUND),
        Claim(Says.GAIN, "aten::mm", 100.0, "us", facts=GAIN),
        Claim(Says.BLOCKING, "aten::item", 30.0, "us", facts=BLOCKING),
        *idle,
        Claim(Says.SHORT_LAUNCHES, "", 60.0, "percent", facts={"total": 1000}),
        Claim(Says.UNEXPLAINED, "path", 12.0, "percent", facts={"mostly": "host", "is_bound": False}),
        Claim(Says.RANKS_MISSING, "", 8, "count", facts={"read": 2, "missing": [2, 3, 4, 5, 6, 7]}),
    ]
    said, more = findings(claims)
    assert len(said) == 5
    assert more == 2
    assert said[-1].startswith("Caution: 12 % of the critical path is unexplained")
    assert "2 of 8 ranks were read" in said[-1]
    assert said[0].startswith("Bound by")


def test_the_change_that_gains_most_as_predicted_is_tried_first() -> None:
    gain = Claim(Says.GAIN, "aten::mm", 100.0, "us", facts=GAIN)
    waits = Claim(Says.BLOCKING, "aten::item", 60.0, "us", facts=BLOCKING)
    straggler = Claim(
        Says.GAIN, "rank 2 beyond its peers'", 50.0, "us", facts=GAIN | {"what": "straggler", "target": ""}
    )
    best = trial_of([gain, waits, straggler], ["my job"])
    assert best is not None
    assert best.command == "htagraph what-if 'my job' --remove-sync=op=aten::item"
    assert best.sentence == "No waiting for the device in aten::item saves 30.0 µs per step."
    half = trial_of([gain, straggler], ["x"])
    assert half is not None
    assert half.command.endswith("--fix-straggler auto")
    assert trial_of([], ["x"]) is None


HOST: dict[str, Any] = {
    "shares": {"host": 92.0},
    "ranks": {0: 97.0, 1: 3.0},
    "by_workers": False,
    "several": True,
    "absent": "",
}


@pytest.mark.parametrize(
    ("percent", "short", "long"),
    [
        (
            1.1,
            "(other ranks' paths are nearly as long)",
            "97 % of the path is on rank 0, but others are nearly as late",
        ),
        (22.6, ", 97 % of which is on rank 0", "; 97 % of the path is on rank 0."),
    ],
)
def test_a_rank_is_named_only_if_the_job_would_be_shorter_without_it(percent: float, short: str, long: str) -> None:
    claim = Claim(Says.BOUND, "host", 92.0, "percent", facts=HOST | {"without_rank_percent": percent})
    assert short in findings([claim])[0][0]
    assert long in sentences([claim])[0]


def test_all_host_code_is_a_ceiling_beside_the_largest_gain() -> None:
    claim = Claim(Says.GAIN, "aten::mm", 100.0, "us", facts=GAIN | {"ceiling": (160.0, 56.0), "interrupted": True})
    (line,), _ = findings([claim])
    assert line.endswith("; all host code, at most 80.0 µs (56 %).")
    assert "were it to take no time (interruptions inside it counted): " in line
    assert "All host code together: 80.0 µs at most (56 %)." in sentences([claim])[0]


def test_a_gain_that_may_be_nothing_is_said_with_up_to() -> None:
    best = trial_of([Claim(Says.GAIN, "aten::mm", 100.0, "us", interval=(0.0, 110.0), facts=GAIN)], ["x"])
    assert best is not None
    assert "saves up to 20.0 µs" in best.sentence


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
def test_on_real_jobs_they_are_few_and_short_and_the_command_runs(job: str, run: Any) -> None:
    path = str(REPOSITORY / "data" / job)
    summary = hg.summarize(hg.load(path))
    said, _ = findings(summary.claims)
    assert 3 <= len(said) <= 5
    assert all(len(textwrap.wrap(line, 77)) <= 2 for line in said), said
    best = trial_of(summary.claims, [path])
    assert best is not None
    assert run(*shlex.split(best.command)[1:]).code == 0
