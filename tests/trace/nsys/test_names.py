"""Which ranges are steps."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from tests.trace.nsys.made import CALLS, KERNELS, RANGES, SESSION, Strings, call, export, kernel, ranged


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["step 3", "step 4", "step 5"], (3, 4, 5)),
        (["iteration", "iteration", "iteration"], (0, 1, 2)),
        (["train_step 7", "train_step 7", "train_step 9"], (0, 1, 2)),  # numbers that do not ascend
        (["forward", "forward", "forward"], (0, 1, 2)),  # covers nearly all
        (["layer 0", "layer 1", "layer 2"], ()),  # parts of one forward
        (["footsteps 1", "footsteps 2", "footsteps 3"], ()),
        (["only once"], ()),
        (["ProfilerStep#8", "ProfilerStep#9"], (8, 9)),
    ],
)
def test_ranges_that_repeat_and_cover_the_job_are_steps(
    names: list[str], expected: tuple[int, ...], tmp_path: Path
) -> None:
    strings = Strings()
    launch, gemm = strings("cudaLaunchKernel_v7000"), strings("gemm")
    ranges = [ranged(1000 * at, 1000 * at + 990, name) for at, name in enumerate(names)]
    calls = [call(1000 * at + 10, 1000 * at + 20, launch, at + 1) for at in range(len(names))]
    kernels = [kernel(1000 * at + 30, 1000 * at + 980, gemm, at + 1) for at in range(len(names))]
    path = export(tmp_path / "a.sqlite", {RANGES: ranges, CALLS: calls, KERNELS: kernels, **SESSION}, strings)
    graph = hg.load(path)
    assert graph.steps == expected
    assert ("steps_by_range" in {issue.what for issue in graph.issues}) == (bool(expected) and "#" not in names[0])
