"""The figures hold the numbers of the tables that they show."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from htagraph.hta.shapes import breakdowns
from htagraph.hta.shapes.job import HtaJob, open_job
from htagraph.output.plot.hta_shapes import breakdowns as figures
from tests.reach import REPOSITORY
from tests.strategies import COMMUNICATE, COMPUTE, annotation, kernel, launch, write


@pytest.fixture(scope="module")
def job() -> HtaJob:
    return open_job(trace_dir=str(REPOSITORY / "data" / "demo"))


def test_the_temporal_parts_of_a_rank_stack_up_to_one(job: HtaJob) -> None:
    figure = figures.temporal_breakdown(breakdowns.temporal_breakdown(job))
    assert [bar.name for bar in figure.data] == ["idle_time", "compute_time", "non_compute_time"]
    assert pd.DataFrame([bar.y for bar in figure.data]).sum().tolist() == pytest.approx([1] * 4)
    assert figure.layout.barmode == "stack"


@pytest.mark.parametrize("ranks", [[0], [0, 2]])
@pytest.mark.parametrize("percent", [True, False])
def test_idle_time_is_stacked_by_stream(job: HtaJob, ranks: list[int], *, percent: bool) -> None:
    table, _ = breakdowns.idle_time_breakdown(job, ranks)
    figure = figures.idle_time_breakdown(table, percent=percent)
    shown = sum(float(pd.Series(bar.y).sum()) for bar in figure.data)
    assert shown == pytest.approx(table["idle_time_ratio" if percent else "idle_time"].sum())
    assert {bar.name for bar in figure.data} == set(table["idle_category"])


def test_overlap_is_a_share(job: HtaJob) -> None:
    table = breakdowns.comm_comp_overlap(job)
    figure = figures.comm_comp_overlap(table)
    assert list(figure.data[0].y) == pytest.approx((table["comp_comm_overlap_pctg"] / 100).tolist())


def test_every_kernel_type_has_a_pie_for_each_rank_and_bars(job: HtaJob) -> None:
    types, kernels = breakdowns.gpu_kernel_breakdown(job)
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
    one = open_job({34: str(write(events, tmp_path / "a.json", 34))})
    assert figures.gpu_kernel_breakdown(*breakdowns.gpu_kernel_breakdown(one))[1].data[0].title.text == "Rank 34"
    table = breakdowns.user_annotation_breakdown(one, use_gpu_annotation=False)
    assert table is not None
    pies, bars = figures.user_annotation_breakdown(table)
    assert list(pies.data[0].values) == [50]
    assert list(bars.data[0].y) == [50]


def test_empty_tables_have_empty_figures(tmp_path: Path) -> None:
    with pytest.warns(UserWarning):
        nothing = open_job({0: str(write([], tmp_path / "a.json"))})
        made = [
            figures.temporal_breakdown(breakdowns.temporal_breakdown(nothing)),
            figures.idle_time_breakdown(breakdowns.idle_time_breakdown(nothing)[0]),
            *figures.gpu_kernel_breakdown(*breakdowns.gpu_kernel_breakdown(nothing)),
        ]
    holds = {"bar": "y", "pie": "values"}
    shown = [trace[holds[trace.type]] for figure in made for trace in figure.data]
    assert all(values is None or not len(values) for values in shown)
