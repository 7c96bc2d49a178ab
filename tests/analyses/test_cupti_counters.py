from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from tests.reach import SHARED, graph_of
from tests.strategies import Json, complete, launch, load, op, runtime, step

FMA = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"
CYCLES = "sm__cycles.sum"


def ranges(*values: int) -> list[Json]:
    return [
        complete("cuda_profiler_range", f"k{i}", 500 + i, 1, 0, **{FMA: v, CYCLES: 7}) for i, v in enumerate(values)
    ]


def test_each_range_belongs_to_its_launch_and_the_operators_around_it(tmp_path: Path) -> None:
    events = [step(3, 0, 99), op("outer", 1, 50), op("inner", 2, 9), launch(3, 1, 1), launch(20, 1, 2), *ranges(10, 20)]
    table = hg.cupti_counters(load(events, tmp_path))
    assert table["range"].tolist() == [5, 5, 6, 6]
    assert table["kernel"].tolist() == ["k0", "k0", "k1", "k1"]
    assert table["launch"].tolist() == [3, 3, 4, 4]
    assert table["step"].tolist() == [3] * 4
    assert table["operator_stack"].tolist() == ["outer|inner"] * 2 + ["outer"] * 2
    assert table["top_operator"].tolist() == ["outer"] * 4
    assert table["bottom_operator"].tolist() == ["inner"] * 2 + ["outer"] * 2
    assert table["counter"].tolist() == [FMA, CYCLES] * 2
    assert table["value"].tolist() == [10.0, 7.0, 20.0, 7.0]
    assert table["flop"].tolist() == [20.0, 0.0, 40.0, 0.0]


def test_a_driver_call_inside_a_runtime_call_is_no_launch_of_its_own(tmp_path: Path) -> None:
    inner = complete("cuda_driver", "cuLaunchKernel", 2, 1, correlation=1)
    events = [op("x", 0, 9), runtime("cudaLaunchKernel", 1, 4, 1), inner, *ranges(1)]
    assert hg.cupti_counters(load(events, tmp_path))["bottom_operator"].tolist() == ["x", "x"]


def test_without_a_launch_for_each_range_operators_are_unknown(tmp_path: Path) -> None:
    table = hg.cupti_counters(load([op("x", 0, 9), launch(1, 1, 1), *ranges(1, 2)], tmp_path))
    assert table["launch"].tolist() == [-1] * 4
    assert table["operator_stack"].tolist() == [""] * 4
    assert table["value"].sum() == 17


def test_a_counter_that_a_range_lacks_has_no_row(tmp_path: Path) -> None:
    events = [launch(1, 1, 1), launch(3, 1, 2), *ranges(1, 2)]
    del events[-1]["args"][CYCLES]
    assert hg.cupti_counters(load(events, tmp_path))["counter"].tolist() == [FMA, CYCLES, FMA]


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared traces")
def test_the_numbers_of_htas_own_test() -> None:
    table = hg.cupti_counters(graph_of(SHARED / "hta/small/benchmark_result_924719_1679055439_trace.json.gz"))
    assert table["range"].nunique() == 77
    assert table["counter"].nunique() == 9
    sixth = table[table["range"] == table["range"].drop_duplicates().iloc[5]].set_index("counter")
    assert "fft2d_r2c_32x32" in sixth["kernel"].iloc[0]
    assert sixth.loc["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "value"] == 86114304
    assert (sixth["top_operator"].iloc[0], sixth["bottom_operator"].iloc[0]) == (
        "aten::conv2d",
        "aten::cudnn_convolution",
    )
