"""Whether operators lie at their intensity, below the roof of their device."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.output.plot.kernels import CLASS_LABELS, counts_of, used_classes
from htagraph.output.reports.device_time import roofline_report
from tests.reach import DATA, graph_of

DEMO = graph_of(DATA / "demo")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("kernel_breakdown", "total_us"), ("operator_breakdown", "device_us"), ("module_breakdown", "device_us"),
        ("kernel_owners", "device_us"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["rank", "job"])
def test_the_tiles_sum_to_the_table(name: str, column: str, by: str) -> None:
    table = getattr(hg, name)(DEMO, by=by)
    tiles = getattr(hg.plot, name)(table).data[0]
    whole = dict(zip(tiles.ids, tiles.values, strict=True))
    assert sum(us for us, parent in zip(tiles.values, tiles.parents, strict=True) if not parent) == pytest.approx(
        table[column].sum()
    )
    inside: dict[str, float] = {}
    for parent, us in zip(tiles.parents, tiles.values, strict=True):
        inside[parent] = inside.get(parent, 0.0) + us
    assert {each: us for each, us in inside.items() if each} == pytest.approx(
        {each: whole[each] for each in inside if each}
    )


def test_what_is_small_is_one_tile_and_nothing_is_lost() -> None:
    table = pd.DataFrame({"kind": "computation", "name": [f"k{i}" for i in range(500)], "total_us": 1.0})
    tiles = hg.plot.kernel_breakdown(table).data[0]
    assert len(tiles.ids) < 70
    assert "smaller ones" in tiles.labels
    assert tiles.values[0] == 500


def test_a_job_without_devices_shows_the_own_time_of_operators() -> None:
    table = hg.operator_breakdown(graph_of(DATA / "gloo_ddp"))
    figure = hg.plot.operator_breakdown(table)
    assert sum(us for us, parent in zip(figure.data[0].values, figure.data[0].parents, strict=True) if not parent) == (
        pytest.approx(table["host_self_us"].sum())
    )
    assert "there was no device work" in figure.layout.title.text


def test_names_are_texts_and_never_markup() -> None:
    hostile = '<b>x</b><a href="javascript:alert(1)">$y$</a>' + "z" * 10_000
    table = pd.DataFrame({"kind": ["computation"], "name": [hostile], "total_us": [1.0]})
    figure = hg.plot.kernel_breakdown(table)
    texts = [*figure.data[0].labels, *figure.data[0].hovertext, figure.layout.title.text]
    assert not any("<b>" in text or "<a" in text or "$" in text for text in texts)
    assert all(len(text) < 1200 for text in texts)


def test_the_distribution_has_a_cell_for_each_kernel_and_rank() -> None:
    table = hg.kernel_distribution(DEMO)
    (heat,) = hg.plot.kernel_distribution(table).data
    shown = table[["kind", "name"]].drop_duplicates().head(30).merge(table, on=["kind", "name"])
    assert heat.z.ravel().tolist() == pytest.approx(shown["relative"].tolist())
    assert len(set(heat.y)) == len(heat.y)


def test_a_rank_is_called_the_slowest_only_if_it_is_in_most_kernels() -> None:
    table = pd.DataFrame({
        "kind": "computation", "name": ["a", "a", "b", "b"], "rank": [0, 1, 0, 1], "count": 1, "mean_us": 1.0,
        "total_us": 1.0, "relative": 1.0, "spread": 2.0, "slowest_rank": [0, 0, 1, 1],
    })  # fmt: skip
    assert hg.plot.kernel_distribution(table).layout.title.text.startswith("No rank is the slowest in most of the 2")
    all_one = hg.plot.kernel_distribution(table.assign(slowest_rank=1)).layout.title.text
    assert all_one.startswith("Rank 1 is the slowest in all 2 computation kernels shown<br>")
    even = hg.plot.kernel_distribution(table.assign(spread=1.01, slowest_rank=1)).layout.title.text
    assert even.startswith("No rank")


TABLE = pd.DataFrame(
    {
        "rank": 0, "source": "shapes", "operator": ["aten::mm", "aten::add"], "shapes": "", "time_us": [4.0, 1.0],
        "count": 1, "intensity": [200.0, float("nan")], "tflop_s": [100.0, 1.0], "peak_gb_s": 2000.0,
        "peak_tflop_s": 300.0, "roof_percent": [33.3, float("nan")], "bound": ["compute", ""],
    }
)  # fmt: skip


def test_a_point_per_known_operator_and_a_roof_with_its_ridge() -> None:
    points, names, roof = hg.plot.roofline(TABLE).data
    assert (names.mode, list(names.text)) == ("text", ["aten::mm"])
    assert (list(points.x), list(points.y)) == ([200.0], [100.0])
    assert roof.x[1] == 150.0  # 300 TFLOP/s over 2 TB/s
    assert roof.y[1] == roof.y[2] == 300.0


def test_the_title_says_how_much_of_the_roof_is_reached_where_that_is_known() -> None:
    title = hg.plot.roofline(TABLE).layout.title.text.replace("<br>", " ")
    assert title.startswith("aten::mm loses the most time below the roof: it reaches 33 % of what ")
    unknown = TABLE.assign(peak_gb_s=float("nan"), roof_percent=float("nan"), bound="")
    figure = hg.plot.roofline(unknown)
    assert len(figure.data) == 2
    assert "the peaks of its device are not known" in figure.layout.title.text.replace("<br>", " ")


def test_the_figure_of_the_roofline_names_the_operator_that_the_command_names() -> None:
    graph = graph_of(DATA / "gpu_demo" / "train")
    table = hg.roofline(graph, peak_tflop_s=300.0, peak_gb_s=2000.0)
    report = roofline_report(graph, ["x"], peak_tflops=300.0, peak_gbs=2000.0)
    operator = hg.plot.roofline(table).layout.title.text.split(" loses ")[0]
    assert report.sentences[0].startswith(operator)


def test_each_launch_and_each_work_is_counted_once() -> None:
    table = hg.launch_stats(graph_of(DATA / "demo"))
    bars = hg.plot.launch_stats(table).data
    assert sum(int(bar.y.sum()) for bar in bars if bar.xaxis == "x") == len(table)
    assert [int(bar.y.sum()) for bar in bars if bar.xaxis == "x2"] == [table["launch"].nunique()]


def test_the_title_gives_the_median_and_the_longest_delay() -> None:
    table = hg.launch_stats(graph_of(DATA / "demo")).head(3).assign(delay_us=[1.0, 2.0, 30.0])
    title = hg.plot.launch_stats(table).layout.title.text.replace("<br>", " ")
    start = "Half of 3 kernels and copies start within 2.0 µs of their launch, the latest after 30.0 µs"
    assert title.startswith(start)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return hg.slack(graph_of(DATA / "demo"))


def test_each_activity_is_counted_once(table: pd.DataFrame) -> None:
    bars = hg.plot.slack(table).data
    assert sum(int(bar.y.sum()) for bar in bars) == len(table)
    assert sum(int(bar.y[0]) for bar in bars) == (table["slack_us"] <= 0).sum()


def test_the_title_counts_those_without_slack(table: pd.DataFrame) -> None:
    none = int((table["slack_us"] <= 0).sum())
    title = hg.plot.slack(table).layout.title.text
    assert title.startswith(f"{none:,} of {len(table):,} activities have no slack: if one of them ends later")
    assert hg.plot.slack(table[table["slack_us"] > 0]).layout.title.text.startswith("Each of ")


@given(st.lists(st.floats(-5, 1e8)))
def test_each_time_is_in_one_class(times: list[float]) -> None:
    assert counts_of(np.array(times)).sum() == len(times)


def test_a_class_begins_with_its_label() -> None:
    for label in CLASS_LABELS[2:]:
        number, unit = label.split()
        us = float(number) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]
        assert CLASS_LABELS[int(counts_of(np.array([us])).argmax())] == label
        assert CLASS_LABELS[int(counts_of(np.array([us * 0.999])).argmax())] != label


def test_only_classes_between_the_least_and_the_largest_are_shown() -> None:
    assert CLASS_LABELS[used_classes([counts_of(np.array([5.0, 200.0])), counts_of(np.array([50.0]))])] == [
        "3 µs", "10 µs", "30 µs", "100 µs",
    ]  # fmt: skip
    assert used_classes([]) == slice(0, 0)
