"""Whether a job whose device was not recorded is told from one that has none."""

from __future__ import annotations

from htagraph.findings.incomplete import INCOMPLETE
from htagraph.findings.no_device_work import NO_DEVICE_WORK, NoDeviceWorkClaim
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, complete, kernel, launch, load, op


def test_a_job_whose_device_was_not_recorded_is_not_known_to_be_bound_by_its_host() -> None:
    used = Results(load([op("aten::record_stream", 0, 90)]))
    assert NO_DEVICE_WORK.when(used) == []  # the same, with the operators that need a device
    (lost,) = INCOMPLETE.when(used)
    assert "operators that need a device are (aten::record_stream 1)" in INCOMPLETE.whole(lost)
    listed = NoDeviceWorkClaim("no_device_work", "", 0, "count")
    assert NO_DEVICE_WORK.whole(listed) == (
        "Nothing that a device did was recorded, so when the host waits for it is not known."
    )
    launched = NoDeviceWorkClaim("no_device_work", "", 1, "count")
    assert NO_DEVICE_WORK.whole(launched).startswith("The host launched work in 1 call, but nothing that a device did")
    # launches without work are counted by another finding
    assert NO_DEVICE_WORK.when(Results(load([op("aten::item", 0, 90), launch(5, 80, 1)]))) == []
    assert NO_DEVICE_WORK.when(Results(load([op("aten::mm", 0, 90)]))) == []
    assert NO_DEVICE_WORK.when(Results(load([launch(0, 5, 1), kernel(COMPUTE, 10, 5, 1)]))) == []


def test_kernels_that_a_profiler_of_counters_ran_do_not_show_how_long_the_job_takes() -> None:
    ranges = complete("cuda_profiler_range", COMPUTE, 5, 80, 0)
    (claim,) = NO_DEVICE_WORK.when(Results(load([op("aten::mm", 0, 90), launch(5, 80, 1), ranges])))
    assert NO_DEVICE_WORK.whole(claim) == (
        "1 kernel ran one by one for a profiler of counters, whose times are not the job's, "
        "and what bounds the job cannot be said."
    )
    assert NO_DEVICE_WORK.advice(claim) == "Record times without counters."
