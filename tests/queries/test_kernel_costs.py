from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.core.kinds import KernelKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.kernel_costs import Call, cost_of_call, device_name, kernel_costs
from tests.reach import DATA
from tests.strategies import MAIN, Json, kernel, launch, load, op


def shaped(name: str, start: int, duration: int, dims: object, kind: str = "float") -> Json:
    types = [kind] * len(dims) if isinstance(dims, list) else []
    return op(name, start, duration, MAIN, **{"Input Dims": dims, "Input type": types})


def test_kernels_of_a_product_share_its_work_by_time(tmp_path: Path) -> None:
    names = ("ampere_sgemm_128x64_tn", "splitKreduce_kernel", "Memset (Device)")
    events = [shaped("aten::mm", 0, 40, [[64, 32], [32, 16]])]
    for at, (name, took) in enumerate(zip(names, (30, 10, 5), strict=True)):
        events += [launch(2 + 5 * at, 2, at + 1), kernel(name, 50 + 40 * at, took, at + 1)]
    table = kernel_costs(load(events, tmp_path))
    flop = 2 * 64 * 32 * 16
    assert table["flop"].tolist() == [flop * 0.75, flop * 0.25, 0]
    assert [KernelKind(kind) for kind in table["kind"]] == [KernelKind.GEMM, KernelKind.GEMM, KernelKind.MEMSET]
    assert table["library"].tolist() == ["cublas", "cublas", ""]


def test_each_kernel_has_the_kind_and_the_bytes_of_its_operator(tmp_path: Path) -> None:
    events = [shaped("aten::add", 0, 10, [[8, 4], [8, 4]]), launch(2, 2, 1), kernel("mine", 50, 5, 1)]
    (row,) = kernel_costs(load(events, tmp_path)).to_dict("records")
    assert (row["kind"], row["flop"], row["bytes"], row["element_bytes"]) == (KernelKind.ELEMENTWISE, 0, 3 * 128, 4)


@pytest.mark.parametrize(
    ("call", "moved"),
    [
        (Call("aten::embedding", [[100_000, 64], [8, 16]], ["float", "long int"], None), 2 * 128 * 64 * 4 + 128 * 8),
        (Call("aten::copy_", [[8], [8]], ["float", "float"], None), 64),
        (Call("aten::_foreach_add_", [[[8], [2]], [[8], [2]]], ["TensorList", "TensorList"], None), 80),
    ],
)
def test_bytes_are_those_that_are_read_and_written(call: Call, moved: int) -> None:
    cost = cost_of_call(call)
    assert cost is not None
    assert cost.bytes == moved


def test_operators_on_the_host_compute_where_they_call_no_others() -> None:
    graph = hg.load("data/gloo_ddp", ranks=[0])
    table = kernel_costs(graph)
    known = table[table["bytes"].notna() & (table["kind"] != KernelKind.COLLECTIVE)]
    assert (known["operator"] == known["activity"]).mean() > 0.9
    # the products of all calls are those of the roofline
    roof = hg.roofline(graph)
    assert np.isclose(table["flop"].sum(), roof["flop"].sum(), rtol=0.01)


def test_a_recording_names_its_device_and_a_frame_may() -> None:
    assert device_name(hg.load(DATA / "gloo_ddp", ranks=[0]), 0) == ""
    acts = pd.DataFrame({"duration_ns": [1, 2], "device": ["T4", None]})
    assert device_name(DependencyGraph.from_frames(acts, pd.DataFrame({"source": [], "target": []})), 0) == "T4"
