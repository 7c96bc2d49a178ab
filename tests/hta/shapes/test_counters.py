"""HTA's counters; the figures are HTA 0.6.1's own on the same files.

HTA sorts rows of one moment in no defined order, so queue lengths are compared as they are once a moment is over. The
counts of bandwidths do not depend on that order in these files.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from htagraph.hta.shapes.counters import (
    CUDA_SASS_INSTRUCTION_COUNTER_FLOPS,
    CuptiCounterAnalysis,
    TimeSeriesTypes,
    counter_events,
)
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.analyses.test_cupti_counters import ranges
from tests.hta.shapes.test_launches import job, made, real
from tests.reach import DATA, SHARED, raw_events
from tests.strategies import COMPUTE, Json, complete, kernel, launch, op, write

TWO_STREAMS: list[Json] = [
    launch(0, 1, 1), kernel(COMPUTE, 5, 5, 1), launch(2, 1, 2), kernel(COMPUTE, 10, 10, 2),
    launch(4, 1, 3), kernel(COMPUTE, 24, 2, 3, stream=20),
]  # fmt: skip


def copy(start: int, duration: int, bandwidth: float, name: str = "Memcpy HtoD (Pinned -> Device)") -> Json:
    args: dict[str, Any] = {"stream": 7, "device": 0, "correlation": 9, "memory bandwidth (GB/s)": bandwidth}
    return complete("gpu_memcpy", name, start, duration, 7, **args) | {"pid": 0}


@pytest.mark.slow
@real
def test_queue_lengths_are_those_of_hta() -> None:
    table = job("control").get_queue_length_time_series([3])[3]
    assert (len(table), int(table["ts"].sum())) == (15750, 3038850766)
    settled = table.groupby(["stream", "ts"])["queue_length"].last().groupby("stream").agg(["size", "sum", "max"])
    assert settled.index.tolist() == [7, 20, 21, 22]
    assert settled.to_numpy().tolist() == [[14633, 523115, 287], [468, 1206, 10], [100, 76, 2], [240, 2542, 22]]
    kinds = {column: str(kind) for column, kind in table.dtypes.items()}
    assert kinds == {"ts": "int64", "pid": "object", "tid": "object", "stream": "int8", "queue_length": "int64"}
    assert (table.index.name, str(table.index.dtype)) == ("index", "int32")
    assert table.iloc[:2].reset_index().to_numpy().tolist() == [[105984, 1718, 3, 7, 7, 1], [105982, 1740, 3, 7, 7, 0]]


@real
def test_time_blocked_is_that_of_hta_for_every_stream() -> None:
    series = job("control").get_queue_length_time_series([3])
    (row,) = job("control").get_time_spent_blocked_on_full_queue(series, 50).to_numpy().tolist()
    assert row == [3, 7, 77951, pytest.approx(0.20295722721544696)]
    table = job("control").get_time_spent_blocked_on_full_queue(series, 1)
    assert table["stream"].tolist() == [7, 20, 21, 22]  # HTA keeps the last one only
    assert table.iloc[-1].tolist() == [3, 22, 42666, pytest.approx(0.11108738895426946)]


@real
def test_bandwidths_are_those_of_hta() -> None:
    table = job("control").get_memory_bw_time_series([3])[3]
    assert (len(table), table["ts"].sum(), table.index.to_numpy().sum()) == (1470, 283700062, 1079715)
    assert [str(kind) for kind in table.dtypes] == ["float64", "object", "str", "float64"]
    summary = job("control").get_memory_bw_summary([3])
    assert summary is not None
    assert summary.index.tolist() == [(3, f"Mem{kind}") for kind in ("cpy DtoD", "cpy DtoH", "cpy HtoD", "set")]
    assert summary.iloc[2].tolist() == pytest.approx([
        125, 5.378973545977439, 3.0773059936998397, 0.0006157635467980296, 3.5376884422110555, 5.822446305221775,
        6.829601260958484, 11.696847946525894,
    ])  # fmt: skip


@real
def test_summaries_of_four_ranks_are_those_of_hta() -> None:
    summary = job("torchrec").get_memory_bw_summary([0, 1, 2, 3])
    assert summary is not None
    assert len(summary) == 16
    first = [2, 331.201612249401, 26.628199211792094, 312.3726320159565, 321.78712213267875, 331.201612249401,
             340.61610236612324, 350.03059248284546]  # fmt: skip
    assert summary.iloc[0].tolist() == pytest.approx(first)


@real
def test_no_length_and_no_bandwidth_is_negative() -> None:  # in HTA's some are: works recorded before their launches
    for table in job("torchrec").get_queue_length_time_series([0, 1, 2, 3]).values():
        assert table["queue_length"].min() == 0


def test_a_summary_has_a_row_per_stream(tmp_path: Path) -> None:
    made_job = made(tmp_path, TWO_STREAMS)
    summary = made_job.get_queue_length_summary()
    assert summary is not None
    assert summary.index.names == ["rank", "stream"]
    assert [tuple(each) for each in summary.columns] == [
        ("queue_length", each) for each in ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
    ]
    assert summary["queue_length", "max"].to_dict() == {(0, 7): 2.0, (0, 20): 1.0}
    series = made_job.get_queue_length_time_series()
    described = series[0].assign(rank=0)[["rank", "stream", "queue_length"]].groupby(["rank", "stream"]).describe()
    pd.testing.assert_frame_equal(summary, described, check_column_type=False)
    assert list(series[0].columns) == ["ts", "pid", "tid", "stream", "queue_length"]  # as it was


def test_ranks_come_in_the_order_asked_for(tmp_path: Path) -> None:
    summary = made(tmp_path, TWO_STREAMS, TWO_STREAMS).get_queue_length_summary([1, 0])
    assert summary is not None
    assert summary.index.get_level_values("rank").tolist() == [1, 1, 0, 0]


def test_streams_that_were_never_full_have_no_row(tmp_path: Path) -> None:
    made_job = made(tmp_path, TWO_STREAMS)
    series = made_job.get_queue_length_time_series()
    assert made_job.get_time_spent_blocked_on_full_queue(series, 2).to_numpy().tolist() == [[0, 7, 3.0, 3 / 24]]
    assert made_job.get_time_spent_blocked_on_full_queue(series).empty


def test_bandwidth_counts_from_each_copys_start_and_end(tmp_path: Path) -> None:
    events = [op("aten::to", 3, 5), copy(10, 10, 4.0), copy(15, 0, 2.0), copy(12, 2, 9.0, "__amd_rocclr_copyBuffer")]
    table = made(tmp_path, events).get_memory_bw_time_series()[0]
    assert table.reset_index()[["index", "ts", "name", "memory_bw_gbps"]].to_numpy().tolist() == [
        [0, 7.0, "Memcpy HtoD", 4.0], [1, 12.0, "Memcpy HtoD", 6.0], [4, 13.0, "Memcpy HtoD", 4.0],
        [3, 17.0, "Memcpy HtoD", 0.0], [2, 9.0, "Memcpy Unknown", 9.0], [5, 11.0, "Memcpy Unknown", 0.0],
    ]  # fmt: skip


def test_without_launches_or_copies_there_is_nothing_and_it_is_said(tmp_path: Path) -> None:
    made_job = made(tmp_path, [op("aten::mm", 0, 5)])
    for series in (made_job.get_queue_length_time_series, made_job.get_memory_bw_time_series):
        with pytest.warns(UserWarning, match=r"rank 0 \(.*0.json\): no .* in the trace"):
            assert series() == {}
    for summary in (made_job.get_queue_length_summary, made_job.get_memory_bw_summary):
        with pytest.warns(UserWarning, match="in the trace"):
            assert summary() is None
    with pytest.warns(UserWarning, match="no launch"):
        assert made_job.get_queue_length_summary_from_time_series({}) is None
    with pytest.warns(UserWarning, match="no counters"):
        made_job.generate_trace_with_counters()
    assert [path.name for path in tmp_path.iterdir()] == ["0.json"]


def test_counters_are_events_in_the_time_of_the_file(tmp_path: Path) -> None:
    found = counter_events(made(tmp_path, [*TWO_STREAMS, copy(30, 5, 4.0)]).job, 0)
    assert found[0] == {"pid": 0, "ts": 0, "args": {"Queue Length": 1}, "ph": "C", "name": "Queue Length", "id": "7"}
    assert found[-2] == {"pid": 0, "ts": 30, "args": {"Memcpy BW": 4.0}, "ph": "C", "name": "Memcpy HtoD"}
    only = counter_events(made(tmp_path, TWO_STREAMS).job, 0, TimeSeriesTypes.MEMCPY_BANDWIDTH)
    assert only == []


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_written_trace_is_the_trace_and_its_counters(tmp_path: Path, ending: str) -> None:
    made_job = made(tmp_path, TWO_STREAMS)
    if ending == "json.gz":
        source = tmp_path / "0.json.gz"
        source.write_bytes(gzip.compress((tmp_path / "0.json").read_bytes()))
        made_job = TraceAnalysis({0: str(source)})
    made_job.generate_trace_with_counters(output_suffix="_new")
    events = raw_events(tmp_path / f"0_new.{ending}")
    assert events[: len(TWO_STREAMS)] == TWO_STREAMS
    assert events[len(TWO_STREAMS) :] == [json.loads(json.dumps(each)) for each in counter_events(made_job.job, 0)]


TRACE = SHARED / "hta/small/benchmark_result_924719_1679055439_trace.json.gz"


def test_a_trace_without_counters_gives_none_and_says_so() -> None:
    with pytest.warns(UserWarning, match="cuda_profiler_range"):
        assert CuptiCounterAnalysis.get_counter_data_with_operators(TraceAnalysis(trace_dir=str(DATA / "demo")).t) == []


@pytest.mark.skipif(not TRACE.is_file(), reason="needs the shared traces")
def test_the_numbers_of_htas_own_test() -> None:
    analysis = TraceAnalysis({0: str(TRACE)})
    (table,) = analysis.get_cupti_counter_data_with_operators()
    (same,) = CuptiCounterAnalysis.get_counter_data_with_operators(analysis.t, [0])
    assert table.equals(same)
    assert len(table) == 77
    assert set(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) <= set(table.columns)
    row = table.sort_values("ts").iloc[5]
    assert row["cat"] == "cuda_profiler_range"
    assert "fft2d_r2c_32x32" in row["name"]
    assert row["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"] == 86114304
    assert (row["top_level_op"], row["bottom_level_op"]) == ("aten::conv2d", "aten::cudnn_convolution")
    assert row["op_stack"] == ["aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution"]
    assert (table["index"].iloc[0], table["index_runtime"].iloc[0], table["ts"].iloc[0]) == (4107, 473, 2498229)


def test_fused_instructions_are_two_operations() -> None:
    assert sorted(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS.values()) == [1] * 6 + [2] * 3


@pytest.mark.parametrize(("counters", "why"), [((1, 2), "not as many launches"), ((), "has no cuda_profiler_range")])
def test_a_rank_without_a_launch_for_each_range_is_left_out(
    counters: tuple[int, ...], why: str, tmp_path: Path
) -> None:
    path = write([op("x", 0, 9), launch(1, 1, 1), *ranges(*counters)], tmp_path / "trace.json")
    with pytest.warns(UserWarning, match=why):
        assert TraceAnalysis({0: str(path)}).get_cupti_counter_data_with_operators() == []
