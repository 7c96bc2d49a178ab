"""HTA's frame: columns, types and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.errors import TraceError
from htagraph.hta.common.trace import (
    Trace,
    add_iteration,
    get_cpu_gpu_correlation,
    trace_event_timestamp_to_unixtime_ns,
    transform_correlation_to_index,
)
from htagraph.hta.common.trace_filter import GPUKernelFilter
from htagraph.hta.configs.config import AttributeSpec, ValueType
from htagraph.hta.configs.parser_config import ParserConfig
from htagraph.hta.shapes.frame import frame_of, ids_of_lanes, parsed_frame, smallest_type, whole
from htagraph.hta.shapes.job import open_job
from tests.hta.shapes.test_job import TWO_STEPS, event, job_of, kernel, launch
from tests.reach import SHARED


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


def test_lanes_have_the_ids_of_the_file(tmp_path: Path) -> None:
    trace = job_of(tmp_path, [launch(0, 1), kernel(3, 1)]).traces[0]
    pids, tids = ids_of_lanes(trace)
    assert (pids.tolist(), sorted(tids.tolist())) == ([1, 1], [1, 7])


def test_columns_of_a_frame_are_made_anew_as_they_were(tmp_path: Path) -> None:
    trace = Trace.of(job_of(tmp_path, [*TWO_STEPS, event("Event Sync", "cuda_sync", 25, 1, correlation=9)]))
    frame, symbols = trace.get_trace(0), trace.symbol_table
    bare = frame.drop(columns=["index_correlation", "iteration"])
    assert transform_correlation_to_index(bare, symbols) is bare
    steps = add_iteration(bare, symbols)
    for column in ("index_correlation", "iteration"):
        assert bare[column].tolist() == frame[column].tolist(), column
    assert steps["iter"].tolist() == [f"ProfilerStep#{n}" for n in steps["s_name"]]
    pairs = get_cpu_gpu_correlation(frame)
    assert frame.loc[pairs["gpu_index"], "index_correlation"].tolist() == pairs["cpu_index"].tolist()
    assert trace_event_timestamp_to_unixtime_ns(5.5, {"baseTimeNanoseconds": 7}) == 5507


def test_a_call_runs_on_no_stream_even_if_it_names_one_and_has_its_partner(tmp_path: Path) -> None:
    call = event("runFunction", "mtia_runtime", 0, 4, correlation=5, stream_id="7")
    work = event("gemm", "mtia_ccp_events", 9, 4, tid=7, correlation=5, stream=7)
    other = event("gemm", "mtia_ccp_events", 20, 4, tid=7, correlation=6, stream=7)
    frame = job_of(tmp_path, [event("aten::mm", "cpu_op", 0, 9), call, work, other]).frame(0)
    assert frame["stream"].tolist() == [-1, -1, 7, 7]
    assert frame["index_correlation"].tolist() == [-1, 2, 1, 0]
    assert GPUKernelFilter()(frame)["index"].tolist() == [2, 3]


def test_counters_are_columns(tmp_path: Path) -> None:
    ranges = [event("gemm", "cuda_profiler_range", time, 1, **{"fma.sum": time}) for time in (4, 9)]
    job = job_of(tmp_path, [launch(0, 1), *ranges])
    for config in (ParserConfig(), ParserConfig(ParserConfig.get_minimum_args())):
        frame = parsed_frame(job, 0, config)
        assert (frame["fma.sum"].tolist(), frame["fma.sum"].dtype.kind) == ([-1, 4, 9], "i")


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


ALEXNET = SHARED / "hta" / "critical_path" / "alexnet.json.gz"

EVENTS = [
    event("gemm", "kernel", 0, 4, tid=7, stream=7, correlation=1, grid=[1, 2, 3], own=2.5, shared=8),
    event("aten::mm", "cpu_op", 0, 4) | {"args": {"Ev Idx": 3, "note": "x"}},
]


def test_other_arguments_stand_in_the_place_of_the_default_ones(tmp_path: Path) -> None:
    job = job_of(tmp_path, EVENTS)
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args([
        AttributeSpec("grid", "grid", ValueType.Object, "[]"), AttributeSpec("own", "own", ValueType.Float, 0.0),
        AttributeSpec("ev_idx", "Ev Idx", ValueType.Int, -1), AttributeSpec("absent", "absent", ValueType.String, ""),
    ])  # fmt: skip
    frame = parsed_frame(job, 0, config)
    assert frame.columns.tolist() == [
        "index", "cat", "name", "pid", "tid", "ts", "dur", "stream", "correlation", "grid", "own", "ev_idx", "absent",
        "index_correlation", "iteration", "end",
    ]  # fmt: skip
    assert frame["grid"].tolist() == [[1, 2, 3], "[]"]
    assert frame["own"].tolist() == [2.5, 0]
    assert frame["ev_idx"].tolist() == [-1, 3]
    assert str(frame["ev_idx"].dtype) == "int8"
    assert frame["absent"].tolist() == ["", ""]


def test_every_argument_of_the_file_may_be_asked_for(tmp_path: Path) -> None:
    frame = parsed_frame(job_of(tmp_path, EVENTS), 0, ParserConfig(parse_all_args=True))
    assert frame.columns.tolist()[7:-3] == ["ev_idx", "correlation", "stream", "grid", "own", "shared", "note"]
    assert (frame["shared"].tolist(), frame["note"].tolist()) == ([8, 0], ["", "x"])


def test_the_default_is_a_copy_of_the_frame(tmp_path: Path) -> None:
    job = job_of(tmp_path, EVENTS)
    frame = parsed_frame(job, 0, ParserConfig())
    assert frame.equals(job.frame(0))
    frame["stream"] = 0
    assert job.frame(0)["stream"].tolist() == [7, -1]


def test_a_file_that_is_gone_cannot_be_asked_again(tmp_path: Path) -> None:
    job = job_of(tmp_path, EVENTS)
    (tmp_path / "a.json").unlink()
    with pytest.raises(TraceError, match=r"a\.json"):
        parsed_frame(job, 0, ParserConfig(parse_all_args=True))


EXPECTED = {
    "minimum": 12, "complete": 57, "all": 33,
}  # fmt: skip
"""How many columns HTA's frame of the trace has, with `ParserConfig(ARGS_MINIMUM)`, `ARGS_COMPLETE`, parse_all_args."""
DTYPES = {
    "ev_idx": "int16", "fwd_thread_id": "int8", "cbid": "int16", "est_occupancy": "int8", "warps_per_sm": "float64",
    "shared_memory": "int32", "registers_per_thread": "int16", "blocks_per_sm": "object",
}  # fmt: skip
"""HTA's types of some columns of the same trace."""


@pytest.mark.skipif(not ALEXNET.is_file(), reason="the shared traces are not here")
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_columns_and_types_of_a_real_trace_are_htas() -> None:
    job = open_job({0: str(ALEXNET)}, whole=True)
    frames = {
        "minimum": parsed_frame(job, 0, ParserConfig(ParserConfig.get_minimum_args())),
        "complete": parsed_frame(job, 0, ParserConfig(list(ParserConfig.ARGS_COMPLETE))),
        "all": parsed_frame(job, 0, ParserConfig(parse_all_args=True)),
    }
    assert {name: len(frame.columns) for name, frame in frames.items()} == EXPECTED
    for name in ("complete", "all"):
        assert {column: str(frames[name][column].dtype) for column in DTYPES} == DTYPES
