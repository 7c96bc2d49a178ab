"""Whether ways to reduce gradients in less time are found by what was recorded, with how to follow them."""

from __future__ import annotations

import pytest

from htagraph.findings.changes import changes_of
from htagraph.findings.finding import claims_that_are
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from tests.host_jobs import host_job
from tests.queries.test_late_reductions import job, training
from tests.reach import SHARED, graph_of
from tests.strategies import Json, annotation

PAIRS = SHARED.parent / "real_pairs"


def remedies(results: Results) -> dict[str, RemedyClaim]:
    return {claim.about: claim for claim in claims_that_are(RemedyClaim, REMEDY.when(results))}


def in_ddp(events: list[Json]) -> list[Json]:
    return [annotation("DistributedDataParallel.forward", 0, 55), *events]


def sized(events: list[Json], numbers: int) -> list[Json]:
    """Return the events of a rank whose reductions have so many numbers of 32 bits each."""
    for event in events:
        if event["name"].startswith("gloo:"):
            event["args"] = {"Input Dims": [[numbers]], "Input type": ["float"]}
    return events


def reducing(numbers: int) -> list[Json]:
    """Return steps with DistributedDataParallel that reduce gradients at once, behind the backward pass."""
    return sized(in_ddp(training("behind")), numbers)


def test_reductions_behind_the_backward_pass_come_first_with_a_way() -> None:
    results = Results(job("behind"))
    claim = remedies(results)["late reductions"]
    assert REMEDY.why(claim).startswith("Gradients are all-reduced when the backward pass is over")
    assert "register_post_accumulate_grad_hook" in REMEDY.advice(claim)  # by default, they would be one bucket
    first = changes_of(results).first
    assert first is not None
    assert first.options == ("--perfect-overlap",)
    assert first.is_known


def test_gradients_of_several_buckets_are_reduced_by_ddp() -> None:
    graph = host_job(dict.fromkeys((0, 1), sized(training("behind"), 2**20)))
    assert "DistributedDataParallel (bucket_cap_mb" in REMEDY.advice(remedies(Results(graph))["late reductions"])


def test_reductions_beside_the_backward_pass_have_no_such_way() -> None:
    assert "late reductions" not in remedies(Results(job("beside")))


def test_buckets_of_ddp_become_smaller() -> None:
    graph = host_job(dict.fromkeys((0, 1), reducing(2**20)))
    claim = remedies(Results(graph))["late reductions"]
    assert "make the buckets of DistributedDataParallel smaller (bucket_cap_mb)" in REMEDY.advice(claim)


def test_a_reduction_as_small_as_the_smallest_bucket_is_not_split() -> None:
    is_small = host_job(dict.fromkeys((0, 1), reducing(2**18)))
    is_large = host_job(dict.fromkeys((0, 1), reducing(2**18 + 1)))
    assert "late reductions" not in remedies(Results(is_small))
    assert "late reductions" in remedies(Results(is_large))


@pytest.mark.parametrize("shapes", [True, False])
def test_gradients_of_ddp_may_be_sent_in_16_bits(*, shapes: bool) -> None:
    """Where types were not recorded, the advice says so."""
    graph = host_job({rank: in_ddp(training("behind", shapes=shapes)) for rank in (0, 1)})
    claim = remedies(Results(graph))["wide gradients"]
    assert "bf16_compress_hook" in REMEDY.advice(claim)
    assert ("type of gradients was not recorded" in REMEDY.advice(claim)) is not shapes
    assert claim.gain is not None
    assert (claim.gain.low_us > 0) is shapes  # gradients of 16 bits gain nothing


def test_without_ddp_no_hook_is_advised() -> None:
    advice = REMEDY.advice(remedies(Results(job("behind")))["wide gradients"])
    assert "convert to bfloat16 before all_reduce" in advice
    assert "hook" not in advice


def test_narrow_gradients_are_not_made_narrower() -> None:
    events = in_ddp(training("behind"))
    for event in events:
        if "Input type" in event.get("args", {}) and event["name"].startswith("gloo:"):
            event["args"]["Input type"] = ["c10::BFloat16"]
    graph = host_job(dict.fromkeys((0, 1), events))
    assert "wide gradients" not in remedies(Results(graph))


@pytest.mark.skipif(not PAIRS.is_dir(), reason="real traces are not in reach")
def test_overlap_of_a_real_job_is_predicted_as_it_was_recorded() -> None:
    """Reductions in buckets took 126.6 ms a step, in place of 166.5 ms."""
    first = changes_of(Results(graph_of(PAIRS / "data" / "ddp2_overlap" / "A1"))).first
    assert first is not None
    assert first.gain is not None
    assert first.options == ("--perfect-overlap",)
    assert first.gain.low_us < first.gain.steps * 39_900 < first.gain.high_us


@pytest.mark.skipif(not PAIRS.is_dir(), reason="real traces are not in reach")
def test_a_reduce_scatter_that_is_an_all_reduce_sends_twice_the_bytes() -> None:
    results = Results(graph_of(PAIRS / "data_mechanisms" / "zero1_update_quarter" / "A1"))
    claim = remedies(results)["whole reductions"]
    assert REMEDY.why(claim).startswith("Reduce-scatters run as all-reduces, which send twice the bytes")
