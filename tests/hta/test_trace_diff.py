"""TraceDiff as HTA has it: its numbers on whole-µs traces, its own tests' numbers, and its errors."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes.job import open_job
from htagraph.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from tests.hta.shapes.test_job import TWO_STEPS
from tests.hta.shapes.test_job import write as write_steps
from tests.reach import DATA, SHARED
from tests.strategies import COMPUTE, complete, kernel, launch, op, step, write

DEMO = str(DATA / "demo")
with_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
PAIRS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "compare": ("hta/compare/base", "hta/compare/test", {"control_iteration": 1010, "test_iteration": 1010}),
    "tdiff": ("hta/trace_diff/control", "hta/trace_diff/test", {}),
    "torchrec": ("torchrec_v100_equal", "torchrec_v100_leading_missing",
                 {"control_rank": [0, 1, 2, 3], "test_rank": [0, 1, 2, 3]}),
}  # fmt: skip
HTA = {
     ('tdiff', 'CPU', 'name') : (231, 10526, 343188, 8684, 522227, {'+': 25, '-': 128, '=': 78}) ,
     ('tdiff', 'CPU', 'short_name') : (228, 10526, 343188, 8684, 522227, {'+': 25, '-': 128, '=': 75}) ,
     ('tdiff', 'GPU', 'name') : (201, 1575, 68591, 2503, 150930, {'+': 42, '-': 75, '=': 84}) ,
     ('tdiff', 'GPU', 'short_name') : (82, 1575, 68591, 2503, 150930, {'+': 30, '-': 17, '=': 35}) ,
     ('tdiff', 'ALL', 'name') : (432, 12101, 411779, 11187, 673157, {'+': 67, '-': 203, '=': 162}) ,
     ('tdiff', 'ALL', 'short_name') : (310, 12101, 411779, 11187, 673157, {'+': 55, '-': 145, '=': 110}) ,
     ('compare', 'CPU', 'name') : (9, 6, 122224, 8, 122686, {'+': 3, '-': 1, '=': 5}) ,
     ('compare', 'CPU', 'short_name') : (9, 6, 122224, 8, 122686, {'+': 3, '-': 1, '=': 5}) ,
     ('compare', 'GPU', 'name') : (1, 1, 4, 0, 0, {'-': 1}) ,
     ('compare', 'GPU', 'short_name') : (1, 1, 4, 0, 0, {'-': 1}) ,
     ('compare', 'ALL', 'name') : (10, 7, 122228, 8, 122686, {'+': 3, '-': 2, '=': 5}) ,
     ('compare', 'ALL', 'short_name') : (10, 7, 122228, 8, 122686, {'+': 3, '-': 2, '=': 5}) ,
     ('torchrec', 'CPU', 'name') : (173, 8588, 9404671, 8131, 33094225, {'+': 1, '-': 3, '=': 169}) ,
     ('torchrec', 'CPU', 'short_name') : (169, 8588, 9404671, 8131, 33094225, {'+': 1, '-': 3, '=': 165}) ,
     ('torchrec', 'GPU', 'name') : (74, 832, 706686, 832, 3555873, {'=': 74}) ,
     ('torchrec', 'GPU', 'short_name') : (44, 832, 706686, 832, 3555873, {'=': 44}) ,
     ('torchrec', 'ALL', 'name') : (247, 9420, 10111357, 8963, 36650098, {'+': 1, '-': 3, '=': 243}) ,
     ('torchrec', 'ALL', 'short_name') : (213, 9420, 10111357, 8963, 36650098, {'+': 1, '-': 3, '=': 209}) ,
}  # fmt: skip
"""What HTA 0.6.1 gives: rows, sums of counts and of durations (control, then test), kinds of change.

Right because these traces have whole µs, no work on stream 0 and no sync records, and all ranks are asked for.
"""


def labeled(name: str) -> tuple[LabeledTrace, LabeledTrace]:
    before, after, _ = PAIRS[name]
    return LabeledTrace("A", trace_dir=str(SHARED / before)), LabeledTrace("B", trace_dir=str(SHARED / after))


@pytest.mark.slow
@with_shared
@pytest.mark.parametrize("name", PAIRS)
def test_numbers_are_those_of_hta(name: str) -> None:
    pair = labeled(name)
    for device in DeviceType:
        for by in ("name", "short_name"):
            table = TraceDiff.compare_traces(*pair, device_type=device, use_short_name=by == "short_name",
                                             **PAIRS[name][2])  # fmt: skip
            rows, *sums, kinds = HTA[name, device.name, by]
            assert (table.index.name, len(table)) == (by, rows)
            assert list(table.columns) == [
                "A_counts", "A_total_duration", "B_counts", "B_total_duration", "diff_counts", "diff_duration",
                "counts_change_categories",
            ]  # fmt: skip
            assert table.iloc[:, :4].sum().tolist() == sums
            assert table["counts_change_categories"].value_counts().to_dict() == kinds
            assert (table["diff_counts"] == table["B_counts"] - table["A_counts"]).all()
            assert (table["diff_duration"] == table["B_total_duration"] - table["A_total_duration"]).all()


@with_shared
def test_a_labeled_trace_is_that_of_htas_tests() -> None:
    base, _ = labeled("compare")
    assert (base.ranks(), base.iterations()) == ([1], [1009, 1010])
    assert [len(base.extract_ops(1, 1010, device)) for device in (DeviceType.CPU, DeviceType.GPU)] == [6, 1]
    found = base.get_ops_summary(base.extract_ops(1, 1010, DeviceType.CPU)).set_index("name")
    assert found["total_duration"].to_dict() == {
        "ProfilerStep#1010": 122149, "aten::as_strided": 0, "aten::empty": 0, "cudaEventQuery": 4,
        "cudaLaunchKernel": 4, "nccl:all_reduce": 67,
    }  # fmt: skip
    assert list(found.reset_index().columns) == [
        "name", "cat", "short_name", "counts", "total_duration", "cat_id", "name_id",
    ]  # fmt: skip
    assert set(found["counts"]) == {1}


@with_shared
def test_ops_diff_is_that_of_htas_tests() -> None:
    pair = labeled("compare")
    assert TraceDiff.ops_diff(*pair, 1, 1, 1010, 1010, DeviceType.CPU) == {
        "added": ["AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"],
        "deleted": ["nccl:all_reduce"],
        "increased": [],
        "decreased": [],
        "unchanged": ["ProfilerStep#1010", "aten::as_strided", "aten::empty", "cudaEventQuery", "cudaLaunchKernel"],
    }


@with_shared
def test_folders_have_labels_and_the_first_rank_and_step_are_the_default() -> None:
    before, after, _ = PAIRS["compare"]
    table = TraceDiff.compare_traces(str(SHARED / before), str(SHARED / after))
    assert table.columns[0] == "Control_counts"
    assert table.columns[2] == "Test_counts"
    assert "ProfilerStep#1009" in table.index


def test_ranks_that_are_some_of_many_are_compared() -> None:
    """HTA puts wrong keys beside the frames, and fails."""
    demo = LabeledTrace("demo", trace_dir=DEMO)
    ops = demo.extract_ops([1, 3], demo.iterations())
    assert sorted(ops["rank"].unique()) == [1, 3]
    assert list(ops.columns[:2]) == ["rank", "idx"]
    table = TraceDiff.compare_traces(demo, LabeledTrace("other", t=demo.t), [1, 3], [0, 2], 6, 6)
    assert not table["diff_counts"].any()


def test_equal_labels_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    """HTA makes `a` and `a_control_test` of them, and keeps that in the caller's object."""
    first, second = (LabeledTrace("same", t=Trace.of(open_job(trace_dir=DEMO))) for _ in range(2))
    with caplog.at_level(logging.WARNING):
        table = TraceDiff.compare_traces(first, second)
    assert (table.columns[0], table.columns[2]) == ("same_control_counts", "same_test_counts")
    assert [first.label, second.label] == ["same", "same"]
    assert TraceDiff.ops_diff(first, second)["unchanged"] == table.index.tolist()
    assert "same_control" in caplog.text


def job_of(folder: Path, events: list[Any]) -> LabeledTrace:
    folder.mkdir()
    write(events, folder / "rank-0.json")
    return LabeledTrace(folder.name, trace_dir=str(folder))


def test_the_devices_work_is_on_streams_even_0_and_no_operators_or_syncs(tmp_path: Path) -> None:
    """HTA loses work on stream 0, and counts operators that name a stream and records of synchronization."""
    events = [
        step(1, 0, 100), launch(5, 2, 1), op("triton", 20, 5, stream=3), kernel(COMPUTE, 10, 5, 1, stream=0),
        complete("cuda_sync", "Stream Sync", 30, 5, 3, stream=3, correlation=1),
    ]  # fmt: skip
    job = job_of(tmp_path / "job", events)
    names = [set(job.get_ops_summary(job.extract_ops(device_type=device))["name"]) for device in DeviceType]
    assert names[1] == {COMPUTE}
    assert names[0] == names[2] - names[1]
    assert "triton" in names[0]


def test_events_keep_the_time_of_their_clock_and_the_last_step_is_kept(tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", [step(1, 1000, 50), op("a", 1010, 5), step(2, 1060, 50), op("b", 1070, 5)])
    assert job.iterations() == [1, 2]
    ops = job.extract_ops(iteration=[1, 2])
    assert len(ops) == 4
    assert ops["ts"].tolist() == job.t.get_trace(0)["ts"].tolist() == [1000, 1010, 1060, 1070]


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    demo = LabeledTrace(trace_dir=DEMO)
    assert demo.label.startswith("t")
    wrong: dict[str, Any]
    for wrong in ({"rank": "bad"}, {"rank": 999}, {"iteration": "bad"}, {"iteration": 999999}, {"rank": []}):
        with pytest.raises(ValueError, match="choose one or a list of"):
            demo.extract_ops(**wrong)
    for folder in (None, "/nonexistent/path"):
        with pytest.raises(ValueError, match="is no folder"):
            LabeledTrace("x", trace_dir=folder)
    with pytest.raises(ValueError, match="neither a folder"):
        TraceDiff.compare_traces(42, DEMO)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no iteration"):
        job_of(tmp_path / "stepless", [op("a", 0, 5)]).extract_ops()


def test_figures_are_made_and_shown_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plotly.graph_objects import Figure

    shown: list[Figure] = []
    monkeypatch.setattr(Figure, "show", lambda self, **_: shown.append(self))
    table = TraceDiff.compare_traces(DEMO, DEMO)
    for visualize in (TraceDiff.visualize_counts_diff, TraceDiff.visualize_duration_diff):
        assert visualize(table, show_image=False) is None
        assert not shown
        page = tmp_path / "page.html"
        visualize(table, export_image_path=str(page))
        assert page.stat().st_size > 1000
        bars = shown.pop().data
        assert [bar.name for bar in bars] == ["Control", "Test", "Difference"]
        assert len(bars[0].x) == len(table)
    with pytest.raises(ValueError, match="result of compare_traces"):
        TraceDiff.visualize_counts_diff(table[["diff_counts"]], show_image=False)


def test_a_trace_analysis_can_be_compared_as_it_is() -> None:
    from htagraph.hta.trace_analysis import TraceAnalysis

    job = TraceAnalysis(trace_dir=str(DATA / "demo"))
    given: Any = job
    assert LabeledTrace("a", t=given).ranks() == LabeledTrace("b", t=job.t).ranks() == [0, 1, 2, 3]


def test_short_frames_give_the_sums_of_whole_ones(tmp_path: Path) -> None:
    job = LabeledTrace("a", t=Trace.of(open_job({0: write_steps(tmp_path / "a.json", TWO_STEPS)}, whole=True)))
    assert job.iteration_df[["symbol", "iteration"]].to_numpy().tolist() == [
        ["ProfilerStep#1", 1],
        ["ProfilerStep#2", 2],
    ]
    counts = [len(job.extract_ops(iteration=1, device_type=device)) for device in DeviceType]
    assert counts == [2, 1, 3]
    sums = job._summary(None, [1, 2], DeviceType.ALL)
    assert sums.equals(job.get_ops_summary(job.extract_ops(iteration=[1, 2])))
    assert sums.set_index("name").to_dict()["counts"] == {
        "cudaLaunchKernel": 2, "gemm": 2, "ProfilerStep#1": 1, "ProfilerStep#2": 1,
    }  # fmt: skip


def test_what_one_job_lacks_is_0_there(tmp_path: Path) -> None:
    one = job_of(tmp_path / "a", [step(1, 0, 50), op("x", 1, 3), op("x", 5, 3)])
    two = job_of(tmp_path / "b", [step(1, 0, 50), op("x", 1, 3), op("aten::mm", 5, 1)])
    table = TraceDiff.compare_traces(one, two)
    assert list(table.to_dict("index")["aten::mm"].values()) == [0, 0, 1, 1, 1, 1, "+"]
    groups = TraceDiff.ops_diff(one, two)
    assert (groups["added"], groups["decreased"]) == (["aten::mm"], ["x"])
    assert sum(map(len, groups.values())) == len(table)
