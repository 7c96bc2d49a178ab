"""Which maker's devices a job ran on."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.hta.shapes.device import device_type
from tests.hta.shapes.test_job import event, job_of


@pytest.mark.parametrize(
    ("call", "kind"),
    [("cudaLaunchKernel", "NVIDIA GPU"), ("cudaLaunchKernelExC", "NVIDIA GPU"), ("hipLaunchKernel", "AMD GPU"),
     ("runFunction - job_prep_and_submit_for_execution", "MTIA"), ("aten::mm", "UNKNOWN GPU")],
)  # fmt: skip
def test_the_maker_is_known_by_the_launches(call: str, kind: str, tmp_path: Path) -> None:
    assert device_type(job_of(tmp_path, [event(call, "cuda_runtime", 0, 1)])) == kind
