from __future__ import annotations

import math

import pytest

import htagraph as hg
from tests.reach import SHARED, graph_of
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op

GRAPH = "## Call CompiledFxGraph fal4x ##"
REGION = "Torch-Compiled Region: 0/0"


def test_regions_include_what_lies_in_them() -> None:
    events = [
        op(REGION, 0, 100), annotation(GRAPH, 10, 50), launch(20, 2, 1), kernel("triton_poi_fused_add_0", 40, 30, 1),
        launch(70, 2, 2), kernel(COMPUTE, 90, 10, 2), launch(120, 2, 3), kernel(COMPUTE, 130, 5, 3),
    ]  # fmt: skip
    assert hg.compiled_regions(load(events)).to_dict("records") == [
        {"rank": 0, "region": REGION, "inside": "", "count": 1, "host_us": 100.0, "kernels": 2, "triton_kernels": 1,
         "device_us": 40.0, "triton_us": 30.0, "triton_percent": 75.0},
        {"rank": 0, "region": GRAPH, "inside": REGION, "count": 1, "host_us": 50.0, "kernels": 1, "triton_kernels": 1,
         "device_us": 30.0, "triton_us": 30.0, "triton_percent": 100.0},
    ]  # fmt: skip


def test_triton_kernels_that_no_region_launched_have_a_row() -> None:
    (row,) = hg.compiled_regions(load([launch(0, 2, 1), kernel("triton_red_0", 5, 3, 1)])).to_dict("records")
    assert (row["region"], row["count"], row["triton_kernels"], row["device_us"]) == ("", 0, 1, 3.0)


def test_a_region_that_launches_nothing_has_no_share() -> None:
    (row,) = hg.compiled_regions(load([op(REGION, 0, 9), launch(20, 2, 1), kernel(COMPUTE, 25, 3, 1)])).to_dict(
        "records"
    )
    assert (row["kernels"], row["host_us"]) == (0, 9.0)
    assert math.isnan(row["triton_percent"])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_the_regions_of_a_real_compiled_model() -> None:
    table = hg.compiled_regions(graph_of(SHARED / "tracelens" / "torch_compile_triton.json.gz"))
    assert table["inside"].tolist() == ["", REGION]
    assert table[["count", "kernels", "triton_kernels"]].to_numpy().tolist() == [[1, 12, 4]] * 2  # as jq counts them
