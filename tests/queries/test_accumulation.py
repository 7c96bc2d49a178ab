"""Whether reductions of the same gradients are found, in jobs that accumulate gradients and in jobs that do not."""

from __future__ import annotations

import pytest

from htagraph.findings.finding import claims_that_are
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from htagraph.queries.accumulation import repeated_reductions
from tests.strategies import COMMUNICATE, Json, annotation, kernel, launch, load, op, runtime

STEPS, BATCHES, BUCKETS, LASTS = 3, 4, 2, 100


def training(*, batches: int, has_forwards: bool = True, reduces_last: bool = False) -> list[Json]:
    """Return steps whose optimizer follows several batches; each reduces its gradients in two buckets.

    Without further forward passes, the same reductions are those of equal layers of one backward pass.
    """
    events = list[Json]()
    at, number = 0, 1
    for _ in range(STEPS):
        for batch in range(batches):
            if has_forwards or not batch:
                events.append(op("aten::mm", at, 10))
            for bucket in range(BUCKETS):
                begin = at + 20 + (LASTS + 30) * bucket
                events.append(op("MmBackward0", begin, 10))
                if reduces_last and batch < batches - 1:
                    continue
                size = {"Collective name": "allreduce", "In msg nelems": 1000 + bucket, "dtype": "Float"}
                reduction = kernel(COMMUNICATE, begin + 16, LASTS, number)
                reduction["args"] |= size
                events += [launch(begin + 11, 4, number), reduction]
                number += 1
            events.append(runtime("cudaDeviceSynchronize", at + 20 + (LASTS + 30) * (BUCKETS - 1) + 16, LASTS + 4))
            at += 20 + (LASTS + 30) * BUCKETS
        events.append(annotation("Optimizer.step#SGD.step", at, 20))
        at += 30
    return events


@pytest.mark.parametrize("batches", [2, 3, BATCHES])
def test_reductions_of_each_batch_are_counted(batches: int) -> None:
    found = repeated_reductions(load(training(batches=batches)))
    assert found is not None
    assert found.times == batches


def test_one_reduction_per_step_is_no_fault() -> None:
    assert repeated_reductions(load(training(batches=1))) is None
    assert repeated_reductions(load(training(batches=BATCHES, reduces_last=True))) is None


def test_equal_layers_of_one_backward_pass_are_no_batches() -> None:
    assert repeated_reductions(load(training(batches=BATCHES, has_forwards=False))) is None


def test_the_gain_is_that_of_all_reductions_but_the_last() -> None:
    claims = claims_that_are(RemedyClaim, REMEDY.when(Results(load(training(batches=BATCHES)))))
    (claim,) = [claim for claim in claims if claim.about == "accumulation"]
    assert "no_sync()" in REMEDY.advice(claim)
    others = STEPS * (BATCHES - 1) * BUCKETS * LASTS
    assert 0 < claim.figure <= others


def test_equal_reductions_of_a_forward_and_a_backward_pass_are_of_tensor_parallel_layers() -> None:
    events = list[Json]()
    at, number = 0, 1
    for _ in range(STEPS):
        for operator in ("aten::mm", "aten::mm", "MmBackward0", "MmBackward0"):
            reduction = kernel(COMMUNICATE, at + 16, LASTS, number)
            reduction["args"] |= {"Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float"}
            events += [op(operator, at, 10), launch(at + 11, 4, number), reduction]
            number += 1
            at += LASTS + 30
        events.append(runtime("cudaDeviceSynchronize", at, 20))
        events.append(annotation("Optimizer.step#SGD.step", at + 30, 20))
        at += 60
    assert repeated_reductions(load(events)) is None
