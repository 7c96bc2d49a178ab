from __future__ import annotations

import numpy as np
import pytest

from htagraph.graph.evidence.launches import graph_launches
from tests.strategies import kernel, runtime
from tests.waiting import by_hand


@pytest.mark.parametrize(
    ("name", "of_graph"),
    [("cudaGraphLaunch", True), ("hipGraphLaunch", True), ("cudaLaunchKernel", False), ("cuLaunchKernelEx", False)],
)
def test_calls_that_launch_a_whole_cuda_graph_are_known_by_name(name: str, of_graph: bool) -> None:  # noqa: FBT001
    job = by_hand([runtime(name, 0, 2, 1), kernel("a", 5, 1, 1), kernel("b", 7, 1, 1)])
    call = int(job.activities.cause[np.flatnonzero(job.activities.on_device)[0]])
    assert np.flatnonzero(graph_launches(job)).tolist() == ([call] if of_graph else [])


def test_a_graph_launch_without_work_launches_nothing() -> None:
    job = by_hand([runtime("cudaGraphUpload", 0, 2, 1), runtime("cudaLaunchKernel", 3, 1, 2), kernel("a", 5, 1, 2)])
    assert not graph_launches(job).any()
