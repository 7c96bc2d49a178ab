"""HTA's launch statistics; the figures are HTA 0.6.1's own on the same files (get_cuda_kernel_launch_stats, …)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from htagraph.hta.shapes.job import HtaJob, open_job
from htagraph.hta.shapes.launches import (
    aten_op_figure,
    aten_op_kernels_and_delay,
    cuda_kernel_launch_stats,
    launch_figures,
)
from tests.reach import DATA, SHARED
from tests.strategies import COMPUTE, COPY, Json, kernel, launch, op, runtime, write

HTA = SHARED / "hta"
real = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")
FILES = {
    "control": {3: HTA / "trace_diff" / "control" / "control.json.gz"},
    "test": {1: HTA / "trace_diff" / "test" / "test.json.gz"},
    "simple_add": {0: HTA / "critical_path" / "simple_add.json.gz"},
    "torchrec": {i: SHARED / "torchrec_v100_equal" / f"pid{44237 + i}.pt.trace.json.gz" for i in range(4)},
}


@cache
def job(name: str) -> HtaJob:
    return open_job({rank: str(path) for rank, path in FILES[name].items()})


def made(folder: Path, *ranks: list[Json]) -> HtaJob:
    return open_job({rank: str(write(each, folder / f"{rank}.json", rank)) for rank, each in enumerate(ranks)})


@real
@pytest.mark.parametrize(
    ("name", "rank", "rows", "sums", "sums_of_kernels"),
    [
        ("control", 3, 7875, [14276614016, 115050, 413947, 15865017], [12944439744, 48693, 368519, 13906825]),
        ("simple_add", 0, 98, [443985, 4260778, 49816, 10264], [429483, 4220610, 10728, 10120]),
        ("torchrec", 0, 416, [7351169, 6569, 360177, 9265261], [6304459, 4714, 359629, 8096857]),
    ],
)
def test_launches_are_those_of_hta(
    name: str, rank: int, rows: int, sums: list[int], sums_of_kernels: list[int]
) -> None:
    table = cuda_kernel_launch_stats(job(name), [rank])[rank]
    assert list(table.columns) == ["correlation", "cpu_duration", "gpu_duration", "launch_delay"]
    assert (len(table), table.sum().tolist()) == (rows, sums)
    kernels = cuda_kernel_launch_stats(job(name), [rank], include_memory_events=False)[rank]
    assert kernels.sum().tolist() == sums_of_kernels


@real
def test_rows_are_in_the_order_of_the_file_with_htas_types() -> None:
    table = cuda_kernel_launch_stats(job("control"), [3])[3]
    assert table.iloc[:3].to_numpy().tolist() == [[1773085, 16, 1060, 1], [1773163, 14, 17, 2], [1773213, 13, 3, 1]]
    assert [str(kind) for kind in table.dtypes] == ["int32", "float64", "float64", "float64"]


@real
def test_graph_launches_which_hta_leaves_out_are_there() -> None:
    table = cuda_kernel_launch_stats(job("test"), [1])[1]
    assert len(table) == 8310 + 4205  # HTA's, and the works of five steps' ten graph launches
    assert sorted(table["correlation"].value_counts().tolist())[-10:] == [339] * 5 + [502] * 5


@real
@pytest.mark.parametrize(
    ("name", "rank", "size", "delays", "first"),
    [
        ("control", 3, (153, 6075), (2872.001, 409101.508), [7, 118, 139, 121, 3]),
        ("test", 1, (54, 3295), (1130.446, 2055817.406), [3, 36, 16, 5, 38]),
        ("simple_add", 0, (10, 53), (5742100.842, 2110504.62), [3, 1, 5, 2, 7]),
        ("torchrec", 0, (60, 157), (86885.6, 1061934.0), [11, 21, 52, 24, 8]),
    ],
)
def test_operators_and_their_delays_are_those_of_hta(
    name: str, rank: int, size: tuple[int, int], delays: tuple[float, float], first: list[int]
) -> None:
    table = aten_op_kernels_and_delay(job(name), [rank])[rank]
    assert (len(table), table["occurrence_count"].sum()) == size
    assert table[["avg_aten_op_launch_delay", "avg_runtime_delay"]].sum().tolist() == pytest.approx(delays)
    assert table.index[:5].tolist() == first


@real
def test_the_most_frequent_operators_come_first() -> None:
    table = aten_op_kernels_and_delay(job("control"), [3])[3]
    columns = ["aten_op_name", "occurrence_count", "avg_aten_op_launch_delay", "avg_runtime_delay"]
    assert table[columns].iloc[:2].to_numpy().tolist() == [
        ["aten::add_", 495, 3.469, 437.677], ["aten::mul", 485, 4.348, 692.664],
    ]  # fmt: skip


@real
def test_a_rank_has_the_same_rows_whatever_was_asked_for_before() -> None:  # HTA: those of the rank before too
    both = aten_op_kernels_and_delay(job("torchrec"), [0, 1])
    assert both[1].equals(aten_op_kernels_and_delay(job("torchrec"), [1])[1])


def test_launches_of_every_maker_count(tmp_path: Path) -> None:
    calls = ["cuLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "cudaGraphLaunch"]
    events = [runtime(name, 10 * i, 2, i + 1) for i, name in enumerate(calls)]
    events += [kernel(COMPUTE, 100 + 10 * i, 5, i + 1) for i in range(4)]
    assert len(cuda_kernel_launch_stats(made(tmp_path, events))[0]) == 4


def test_columns_can_be_sorted_by(tmp_path: Path) -> None:
    events: list[Json] = []
    for i, name in enumerate(("aten::a", "aten::a", "aten::b")):
        at = 100 * i
        events += [op(name, at, 50), launch(at + 10 * i, 2, i + 1), kernel(COMPUTE, at + 60, 5, i + 1)]
    by_delay = aten_op_kernels_and_delay(made(tmp_path, events), sort_by=["avg_aten_op_launch_delay"])[0]
    assert by_delay["aten_op_name"].tolist() == ["aten::b", "aten::a"]
    assert aten_op_kernels_and_delay(made(tmp_path, events))[0]["aten_op_name"].tolist() == ["aten::a", "aten::b"]


def test_a_job_without_launches_has_empty_tables_and_says_so(tmp_path: Path) -> None:
    job = made(tmp_path, [op("aten::mm", 0, 5)])
    with pytest.warns(UserWarning, match="no launch with its device work"):
        assert cuda_kernel_launch_stats(job)[0].empty
    with pytest.warns(UserWarning, match="no ATen operator"):
        table = aten_op_kernels_and_delay(job)[0]
    assert (len(table), len(table.columns)) == (0, 5)


def test_the_default_is_the_lowest_rank() -> None:
    files = {rank: str(DATA / "demo" / f"rank-{rank}.json.gz") for rank in (2, 3)}
    assert list(cuda_kernel_launch_stats(open_job(files))) == [2]


def test_figures_show_the_tables(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 90),
        launch(10, 60, 1),
        kernel(COMPUTE, 200, 5, 1),
        launch(80, 9, 2),
        kernel(COPY, 95, 5, 2),
    ]
    job = made(tmp_path, events)
    short, long, late = launch_figures(cuda_kernel_launch_stats(job)[0], 0, 50, 100)
    assert [len(figure.data[0].x) for figure in (short, long, late)] == [1, 1, 1]
    assert "rank 0" in late.layout.title.text
    figure = aten_op_figure(aten_op_kernels_and_delay(job)[0], 0)
    assert figure.data[0].cells.values[0][0] == "aten::mm"
