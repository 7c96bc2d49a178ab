"""CUPTI's counters by HTA's own path."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.hta.analyzers.cupti_counter_analysis import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS, CuptiCounterAnalysis
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.analyses.test_cupti_counters import ranges
from tests.reach import DATA, SHARED
from tests.strategies import launch, op, write

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
