"""The figures hold the numbers of the tables that they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from plotly.graph_objects import Figure

import htagraph as hg
from htagraph.hta.shapes import figures
from htagraph.hta.trace_analysis import TraceAnalysis
from htagraph.memory_analysis import MemoryAnalysis
from htagraph.trace.profiler_files.files import CATEGORIES
from tests.analyses.test_kernel_patterns import linear
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, annotation, kernel, launch, load, write


@pytest.fixture(scope="module")
def job() -> TraceAnalysis:
    return TraceAnalysis(trace_dir=str(DATA / "demo"))


def test_the_temporal_parts_of_a_rank_stack_up_to_one(job: TraceAnalysis) -> None:
    figure = figures.temporal_breakdown(job.get_temporal_breakdown(visualize=False))
    assert [bar.name for bar in figure.data] == ["idle_time", "compute_time", "non_compute_time"]
    assert pd.DataFrame([bar.y for bar in figure.data]).sum().tolist() == pytest.approx([1] * 4)
    assert figure.layout.barmode == "stack"


@pytest.mark.parametrize("ranks", [[0], [0, 2]])
@pytest.mark.parametrize("percent", [True, False])
def test_idle_time_is_stacked_by_stream(job: TraceAnalysis, ranks: list[int], *, percent: bool) -> None:
    table, _ = job.get_idle_time_breakdown(ranks=ranks, visualize=False, show_idle_interval_stats=True)
    figure = figures.idle_time_breakdown(table, percent=percent)
    shown = sum(float(pd.Series(bar.y).sum()) for bar in figure.data)
    assert shown == pytest.approx(table["idle_time_ratio" if percent else "idle_time"].sum())
    assert {bar.name for bar in figure.data} == set(table["idle_category"])


def test_overlap_is_a_share(job: TraceAnalysis) -> None:
    table = job.get_comm_comp_overlap(visualize=False)
    figure = figures.comm_comp_overlap(table)
    assert list(figure.data[0].y) == pytest.approx((table["comp_comm_overlap_pctg"] / 100).tolist())


def test_every_kernel_type_has_a_pie_for_each_rank_and_bars(job: TraceAnalysis) -> None:
    types, kernels = job.get_gpu_kernel_breakdown(visualize=False)
    whole, *rest = figures.gpu_kernel_breakdown(types, kernels)
    assert list(whole.data[0].labels) == types.loc[types["percentage"] > 0, "kernel_type"].tolist()
    assert len(rest) == 2 * kernels["kernel_type"].nunique()
    pies = rest[0]
    assert [pie.title.text for pie in pies.data] == [f"Rank {rank}" for rank in range(4)]
    first = kernels[(kernels["kernel_type"] == kernels["kernel_type"].iloc[0]) & (kernels["rank"] == 0)]
    assert list(pies.data[0].values) == first["sum (us)"].tolist()


def test_ranks_need_not_begin_at_0(tmp_path: Path) -> None:
    # HTA puts the pie of rank 34 alone into the 18th row of one (C4)
    events = [kernel(COMPUTE, 0, 5), kernel(COMMUNICATE, 5, 5), annotation("## forward ##", 0, 50), launch(1, 1, 1)]
    one = TraceAnalysis({34: str(write(events, tmp_path / "a.json", 34))})
    assert (
        figures.gpu_kernel_breakdown(*one.get_gpu_kernel_breakdown(visualize=False))[1].data[0].title.text == "Rank 34"
    )
    table = one.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False)
    assert table is not None
    pies, bars = figures.user_annotation_breakdown(table)
    assert list(pies.data[0].values) == [50]
    assert list(bars.data[0].y) == [50]


def test_empty_tables_have_empty_figures(tmp_path: Path) -> None:
    with pytest.warns(UserWarning):
        nothing = TraceAnalysis({0: str(write([], tmp_path / "a.json"))})
        made = [
            figures.temporal_breakdown(nothing.get_temporal_breakdown(visualize=False)),
            figures.idle_time_breakdown(
                nothing.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True)[0]
            ),
            *figures.gpu_kernel_breakdown(*nothing.get_gpu_kernel_breakdown(visualize=False)),
        ]
    holds = {"bar": "y", "pie": "values"}
    shown = [trace[holds[trace.type]] for figure in made for trace in figure.data]
    assert all(values is None or not len(values) for values in shown)


def test_launches_and_operators_have_their_figures(job: TraceAnalysis) -> None:
    stats = job.get_cuda_kernel_launch_stats(visualize=False)[0]
    short, long, late = figures.launch_stats(stats, "rank 0")
    assert len(long.data[0].x) == (stats["cpu_duration"] > 50).sum()
    assert len(late.data[0].x) == (stats["launch_delay"] > 100).sum()
    assert short.layout.title.text.endswith("rank 0")
    assert [len(figure.data[0].x) for figure in figures.launch_stats(stats[:0], "rank 0")] == [0, 0, 0]
    table = job.get_aten_op_kernels_and_delay(visualize=False)[0]
    assert len(figures.operator_kernels(table, "rank 0").data[0].cells.values[0]) == len(table)


def test_late_starts_have_bars_by_step() -> None:
    bars = figures.late_starts(hg.late_starts(graph_of(DATA / "demo"))).data
    assert [bar.name for bar in bars] == ["step 5", "step 6", "step 7"]
    assert not figures.late_starts(hg.late_starts(graph_of(DATA / "gloo_ddp"))).data


def test_a_pattern_is_a_bar_as_high_as_its_count() -> None:
    events = [*linear(0, 1, "a", "b", "c"), *linear(50, 10, "x", "y", "z"), *linear(100, 20, "x", "y", "z")]
    figure = figures.patterns(hg.kernel_patterns(load(events)), "rank 0")
    assert list(figure.data[0].y) == [2, 1]
    assert figure.data[0].customdata[0] == "aten::linear<br>x<br>y<br>z"
    assert figure.layout.title.text == "Top 2 frequent patterns for rank 0"


def test_no_pattern_is_an_empty_figure() -> None:
    assert len(figures.patterns(hg.kernel_patterns(load([])), "rank 0").data[0].y) == 0


TABLE = pd.DataFrame(
    {
        "test_counts": [3], "test_total_duration": [30], "control_counts": [2], "control_total_duration": [50],
        "diff_counts": [1], "diff_duration": [-20],
    },
    index=["aten::mm"],
)  # fmt: skip


def test_there_is_a_bar_per_job_and_one_of_the_difference() -> None:
    assert [(bar.name, list(bar.y)) for bar in figures.counts_diff(TABLE).data] == [
        ("test", [3]), ("control", [2]), ("Difference", [1]),
    ]  # fmt: skip
    assert [list(bar.y) for bar in figures.duration_diff(TABLE).data] == [[30], [50], [-20]]


def test_another_table_is_refused() -> None:
    with pytest.raises(ValueError, match="pass the result of compare_traces"):
        figures.counts_diff(TABLE.drop(columns="test_total_duration"))


def test_categories_are_stacked_areas_in_gib() -> None:
    columns = {f"{category}_bytes": [number * 2**30] for number, category in enumerate(CATEGORIES)}
    areas = figures.memory_categories(pd.DataFrame({"time_us": [2000.0], **columns})).data
    assert [list(area.y) for area in areas] == [[number] for number in range(len(CATEGORIES))]
    assert [area.name for area in areas] == [
        "Parameter", "Optimizer state", "Input", "Temporary", "Activation", "Gradient", "Autograd", "Unknown",
    ]  # fmt: skip
    assert {tuple(area.x) for area in areas} == {(2.0,)}
    assert {area.stackgroup for area in areas} == {"memory"}


def test_each_figure_is_shown_by_the_renderer_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str | None] = []
    monkeypatch.setattr(Figure, "show", lambda _, renderer: calls.append(renderer))
    figures.show(Figure(), Figure(), renderer="svg")
    figures.show(Figure(), renderer="")
    assert calls == ["svg", "svg", None]


EVENTS = [[-1, 1, 1024**3, 0], [5_000_000, 2, 2 * 1024**3, 4], [7_000_000, 4, -(1024**3), 4]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "memory.raw.json"
    made.write_text(json.dumps(EVENTS), encoding="utf-8")
    return made


def test_the_timeline_is_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda self, **_: shown.append(self))
    MemoryAnalysis(path).plot_memory_timeline()
    assert [figure.layout.title.text for figure in shown] == ["Memory timeline"]


def test_the_timeline_is_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written: list[Path] = []
    monkeypatch.setattr("plotly.graph_objects.Figure.write_image", lambda _, file: written.append(file))
    MemoryAnalysis(str(path)).plot_memory_timeline(save_graph=True)
    assert written == [Path("images/memory_plot.png")]


def test_where_no_image_can_be_made_it_is_written_as_html(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        msg = "no kaleido"
        raise ValueError(msg)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plotly.graph_objects.Figure.write_image", refuse)
    with pytest.warns(UserWarning, match=r"wrote images/memory_plot\.html.*no kaleido"):
        MemoryAnalysis(path).plot_memory_timeline(save_graph=True)
    assert (tmp_path / "images" / "memory_plot.html").stat().st_size > 1000
