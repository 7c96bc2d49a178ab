from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.naming import LINEAR
from htagraph.trace.columns import Device
from tests.reach import DATA, SHARED, graph_of
from tests.strategies import COMPUTE, MAIN, Json, complete, kernel, launch, load, op
from tests.trace.recording.torch_python import needs_torch, run_with_torch

FMA, ADD = (f"smsp__sass_thread_inst_executed_op_{each}_pred_on.sum" for each in ("ffma", "fadd"))
HALF = "c10::Half"


def shaped(name: str, start: int, duration: int, dims: list[list[int]], kind: str = HALF) -> Json:
    return op(name, start, duration, MAIN, **{"Input Dims": dims, "Input type": [kind] * len(dims)})


def product(start: int, correlation: int, dims: list[list[int]], kind: str = HALF, duration: int = 8) -> list[Json]:
    """Return a product of matrices inside a linear layer, and its kernel."""
    return [
        shaped(LINEAR, start, 10, [dims[0], dims[1][::-1]], kind), shaped("aten::mm", start + 1, 8, dims, kind),
        launch(start + 2, 2, correlation), kernel(COMPUTE, start + 20, duration, correlation),
    ]  # fmt: skip


def test_an_operator_is_counted_once_the_innermost_that_can_be(tmp_path: Path) -> None:
    graph = load([*product(0, 1, [[64, 32], [32, 16]]), *product(50, 2, [[64, 32], [32, 16]])], tmp_path)
    (row,) = hg.roofline(graph, peak_tflop_s=1.0, peak_gb_s=100.0).to_dict("records")
    flop, moved = 2 * 2 * 64 * 32 * 16, 2 * 2 * (64 * 32 + 32 * 16 + 64 * 16)
    assert (row["operator"], row["shapes"], row["source"]) == ("aten::mm", "64x32, 32x16", "shapes")
    assert (row["count"], row["flop"], row["bytes"], row["time_us"]) == (2, flop, moved, 16.0)
    assert row["share_percent"] == 100
    assert row["intensity"] == flop / moved
    assert row["tflop_s"] == pytest.approx(flop / 16e-6 / 1e12)
    assert row["gb_s"] == pytest.approx(moved / 16e-6 / 1e9)
    assert row["bound"] == "compute" if flop / moved > 10 else "memory"
    assert row["roof_percent"] == pytest.approx(100 * row["tflop_s"] / min(1.0, row["intensity"] * 0.1))


def test_an_outer_operator_counts_where_the_inner_one_has_no_shapes(tmp_path: Path) -> None:
    events = product(0, 1, [[4, 3], [3, 2]])
    events[1]["args"] = {}
    assert hg.roofline(load(events, tmp_path))["operator"].tolist() == [LINEAR]


def test_shapes_and_ranks_have_rows_of_their_own_most_time_first(tmp_path: Path) -> None:
    events = [*product(0, 1, [[4, 3], [3, 2]], duration=2), *product(50, 2, [[8, 3], [3, 2]])]
    table = hg.roofline(load({0: events, 5: events}, tmp_path))
    assert table["shapes"].tolist() == ["8x3, 3x2", "4x3, 3x2"] * 2
    assert table["rank"].tolist() == [0, 0, 5, 5]


def test_unknown_types_have_operations_but_no_bytes(tmp_path: Path) -> None:
    (row,) = hg.roofline(load(product(0, 1, [[4, 3], [3, 2]], "mystery"), tmp_path)).to_dict("records")
    assert row["flop"] == 48
    assert row["element_bytes"] == 0
    assert math.isnan(row["bytes"])
    assert math.isnan(row["intensity"])
    assert row["bound"] == ""


def test_the_devices_name_gives_its_peaks(tmp_path: Path) -> None:
    graph = load(product(0, 1, [[4, 3], [3, 2]]), tmp_path)
    facts = replace(graph.traces[0].facts, devices=(Device(0, "NVIDIA A100-SXM4-80GB"),))
    trace = replace(graph.traces[0], facts=facts)
    (row,) = hg.roofline(graph.replace(traces={0: trace})).to_dict("records")
    assert (row["peak_tflop_s"], row["peak_gb_s"], row["bound"]) == (312.0, 2039.0, "memory")


@pytest.mark.parametrize(("name", "peak"), [("ampere_sgemm_128x64_tn", 19.5), ("tensorop_s1688gemm_256x128", 156.0)])
def test_kernels_say_whether_32_bit_elements_are_multiplied_as_tf32(name: str, peak: float, tmp_path: Path) -> None:
    events = product(0, 1, [[4, 3], [3, 2]], "float")
    events[3]["name"] = name
    graph = load(events, tmp_path)
    facts = replace(graph.traces[0].facts, devices=(Device(0, "NVIDIA A100-SXM4-80GB"),))
    table = hg.roofline(graph.replace(traces={0: replace(graph.traces[0], facts=facts)}))
    assert table["peak_tflop_s"].tolist() == [peak]
    assert table["tf32"].tolist() == [peak == 156.0]


def ranged(*counters: Mapping[str, float]) -> list[Json]:
    launches = [event for i in range(len(counters)) for event in (op("x", 10 * i, 9), launch(10 * i + 1, 1, i + 1))]
    ranges = [complete("cuda_profiler_range", "k", 500 + i, 1, 0, **each) for i, each in enumerate(counters)]
    return [*launches, *ranges]


def test_counters_count_whatever_the_operator_is(tmp_path: Path) -> None:
    events = ranged({FMA: 10, ADD: 5, "dram__bytes.sum": 50}, {FMA: 1, ADD: 0, "dram__bytes.sum": 2})
    work = [kernel(COMPUTE, 30, 4, 1), kernel(COMPUTE, 40, 6, 2)]
    (row,) = hg.roofline(load([*events, *work], tmp_path)).to_dict("records")
    assert (row["operator"], row["source"], row["count"], row["time_us"]) == ("x", "counters", 2, 10.0)
    assert (row["flop"], row["bytes"], row["intensity"]) == (27.0, 52.0, 27 / 52)


def test_bytes_read_and_written_add_up_where_both_were_counted(tmp_path: Path) -> None:
    both = {FMA: 1, "dram__bytes_read.sum": 5, "dram__bytes_write.sum": 7}
    assert hg.roofline(load(ranged(both), tmp_path))["bytes"].tolist() == [12.0]
    half = {FMA: 1, "dram__bytes_read.sum": 5}
    assert hg.roofline(load(ranged(half), tmp_path))["bytes"].isna().all()


def test_work_that_was_not_recorded_took_an_unknown_time(tmp_path: Path) -> None:
    assert hg.roofline(load(ranged({FMA: 1}), tmp_path))["time_us"].isna().all()


def test_on_a_rank_without_device_an_operator_takes_its_own_time() -> None:
    graph = hg.load(DATA / "gloo_ddp", ranks=[0])
    table = hg.roofline(graph)
    acts = graph.activities
    for row in table[table["operator"] == "aten::addmm"].to_dict("records"):
        assert row["time_us"] > 0
    named = [i for i in range(len(acts)) if graph.names[acts.name[i]] == "aten::addmm"]
    total = table.loc[table["operator"] == "aten::addmm", "time_us"].sum()
    assert total == pytest.approx(float(np.sum(acts.duration[named])) / 1000)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared traces")
@pytest.mark.parametrize(
    "name",
    [
        "tracelens/torch_compile_triton",
        "tracelens/h100_qwen",
        "tracelens/b200_eager",
        "tracelens/mi300_resnet_act_checkpoint",
        "hta/trace_diff/control/control",
        "hta/trace_diff/test/test",
    ],
)
def test_no_real_operator_is_beyond_its_devices_roof(name: str) -> None:
    table = hg.roofline(graph_of(SHARED / f"{name}.json.gz"))
    table = table[table["time_us"] > 5 * table["count"]]  # shorter ones find their inputs in the caches
    assert len(table)
    assert table["roof_percent"].between(0, 100, inclusive="right").all(), table["roof_percent"].max()
    assert table["share_percent"].sum() <= 100


CONVOLUTION = [[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], []]
VALUES = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"]
BACKWARD = [[2, 4, 6, 6], [2, 3, 8, 8], [4, 3, 3, 3], *[[]] * 8]
BACK_VALUES = ["", "", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"]


def changed(values: list[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]


ODD = {
    "stride 0": ("aten::convolution", CONVOLUTION, changed(VALUES, 3, "[0, 0]")),
    "nested": ("aten::convolution", CONVOLUTION, changed(VALUES, 3, "[" * 100_000)),
    "kernel too large": ("aten::convolution", changed(CONVOLUTION, 1, [4, 3, 9, 12]), VALUES),
    "groups": ("aten::convolution", CONVOLUTION, changed(changed(VALUES, 6, "True"), 8, "-3")),
    "mask of a list": ("aten::convolution_backward", BACKWARD, changed(BACK_VALUES, 10, [True, True])),
    "mask of texts": ("aten::convolution_backward", BACKWARD, changed(BACK_VALUES, 10, '["a", "b", "c"]')),
    "numbers": ("aten::convolution_backward", BACKWARD, list(range(11))),
    "no lists": ("aten::mm", 5, None),
    "lists of tensors": ("aten::addmm", [[[2, 2], [2, 2]], [4, 8], [8, 4]], None),
    "negative": ("aten::mm", [[-4, 8], [8, 4]], None),
    "fractions": ("aten::mm", [[4.5, 8], [8, 4]], None),
    "truth": ("aten::mm", [[True, 8], [8, 4]], None),
    "beyond floats": ("aten::mm", [[10**400, 8], [8, 4]], None),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dims", "values"), ODD.values(), ids=ODD)
def test_one_odd_operator_is_counted_as_left_out(name: str, dims: Any, values: Any, tmp_path: Path, run: Any) -> None:
    odd = op(name, 100, 8, MAIN, **{"Input Dims": dims, "Concrete Inputs": values})
    graph = load([*product(0, 1, [[4, 3], [3, 2]]), odd], tmp_path)
    table = hg.roofline(graph)
    assert table["flop"].tolist() == [2 * 4 * 3 * 2]
    assert table.attrs["left_out"] == 1
    ran = run("roofline", tmp_path / "rank-0.json")
    assert ran.code == 0
    assert "1 operator not counted: what was recorded of the inputs fits no formula" in " ".join(ran.out.split())


ATTENTION = "aten::_scaled_dot_product_flash_attention"


def test_a_causal_mask_is_counted_where_it_was_recorded_and_is_up_to_where_not(tmp_path: Path, run: Any) -> None:
    shapes = [[1, 2, 4, 8]] * 3
    known = shaped(ATTENTION, 0, 8, shapes)
    known["args"]["Concrete Inputs"] = ["", "", "", "0.", "True"]
    table = hg.roofline(load([known, shaped(ATTENTION, 10, 9, shapes)], tmp_path)).set_index("at_most")
    assert table["flop"].to_dict() == {False: 2 * 2 * 10 * 16, True: 2 * 2 * 16 * 16}
    said = " ".join(run("roofline", tmp_path / "rank-0.json", "--peak-tflops=1", "--peak-gbs=1").out.split())
    assert "2 operators computed up to 1.66e-06 GFLOP" in said
    assert "Of these, 1 operator may have computed less: whether a mask is causal, or where groups end, was not" in said
    assert "at up to 6 % of what" in said


def test_numbers_of_4_bits_come_in_pairs_and_complex_ones_are_not_counted(tmp_path: Path) -> None:
    packed = shaped("aten::_scaled_mm", 0, 8, [[16, 8], [8, 16]], "c10::Float4_e2m1fn_x2")
    complex_ones = shaped("aten::mm", 10, 8, [[16, 8], [8, 16]], "c10::complex<float>")
    table = hg.roofline(load([packed, complex_ones], tmp_path))
    assert table["flop"].tolist() == [2 * 16 * 16 * 16]
    assert table["bytes"].isna().all()
    assert table.attrs["left_out"] == 1


def test_what_encloses_a_counted_operator_or_is_inside_one_is_not_left_out(tmp_path: Path) -> None:
    outer, odd = shaped(LINEAR, 0, 20, [[3], [4]]), shaped("aten::mm", 32, 2, [[3], [4]])
    events = [
        outer,
        shaped("aten::mm", 2, 8, [[4, 3], [3, 2]]),
        shaped("aten::addmm", 30, 9, [[2], [4, 3], [3, 2]]),
        odd,
    ]
    table = hg.roofline(load(events, tmp_path))
    assert sorted(table["operator"]) == ["aten::addmm", "aten::mm"]
    assert table.attrs["left_out"] == 0


@pytest.mark.parametrize("kinds", [5, [1, 2, 3], [["float"], None], "float"])
def test_odd_types_have_operations_but_no_bytes(kinds: Any, tmp_path: Path) -> None:
    event = shaped("aten::mm", 0, 8, [[4, 3], [3, 2]])
    event["args"]["Input type"] = kinds
    (row,) = hg.roofline(load([event], tmp_path)).to_dict("records")
    assert row["flop"] == 2 * 4 * 3 * 2
    assert math.isnan(row["bytes"])


def test_sizes_beyond_memory_do_not_wrap_around(tmp_path: Path) -> None:
    (row,) = hg.roofline(load([shaped("aten::mm", 0, 8, [[10**18, 10**18], [10**18, 1]])], tmp_path)).to_dict("records")
    assert row["flop"] == pytest.approx(2e36)
    assert row["bytes"] == pytest.approx(2e36)


@pytest.mark.parametrize("peak", [0, -1.0, math.nan, math.inf])
def test_a_peak_that_cannot_be_is_refused(peak: float, run: Any) -> None:
    graph = graph_of(DATA / "demo")
    with pytest.raises(ValueError, match="peak_gb_s="):
        hg.roofline(graph, peak_gb_s=peak)
    ran = run("roofline", DATA / "demo", f"--peak-tflops={peak}")
    assert ran.code == 2
    assert "--peak-tflops" in ran.err


@needs_torch
def test_what_pytorch_counts_is_counted(tmp_path: Path) -> None:
    run_with_torch(Path(__file__).with_name("torch_products.py"), str(tmp_path))
    counted = json.loads((tmp_path / "counted.json").read_text())
    tables = {name: hg.roofline(graph_of(tmp_path / name)) for name in counted}
    assert {name: table["flop"].sum() for name, table in tables.items()} == counted
    assert not any(table["at_most"].any() or table.attrs["left_out"] for table in tables.values())
