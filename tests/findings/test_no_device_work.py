"""Whether a job whose device was not recorded is told from one that has none."""

from __future__ import annotations

from htagraph.findings.finding import Claim
from htagraph.findings.no_device_work import NO_DEVICE_WORK
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, complete, kernel, launch, load, op


def test_a_job_whose_device_was_not_recorded_is_not_known_to_be_bound_by_its_host() -> None:
    (claim,) = NO_DEVICE_WORK.when(Results(load([op("aten::item", 0, 90), launch(5, 80, 1)])))
    assert NO_DEVICE_WORK.long(claim) == (
        "The host launched work in 1 call, but nothing that a device did was recorded, so when the host waits for it "
        "is not known (record with activities=[CPU, CUDA])."
    )
    assert NO_DEVICE_WORK.when(Results(load([op("aten::mm", 0, 90)]))) == []
    assert NO_DEVICE_WORK.when(Results(load([launch(0, 5, 1), kernel(COMPUTE, 10, 5, 1)]))) == []
    nothing = Claim("no_device_work", "", 0, "count")
    assert NO_DEVICE_WORK.long(nothing).startswith("Nothing that a device did")
    ranges = complete("cuda_profiler_range", COMPUTE, 5, 80, 0)
    (claim,) = NO_DEVICE_WORK.when(Results(load([launch(5, 80, 1), ranges])))
    assert NO_DEVICE_WORK.long(claim).startswith("1 kernel ran one by one for a profiler of counters")
