"""Whether copies of pinned memory take what the link takes, and hosts do not wait for them."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.simulate import simulate
from tests.strategies import COMPUTE, Json, kernel, launch, load, runtime
from tests.whatif.changes.simulated import recorded, small

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"


def copying(name: str, at: int, us: int, number: int, size: int) -> list[Json]:
    copy = kernel(name, at + 10, us, number) | {"cat": "gpu_memcpy"}
    copy["args"]["bytes"] = size
    return [runtime("cudaMemcpyAsync", at, us + 20, number), copy]


def test_a_slow_copy_takes_what_a_pinned_one_of_the_recording_would_and_does_not_block() -> None:
    """9 MB take 900 µs, and 450 µs at the 20 GB/s of another copy, and the 50 µs that any copy takes at least."""
    events = [*copying(PAGEABLE, 0, 900, 1, 9_000_000), launch(940, 5, 2), kernel(COMPUTE, 950, 100, 2)]
    pinned = copying(PINNED, 2000, 50, 3, 1_000_000)
    job = load([*events, *pinned])
    outcome = hg.what_if(job).pin_memory().run()
    copy, work = (job.select(name=name).activities[0] for name in (PAGEABLE, COMPUTE))
    assert outcome.time[2 * copy + 1] - outcome.time[2 * copy] == 500_000
    assert outcome.time[2 * work] < job.time[2 * work] - 300_000


def test_a_copy_at_the_rate_of_the_link_only_stops_to_block() -> None:
    job = load([*copying(PAGEABLE, 0, 300, 1, 9_000_000), launch(340, 5, 2), kernel(COMPUTE, 350, 100, 2)])
    outcome = hg.what_if(job).pin_memory().run()
    copy, call = (job.select(name=name).activities[0] for name in (PAGEABLE, "cudaMemcpyAsync"))
    assert outcome.time[2 * copy + 1] - outcome.time[2 * copy] == 300_000
    assert outcome.time[2 * call + 1] < job.time[2 * call + 1]


@pytest.mark.slow
@pytest.mark.parametrize("regime", ["gpu_bound", "host_bound", "tensor"])
@pytest.mark.parametrize("megabytes", [8, 40])
def test_a_prediction_meets_the_job_with_pinned_memory(regime: str, megabytes: int) -> None:
    pageable = small(regime).model_copy(update={"input_memory": "pageable", "batch_mb": float(megabytes)})
    graph, before = recorded(pageable)
    true = simulate(pageable.model_copy(update={"input_memory": "pinned"})).mean_step_ns
    outcome = hg.what_if(graph).pin_memory().run()
    assert outcome.mean_step_ns == pytest.approx(true, rel=0.02)
    assert outcome.mean_step_ns <= before
