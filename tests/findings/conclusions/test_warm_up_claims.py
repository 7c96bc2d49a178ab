"""What is said of start-up, of odd steps and of recordings without a device's work."""

from __future__ import annotations

from dataclasses import replace

import pytest

import htagraph as hg
from htagraph.core.issues import Issue
from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import sentences, trial
from htagraph.findings.conclusions.findings import findings, trial_of
from htagraph.findings.conclusions.warm_up_claims import cut_short_claims, device_missing_claims, uneven_claims
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime, step

MS = 1000


def starting() -> list[Json]:
    """Return a job of which half is the first call of a function."""
    events = [op("aten::empty", 0, 300 * MS), runtime("cudaFree", 0, 250 * MS), runtime("cudaFree", 251 * MS, 50)]
    return [*events, op("aten::mm", 300 * MS, 200 * MS), launch(499 * MS, 20, 5), kernel(COMPUTE, 500 * MS, 10, 5)]


def test_start_up_is_said_and_nobody_is_told_to_halve_it() -> None:
    claims = hg.summarize(load(starting())).claims
    (claim,) = [each for each in claims if each.says is Says.START_UP]
    assert claim.about == "cudaFree"
    assert sentences([claim]) == [
        "Start-up is 50 % of the critical path: first calls, as when contexts are made and code is loaded, of cudaFree "
        "(250.0 ms). To see the steady job, record after a warm-up."
    ]
    first = next(each for each in claims if each.says is Says.GAIN)
    assert first.facts["start_up_us"] > 0.5 * first.figure
    tried = trial_of(claims, ["x"])
    assert tried is not None
    assert "aten::mm" in tried.command
    assert "aten::mm" in trial([each for each in claims if each.says is Says.GAIN], ["x"])[0]


def test_odd_steps_make_means_uncertain() -> None:
    def said(*lengths: int) -> list[str]:
        steps = [step(number, sum(lengths[:number]), each) for number, each in enumerate(lengths)]
        return findings(uneven_claims(load([*steps, op("a", 0, 1)])))[0]

    assert said(400, 100, 100) == [
        "Caution: step 0 takes 400.0 µs, the others about 100.0 µs, so means per step fit neither."
    ]
    assert said(400, 100, 100, 300, 100) == [
        "Caution: steps 0 and 3 take 300.0 µs to 400.0 µs, the others about 100.0 µs, so means per step fit neither."
    ]
    assert said(9000, 50) == ["Caution: steps take 50.0 µs to 9.00 ms, so figures per step are means of unlike steps."]
    assert said(100, 100) == []


def test_a_job_whose_device_was_not_recorded_is_not_known_to_be_bound_by_its_host() -> None:
    (claim,) = device_missing_claims(load([op("aten::item", 0, 90), launch(5, 80, 1)]))
    assert sentences([claim]) == [
        "The host launched work in 1 call, but nothing that a device did was recorded, so when the host waits for it "
        "is not known (record with activities=[CPU, CUDA])."
    ]
    assert device_missing_claims(load([op("aten::mm", 0, 90)])) == []
    assert device_missing_claims(load([launch(0, 5, 1), kernel(COMPUTE, 10, 5, 1)])) == []
    assert Claim(Says.NO_DEVICE_WORK, "", 0.0, "count").is_certain


@pytest.mark.parametrize(
    ("what", "detail", "said"),
    [
        ("truncated", "the file ends early; events up to its end were read", True),
        ("gzip_truncated", "the compressed file ends early", True),
        ("truncated", "the file ends after its events, before the closing brace; all events were read", False),
        ("no_window_end", "no event", False),
    ],
)
def test_a_file_that_is_cut_short_makes_the_verdict_uncertain(what: str, detail: str, *, said: bool) -> None:
    """Without the kernels behind the cut, what waits for them is 'bound by host code'."""
    graph = replace(load([op("aten::mm", 0, 90)]), issues=(Issue("rank-2.json", what, detail, 1, 2),))
    text = findings(cut_short_claims(graph))[0]
    words = "Caution: rank 2's file is cut short, and the time of what is missing, such as device work, looks like"
    assert [line.startswith(words) for line in text] == [True] * said
