"""Bars are as high as their tables say, and titles give the sums."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from tests.output.plot.jobs import many_ranks
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return graph_of(DATA / "demo")


def test_the_parts_of_each_rank_stack_up_to_100_percent(graph: DependencyGraph) -> None:
    figure = hg.plot.temporal_breakdown(hg.temporal_breakdown(graph))
    assert figure.layout.barmode == "stack"
    assert np.array([bar.y for bar in figure.data]).sum(axis=0).tolist() == pytest.approx([100.0] * 4)


def test_a_title_gives_the_shares_of_all_ranks_time() -> None:
    one = [launch(0, 1, 1), kernel(COMPUTE, 2, 30, 1), launch(1, 1, 2), kernel(COMMUNICATE, 32, 70, 2)]
    two = [launch(0, 1, 1), kernel(COMPUTE, 2, 100, 1)]
    title = hg.plot.temporal_breakdown(hg.temporal_breakdown(load({0: one, 1: two}))).layout.title.text
    assert title.startswith("All ranks' time is 65 % computation, 35 % exposed communication<br>")


def test_hidden_and_exposed_communication_sum_to_all(graph: DependencyGraph) -> None:
    table = hg.overlap(graph)
    hidden, exposed = hg.plot.overlap(table).data
    assert (hidden.y + exposed.y).tolist() == pytest.approx((table["communication_us"] / 1000).tolist())
    assert hidden.y.tolist() == pytest.approx((table["hidden_us"] / 1000).tolist())


@pytest.mark.parametrize("by", ["stream", "rank"])
def test_idle_time_by_cause_sums_to_the_table(graph: DependencyGraph, by: str) -> None:
    table = hg.idle_breakdown(graph, by=by)  # type: ignore[arg-type]
    bars = hg.plot.idle_breakdown(table).data
    assert sum(float(bar.y.sum()) for bar in bars) == pytest.approx(table["idle_us"].sum() / 1000)
    assert len(bars) == table["cause"].nunique()


def test_devices_are_named_only_where_a_rank_has_several() -> None:
    table = pd.DataFrame({"rank": [0, 0], "device": [0, 0], "stream": [7, 8], "cause": "other", "idle_us": [1.0, 2.0]})
    assert list(hg.plot.idle_breakdown(table).data[0].x) == ["0, 7", "0, 8"]
    assert list(hg.plot.idle_breakdown(table.assign(device=[0, 1])).data[0].x) == ["0, 0, 7", "0, 1, 8"]


def test_many_ranks_are_pictures_with_the_same_numbers(graph: DependencyGraph) -> None:
    (picture,) = hg.plot.temporal_breakdown(many_ranks(hg.temporal_breakdown(graph))).data
    assert picture.type == "heatmap"
    assert np.array(picture.z).sum(axis=0).tolist() == pytest.approx([100.0] * 512)
    assert [trace.type for trace in hg.plot.collectives(many_ranks(TABLE.head(1))).data] == ["heatmap", "heatmap"]


def test_of_many_ranks_the_same_streams_are_side_by_side() -> None:
    table = many_ranks(hg.idle_breakdown(graph_of(DATA / "demo")), 64)
    (picture,) = hg.plot.idle_breakdown(table).data
    streams = [int(label.split(", ")[1]) for label in picture.x]
    assert streams == sorted(streams)


TABLE = hg.collectives(graph_of(DATA / "demo"))
PARTS = ["beside_us", "wait_us", "transfer_us", "excess_us", "wait_or_transfer_us"]


def test_the_parts_sum_to_the_time_in_collectives() -> None:
    bars = [trace for trace in hg.plot.collectives(TABLE).data if trace.type == "bar"]
    assert sum(bar.y.sum() for bar in bars) == pytest.approx(TABLE["duration_us"].sum() / 1000)


def test_the_picture_of_waiting_holds_all_of_it() -> None:
    (picture,) = (trace for trace in hg.plot.collectives(TABLE).data if trace.type == "heatmap")
    column_ms = float(picture.x[1] - picture.x[0])
    waited = np.nansum(np.array(picture.z), axis=1) / 100 * column_ms
    assert waited.tolist() == pytest.approx((TABLE.groupby("rank")["wait_us"].sum() / 1000).tolist(), abs=1e-6)


def test_the_title_sums_over_ranks_what_is_known() -> None:
    title = hg.plot.collectives(TABLE).layout.title.text
    assert title.startswith("Ranks wait 13.5 ms for each other in 6 collectives, and transfer 30.9 ms<br>")
    alone = TABLE.assign(collective=-1, wait_or_transfer_us=TABLE["duration_us"], wait_us=0.0, transfer_us=0.0)
    assert "waits are not known" in hg.plot.collectives(alone.assign(excess_us=0.0)).layout.title.text


def test_a_cell_is_how_much_longer_a_rank_takes_than_the_others() -> None:
    result = hg.stragglers(graph_of(DATA / "demo"))
    (heat,) = result.plot().data
    wide = result.by_step.pivot_table(index="rank", columns="step", values="own_us")
    others = np.array([np.median(np.delete(wide.to_numpy(), rank, 0), axis=0) for rank in range(4)])
    assert (heat.z * 1000).ravel().tolist() == pytest.approx((wide.to_numpy() - others).ravel().tolist())
    assert np.median(heat.z[2] * 1000) == pytest.approx(result.ranks["step_excess_us"][2])


def test_the_title_is_one_line_with_the_figures_of_the_command() -> None:
    title = hg.stragglers(graph_of(DATA / "demo")).plot().layout.title.text.split("<br>")[0]
    assert title == "Rank 2 is the straggler: others wait 13.5 ms for it, 100 % of all waiting"
    alone = hg.stragglers(hg.load(DATA / "demo", ranks=[0])).plot().layout.title.text
    assert alone.startswith("Only one rank was read")


def test_what_makes_the_title_uncertain_is_said_below_it() -> None:
    title = hg.stragglers(graph_of(DATA / "gloo_ddp")).plot().layout.title.text.replace("<br>", " ")
    finding, _, about = title.partition("<span")
    assert " by chance" not in finding
    assert "nobody can tell" in about or "straggler" in finding
