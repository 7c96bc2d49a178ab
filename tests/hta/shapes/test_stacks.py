"""Call stacks as columns, against definitions written out row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.shapes.stacks import is_device_lane, parents_in_frame, parents_in_job, root_of, stack_columns
from tests.hta.common.test_trace_call_graph import BACKWARD
from tests.hta.shapes.test_job import job_of


@st.composite
def trees(draw: st.DrawFn) -> tuple[pd.DataFrame, list[int]]:
    count = draw(st.integers(1, 12))
    parent = [draw(st.integers(-1, i - 1)) for i in range(count)]
    leaves = [i for i in range(count) if i not in parent and parent[i] >= 0]
    device = {i for i in leaves if draw(st.booleans())}
    return pd.DataFrame({
        "index": range(count), "pid": 1, "tid": [7 if i in device else 3 for i in range(count)],
        "ts": [draw(st.integers(0, 99)) for _ in range(count)], "dur": [draw(st.integers(0, 9)) for _ in range(count)],
        "stream": [7 if i in device else -1 for i in range(count)],
    }), parent  # fmt: skip


@given(trees())
def test_columns_are_what_lies_at_or_under_each_row(tree: tuple[pd.DataFrame, list[int]]) -> None:
    frame, parent = tree
    work = frame["stream"].ge(0).to_numpy()
    table = stack_columns(frame, np.array(parent), work)

    def path(row: int) -> list[int]:
        return [row, *path(parent[row])] if row >= 0 else []

    for row in range(len(frame)):
        kernels = frame[[work[other] and row in path(other) for other in range(len(frame))]]
        assert table["depth"][row] == len(path(row)) - 1
        assert table["num_kernels"][row] == len(kernels)
        assert table["kernel_dur_sum"][row] == kernels["dur"].sum()
        ends = kernels["ts"] + kernels["dur"]
        assert table["first_kernel_start"][row] == (kernels["ts"].min() if len(kernels) else -1)
        assert table["last_kernel_end"][row] == (ends.max() if len(kernels) else -1)
        assert table["kernel_span"][row] == (ends.max() - kernels["ts"].min() if len(kernels) else 0)
        assert table["parent"][row] == (parent[row] if parent[row] >= 0 else -3)
        below = [table["height"][child] for child in range(len(frame)) if parent[child] == row]
        assert table["height"][row] == (0 if work[row] else max([1, *(height + 1 for height in below)]))


def test_job_and_frame_agree_but_for_the_engines_thread(tmp_path: Path) -> None:
    job = job_of(tmp_path, BACKWARD)
    frame = job.frame(0)
    of_job, work = parents_in_job(job, 0, frame)
    of_frame, same_work = parents_in_frame(frame.assign(name=[event["name"] for event in BACKWARD]))
    assert of_job.tolist() == [-1, 0, 1, 2, 3, 4, 0, 6]
    assert of_frame.tolist() == [-1, 0, -1, 2, 3, 4, 0, 6]
    assert work.tolist() == same_work.tolist() == [False] * 5 + [True] + [False] * 2


def test_records_of_synchronization_lie_in_their_call_and_are_no_work() -> None:
    frame = pd.DataFrame({
        "index": [4, 6], "pid": 1, "tid": [3, 7], "ts": [0, 1], "dur": [9, 1], "stream": [-1, 7],
        "index_correlation": [6, 4], "name": ["cudaStreamSynchronize", "Stream Sync"],
    })  # fmt: skip
    parent, work = parents_in_frame(frame)
    assert (parent.tolist(), work.tolist()) == ([-1, 0], [False, False])


def test_roots_have_the_numbers_of_their_threads() -> None:
    assert [root_of(tid) for tid in (7, -7, np.int64(7), 0, "main")] == [-7, -7, -7, -1, -1]


def test_streams_and_device_tracks_are_no_threads() -> None:
    assert is_device_lane(5, 7, np.array([7, 7]))
    assert is_device_lane(0, 7, np.array([-1]))
    assert not is_device_lane(5, 7, np.array([-1, 7]))
