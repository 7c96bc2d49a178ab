"""HTA's frame: columns, types and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.shapes.frame import frame_of, ids_of_lanes, partners, smallest_type, step_of_events, whole
from htagraph.hta.shapes.window import device_side
from tests.hta.shapes.test_job import TWO_STEPS, event, job_of, kernel, launch


@given(st.lists(st.integers(-(2**40), 2**40)))
def test_the_smallest_type_holds_all_and_none_smaller_does(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    kind = smallest_type(numbers)
    assert numbers.astype(kind).tolist() == values
    smaller = [np.dtype(f"int{bits}") for bits in (8, 16, 32) if bits < kind.itemsize * 8]
    assert all(numbers.astype(each).tolist() != values for each in smaller)


def test_whole_times_are_integers() -> None:
    assert whole(np.array([1.0, 2.0])).dtype.kind == "i"
    assert whole(np.array([1.5, 2.0])).dtype.kind == "f"


@pytest.mark.parametrize("fraction", [0, 0.25])
def test_times_with_fractions_stay_and_their_ends_stand_in_front(fraction: float, tmp_path: Path) -> None:
    job = job_of(tmp_path, [event("aten::mm", "cpu_op", 10 + fraction, 4), event("aten::add", "cpu_op", 0, 4)])
    frame = frame_of(job, 0)
    assert len(frame.columns) == 30
    assert frame["end"].tolist() == [14 + fraction, 4]
    assert (list(frame.columns).index("end") == 7) == bool(fraction)
    assert frame["ts"].dtype.kind == ("f" if fraction else "i")


def test_partners_and_steps_follow_correlations(tmp_path: Path) -> None:
    job = job_of(tmp_path, TWO_STEPS, include_last_profiler_step=True)
    trace = job.traces[0]
    device = device_side(trace)
    partner = partners(trace, device)
    frame = job.frame(0).sort_index()
    assert dict(zip(trace.events.index.tolist(), partner.tolist(), strict=True)) == frame["index_correlation"].to_dict()
    assert step_of_events(trace, partner)[device].tolist() == [-1, 1, 2]


def test_lanes_have_the_ids_of_the_file(tmp_path: Path) -> None:
    trace = job_of(tmp_path, [launch(0, 1), kernel(3, 1)]).traces[0]
    pids, tids = ids_of_lanes(trace)
    assert (pids.tolist(), sorted(tids.tolist())) == ([1, 1], [1, 7])


def test_arguments_of_the_file_are_read_only_if_asked_for(tmp_path: Path) -> None:
    operator = event("aten::mm", "cpu_op", 0, 4) | {"args": {"Input Dims": [[2, 3]]}}
    job = job_of(tmp_path, [operator])
    assert frame_of(job, 0)["input_dims"].tolist() == [[[2, 3]]]
    assert frame_of(job, 0, from_file=False)["input_dims"].tolist() == ["-1"]


def test_some_events_are_rows_of_all(tmp_path: Path) -> None:
    job = job_of(tmp_path, TWO_STEPS)
    every = job.frame(0)
    only = np.arange(len(every)) % 2 == 0
    some = frame_of(job, 0, only=only)
    assert some.equals(every.loc[some.index])
    assert len(some) == only.sum()
