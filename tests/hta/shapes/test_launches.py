"""What HTA says of launches; the figures are HTA 0.6.1's own (traceinsight) on the same files, with its defaults.

HTA counts `cuda_sync` events as kernels, which we do not: in the traces of the sequences no operator asked for here has
any. For its answer on stragglers (megatron_tp8_a100) the kernels were renamed to what HTA knows.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from htagraph.analyses.late_starts import late_starts
from htagraph.hta.shapes.launches import _straggler_figures
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.analyses.test_kernel_patterns import linear
from tests.analyses.test_late_starts import rank
from tests.reach import SHARED, raw_events
from tests.strategies import COMPUTE, Json, annotation, complete, kernel, launch, op, runtime, step, write

HTA = SHARED / "hta"
real = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")
FILES = {
    "control": {3: HTA / "trace_diff" / "control" / "control.json.gz"},
    "test": {1: HTA / "trace_diff" / "test" / "test.json.gz"},
    "simple_add": {0: HTA / "critical_path" / "simple_add.json.gz"},
    "torchrec": {i: SHARED / "torchrec_v100_equal" / f"pid{44237 + i}.pt.trace.json.gz" for i in range(4)},
}


@cache
def job(name: str) -> TraceAnalysis:
    return TraceAnalysis({rank: str(path) for rank, path in FILES[name].items()})


def made(folder: Path, *ranks: list[Json]) -> TraceAnalysis:
    return TraceAnalysis({rank: str(write(each, folder / f"{rank}.json", rank)) for rank, each in enumerate(ranks)})


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
    table = job(name).get_cuda_kernel_launch_stats([rank], visualize=False)[rank]
    assert list(table.columns) == ["correlation", "cpu_duration", "gpu_duration", "launch_delay"]
    assert (len(table), table.sum().tolist()) == (rows, sums)
    kernels = job(name).get_cuda_kernel_launch_stats([rank], include_memory_events=False, visualize=False)[rank]
    assert kernels.sum().tolist() == sums_of_kernels


@real
def test_rows_are_in_the_order_of_the_file_with_htas_types() -> None:
    table = job("control").get_cuda_kernel_launch_stats([3], visualize=False)[3]
    assert table.iloc[:3].to_numpy().tolist() == [[1773085, 16, 1060, 1], [1773163, 14, 17, 2], [1773213, 13, 3, 1]]
    assert [str(kind) for kind in table.dtypes] == ["int32", "float64", "float64", "float64"]


@pytest.mark.slow
@real
def test_graph_launches_which_hta_leaves_out_are_there() -> None:
    table = job("test").get_cuda_kernel_launch_stats([1], visualize=False)[1]
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
    table = job(name).get_aten_op_kernels_and_delay([rank], visualize=False)[rank]
    assert (len(table), table["occurrence_count"].sum()) == size
    assert table[["avg_aten_op_launch_delay", "avg_runtime_delay"]].sum().tolist() == pytest.approx(delays)
    assert table.index[:5].tolist() == first


@real
def test_the_most_frequent_operators_come_first() -> None:
    table = job("control").get_aten_op_kernels_and_delay([3], visualize=False)[3]
    columns = ["aten_op_name", "occurrence_count", "avg_aten_op_launch_delay", "avg_runtime_delay"]
    assert table[columns].iloc[:2].to_numpy().tolist() == [
        ["aten::add_", 495, 3.469, 437.677], ["aten::mul", 485, 4.348, 692.664],
    ]  # fmt: skip


@real
def test_a_rank_has_the_same_rows_whatever_was_asked_for_before() -> None:  # HTA: those of the rank before too
    both = job("torchrec").get_aten_op_kernels_and_delay([0, 1], visualize=False)
    assert both[1].equals(job("torchrec").get_aten_op_kernels_and_delay([1], visualize=False)[1])


def test_launches_of_every_maker_count(tmp_path: Path) -> None:
    calls = ["cuLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "cudaGraphLaunch"]
    events = [runtime(name, 10 * i, 2, i + 1) for i, name in enumerate(calls)]
    events += [kernel(COMPUTE, 100 + 10 * i, 5, i + 1) for i in range(4)]
    assert len(made(tmp_path, events).get_cuda_kernel_launch_stats(visualize=False)[0]) == 4


def test_columns_can_be_sorted_by(tmp_path: Path) -> None:
    events: list[Json] = []
    for i, name in enumerate(("aten::a", "aten::a", "aten::b")):
        at = 100 * i
        events += [op(name, at, 50), launch(at + 10 * i, 2, i + 1), kernel(COMPUTE, at + 60, 5, i + 1)]
    job = made(tmp_path, events)
    for by, names in ((["avg_aten_op_launch_delay"], ["aten::b", "aten::a"]), (None, ["aten::a", "aten::b"])):
        assert job.get_aten_op_kernels_and_delay(sort_by=by, visualize=False)[0]["aten_op_name"].tolist() == names


def test_a_job_without_launches_has_empty_tables_and_says_so(tmp_path: Path) -> None:
    job = made(tmp_path, [op("aten::mm", 0, 5)])
    with pytest.warns(UserWarning, match="no launch with its device work"):
        assert job.get_cuda_kernel_launch_stats(visualize=False)[0].empty
    with pytest.warns(UserWarning, match="no ATen operator"):
        table = job.get_aten_op_kernels_and_delay(visualize=False)[0]
    assert (len(table), len(table.columns)) == (0, 5)


COLUMNS = ["pattern", "count", "GPU kernel duration (us)", "CPU op duration (us)"]
PATTERNS = {
    ("control", "aten::linear"): [(4, 10, 986.0, 1123.0)],
    ("control", "aten::mm"): [],
    ("control", "## forward"): [(437, 5, 122164.0, 100283.0)],
    ("control", "## backward"): [
        (1024, 1, 43347.0, 34552.0),
        (1024, 1, 37699.0, 35253.0),
        (1024, 1, 36239.0, 34160.0),
        (1024, 1, 43316.0, 34551.0),
        (1024, 1, 44242.0, 32120.0),
    ],
    ("control", "aten::lin"): [(4, 10, 986.0, 1123.0)],
    ("test", "aten::linear"): [(4, 70, 2913.0, 6084.0), (4, 10, 2850.0, 1311.0)],
    ("test", "aten::mm"): [],
    ("test", "## forward"): [(920, 3, 131201.0, 80408.0), (920, 2, 89187.0, 44738.0)],
    ("test", "## backward"): [(1468, 3, 255427.0, 107000.0), (1468, 1, 87682.0, 40673.0), (1468, 1, 85193.0, 36075.0)],
    ("test", "aten::lin"): [(4, 70, 2913.0, 6084.0), (4, 10, 2850.0, 1311.0)],
}
"""By trace and operator: names in the pattern, and the other columns."""


@pytest.mark.slow
@real
@pytest.mark.parametrize(("name", "operator"), PATTERNS)
@pytest.mark.filterwarnings("ignore:no frequent kernel sequences")
def test_the_numbers_are_htas(name: str, operator: str, tmp_path: Path) -> None:
    table = job(name).get_frequent_cuda_kernel_sequences(operator, str(tmp_path), rank=next(iter(FILES[name])))
    found = [(len(row[0].split("|")), *row[1:]) for row in table.itertuples(index=False, name=None)]
    assert found == PATTERNS[name, operator]
    assert table.columns.tolist() == COLUMNS
    assert [table[column].dtype.kind for column in COLUMNS[1:]] == ["i", "f", "f"]
    assert [path.name for path in tmp_path.iterdir()] == ([f"overlaid_{name}.json.gz"] if found else [])


def traced(tmp_path: Path, *events: object) -> TraceAnalysis:
    return TraceAnalysis({0: str(write(list(events), tmp_path / "trace.json"))})  # type: ignore[arg-type]


def test_the_outermost_operators_count_at_any_depth(tmp_path: Path) -> None:
    """HTA takes those at the least depth of all: it loses the calls of one phase where another's lie less deep."""
    deep = [op("outer", 0, 45), op("aten::linear_", 1, 42), *linear(2, 1, "a", "b", "c")]
    found = traced(tmp_path, *deep, *linear(100, 9, "x", "y", "z")).get_frequent_cuda_kernel_sequences(
        "aten::linear", str(tmp_path)
    )
    assert found["pattern"].tolist() == ["aten::linear_|a|b|c", "aten::linear|x|y|z"]


def test_backward_operators_lie_in_the_main_threads_annotation(tmp_path: Path) -> None:
    events = [
        step(1, 0, 90), annotation("## backward ##", 5, 80),
        op("autograd::engine::evaluate_function: MmBackward0", 10, 20, tid=2),
        complete("cuda_runtime", "cudaLaunchKernel", 12, 1, 2, correlation=1), kernel(COMPUTE, 40, 6, 1),
        op("autograd::engine::evaluate_function: MmBackward0", 88, 20, tid=2),  # ends behind it
        complete("cuda_runtime", "cudaLaunchKernel", 90, 1, 2, correlation=2), kernel(COMPUTE, 95, 6, 2),
    ]  # fmt: skip
    found = traced(tmp_path, *events).get_frequent_cuda_kernel_sequences(
        "## backward", str(tmp_path), min_pattern_len=1
    )
    assert found.to_dict("records") == [dict(zip(COLUMNS, (f"## backward ##|{COMPUTE}", 1, 6.0, 80.0), strict=True))]


def test_annotations_as_the_device_saw_them_hide_no_operator(tmp_path: Path) -> None:
    seen = complete("gpu_user_annotation", "## forward ##", 20, 9, 7, stream=7)
    events = [annotation("## forward ##", 0, 30), *linear(5, 1, "a", "b", "c"), seen]
    found = traced(tmp_path, *events).get_frequent_cuda_kernel_sequences("forward", str(tmp_path))
    assert found["count"].tolist() == [1]


@pytest.mark.parametrize(
    ("operator", "folder", "why"),
    [("", ".", "must be part"), ("aten::linear", "absent", "no folder"), ("nothing", ".", "no operator")],
)
def test_what_gives_nothing_says_why(operator: str, folder: str, why: str, tmp_path: Path) -> None:
    made = traced(tmp_path, *linear(0, 1, "a", "b", "c"))
    with pytest.warns(UserWarning, match=why):
        found = made.get_frequent_cuda_kernel_sequences(operator, str(tmp_path / folder))
    assert found.columns.tolist() == COLUMNS
    assert found.empty
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_a_plain_trace_gives_a_plain_file(tmp_path: Path) -> None:
    made = traced(tmp_path, *linear(0, 1, "a", "b", "c"), launch(70, 1, 9))
    made.get_frequent_cuda_kernel_sequences("aten::linear", str(tmp_path), compress_other_kernels=False)
    events = raw_events(tmp_path / "overlaid_trace.json")
    assert sum("Patterns" in event["args"] for event in events) == 7


# stragglers


@pytest.fixture
def three(tmp_path: Path) -> TraceAnalysis:
    end = [launch(200, 1, 99), kernel(COMPUTE, 205, 1, 99)]
    return made(tmp_path, *([*rank(late), *end] for late in (0, 8, 2)))


@pytest.mark.slow
@real
def test_the_candidates_are_those_of_hta() -> None:
    files = {i: str(SHARED / "megatron_tp8_a100" / f"megatron_kineto_{i}.json.gz") for i in range(8)}
    job = TraceAnalysis(files)
    assert job.get_profiler_steps() == [3]
    assert [sorted(job.get_potential_stragglers(None, count)) for count in range(1, 6)] == [
        [2], [2, 5], [2, 3, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5],
    ]  # fmt: skip


def test_three_figures_show_what_is_late(three: TraceAnalysis) -> None:
    starts = late_starts(three.job.graph, steps=[3])
    long, differing, late = _straggler_figures(three.job, [3], starts, [1])
    assert [list(bar.marker.color) for bar in late.data] == [["blue", "red", "blue"]]
    assert "1 (red)" in late.layout.title.text
    bars = [len(trace.y) for trace in differing.data]
    assert sum(bars) == 3  # the last collective of each rank's only analysed step
    assert {label for trace in differing.data for label in trace.y} == {f"rank {rank} stream 20" for rank in range(3)}
    assert sum(len(trace.y) for trace in long.data) >= sum(bars)
    assert [list(bar.x) for bar in late.data] == [[0, 1, 2]]


def test_the_rank_that_starts_late_is_found(three: TraceAnalysis) -> None:
    assert three.get_potential_stragglers(num_candidates=1) == [1]
    assert three.get_potential_stragglers() == [1, 2]
    assert three.get_potential_stragglers(num_candidates=0) == [1]
    assert sorted(three.get_potential_stragglers(num_candidates=9)) == [0, 1, 2]  # HTA fails


def test_steps_that_are_not_there_are_refused(three: TraceAnalysis) -> None:
    assert three.get_potential_stragglers([3, 77], 1) == [1]
    with pytest.raises(ValueError, match="the job has steps 3"):
        three.get_potential_stragglers([77])


def test_jobs_that_cannot_tell_say_why(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="steps none"):
        assert made(tmp_path, [launch(0, 1, 1)]).get_potential_stragglers() == []
    with pytest.warns(UserWarning, match="no two ranks"):
        assert made(tmp_path, rank(0)).get_potential_stragglers() == []


def test_another_implementation_can_be_brought(three: TraceAnalysis) -> None:
    def most_events(frame: pd.DataFrame, symbols: Any, count: int, visualize: bool) -> pd.Series[int]:  # noqa: FBT001
        assert (count, visualize, set(frame["iteration"])) == (2, False, {3})
        assert "ProfilerStep#3" in symbols.sym_index
        return pd.Series([0, 1, 5], index=[0, 1, 2])

    assert three.get_potential_stragglers(straggler_identification_impl=most_events) == [2, 1]
