"""Bars are as high as their tables say, and titles give the sums."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.output.plot.style import MAX_BARS
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


def test_many_ranks_are_one_picture_with_the_same_numbers(graph: DependencyGraph) -> None:
    few = hg.temporal_breakdown(graph).head(1)
    many = pd.concat([few.assign(rank=rank) for rank in range(512)], ignore_index=True)
    (picture,) = hg.plot.temporal_breakdown(many).data
    assert len(many) > MAX_BARS
    assert picture.type == "heatmap"
    assert np.array(picture.z).sum(axis=0).tolist() == pytest.approx([100.0] * 512)
    assert len(picture.x) == 512


def test_of_many_ranks_the_same_streams_are_side_by_side() -> None:
    table = many_ranks(hg.idle_breakdown(graph_of(DATA / "demo")), 64)
    (picture,) = hg.plot.idle_breakdown(table).data
    streams = [int(label.split(", ")[1]) for label in picture.x]
    assert streams == sorted(streams)
