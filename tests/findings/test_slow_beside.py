"""Whether work that is slow beside other work is named, with what it would gain without this."""

from __future__ import annotations

from dataclasses import replace

import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.findings.change import Gain, scenario_of
from htagraph.findings.changes import changes_of
from htagraph.findings.finding import claims_that_are
from htagraph.findings.results import Results
from htagraph.findings.slow_beside import SLOW_BESIDE, SlowBesideClaim
from htagraph.findings.verdict import claims_of
from tests.beside_jobs import GATHER, Step, job_of, kernels_beside_collectives
from tests.reach import SHARED
from tests.strategies import COPY, load

CASE = SHARED.parent / "cases" / "K18_collective_slow_beside_copies"
CLAIM = SlowBesideClaim(
    "slow_beside",
    GATHER,
    5000.0,
    "us",
    gain=Gain(5000.0, 4500.0, 5500.0, 5, 8000.0),
    op="all_gather",
    companion=COPY,
    companion_kind=ActivityKind.MEMORY,
    ratio=3.0,
    slow_us=1500.0,
    fast_us=500.0,
    slow_count=5,
    count=10,
)


def test_the_sentence_names_both_and_both_times() -> None:
    assert SLOW_BESIDE.short(CLAIM) == (
        "all_gather takes 3.0 times as long beside Memcpy DtoD: 1.50 ms, not 500.0 µs, 5 of 10 times. Without that, "
        "a step would take 1.00 ms less (62 %)."
    )
    assert SLOW_BESIDE.why(CLAIM) == "all_gather takes 3.0 times as long beside Memcpy DtoD (1.50 ms)."


def test_the_advice_is_about_what_runs_beside() -> None:
    assert SLOW_BESIDE.advice(CLAIM) == "Move the copy to when no all_gather runs, or make it smaller."
    of_kernel = replace(CLAIM, companion="gemm", companion_kind=ActivityKind.COMPUTATION)
    assert "TORCH_NCCL_HIGH_PRIORITY=1" in SLOW_BESIDE.advice(of_kernel)
    kernel = replace(of_kernel, about="gelu", op="")
    assert SLOW_BESIDE.advice(kernel) == "Run gemm behind gelu on one stream: both share the device."
    beside_collective = replace(kernel, companion=GATHER, companion_kind=ActivityKind.COMMUNICATION)
    assert "NCCL_MAX_CTAS" in SLOW_BESIDE.advice(beside_collective)


def test_the_gain_is_that_of_steps_without_the_copies() -> None:
    steps = [Step(is_slow=place % 2 > 0, copies_on=(0, 1) if place % 2 else ()) for place in range(10)]
    results = Results(load(job_of(steps)))
    (claim,) = claims_that_are(SlowBesideClaim, SLOW_BESIDE.when(results))
    assert (claim.about, claim.companion, claim.slow_count, claim.count) == (GATHER, COPY, 5, 10)
    assert claim.change is not None
    assert claim.change.gain.per_step_us == pytest.approx(1000, abs=20)  # the slow steps take 1.6 ms, the fast 0.6 ms
    assert scenario_of(results.graph, claim.change.options).run().saved_ns == pytest.approx(5_000_000, abs=100_000)
    first = changes_of(results).first
    assert first is not None
    assert first.finding == SLOW_BESIDE.name


def test_nothing_is_claimed_where_copies_slow_nothing_down() -> None:
    steps = [Step(is_slow=False, copies_on=(0, 1) if place % 2 else ()) for place in range(10)]
    assert SLOW_BESIDE.when(Results(load(job_of(steps)))) == []


def test_no_part_of_the_gain_is_sure_where_the_companion_stays() -> None:
    (claim,) = SLOW_BESIDE.when(Results(load(kernels_beside_collectives())))
    assert claim.gain is not None
    assert claim.gain.low_us <= 0 < claim.gain.value_us


def test_the_bound_has_no_other_gain_of_the_same_copies() -> None:
    steps = [Step(is_slow=place % 2 > 0, copies_on=(0, 1) if place % 2 else ()) for place in range(10)]
    claims = claims_of(Results(load(job_of(steps))))
    assert [claim.says for claim in claims if claim.gain and claim.about in ("memory", COPY)] == []


@pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not there")
def test_the_case_of_an_all_gather_beside_copies_begins_with_them() -> None:
    head = hg.summarize(hg.load(CASE)).head
    assert "all_gather: 11.0 ms less per step" in str(head)
