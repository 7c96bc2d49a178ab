"""A real job on a CPU at five batches: predictions from each to each other one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.capacity import recorded
from tests.reach import SHARED

JOB = SHARED.parent / "real_pairs" / "batch_cpu" / "gpt"


@pytest.mark.slow
@pytest.mark.skipif(not JOB.exists(), reason="needs recordings of a job at several batches")
def test_steps_at_another_batch_have_a_fixed_part_and_a_rate() -> None:
    """Steps of 22 to 127 ms at 2 to 32 samples, with interruptions of 50 ms in two of the recordings."""
    steps = [case for case in recorded(JOB, None) if case.what == "step"]
    errors = np.abs([case.error for case in steps])
    assert len(steps) == 20
    assert np.median(errors) < 0.06
    assert errors.max() < 0.15
    assert np.mean([case.low <= case.truth <= case.high for case in steps]) >= 0.9
