from __future__ import annotations

import pandas as pd
import pytest

import htagraph as hg
from tests.reach import DATA, graph_of


def test_each_launch_and_each_work_is_counted_once() -> None:
    table = hg.launch_stats(graph_of(DATA / "demo"))
    bars = hg.plot.launch_stats(table).data
    assert sum(int(bar.y.sum()) for bar in bars if bar.xaxis == "x") == len(table)
    assert [int(bar.y.sum()) for bar in bars if bar.xaxis == "x2"] == [table["launch"].nunique()]


def test_the_title_gives_the_median_and_the_longest_delay() -> None:
    table = hg.launch_stats(graph_of(DATA / "demo")).head(3).assign(delay_us=[1.0, 2.0, 30.0])
    title = hg.plot.launch_stats(table).layout.title.text.replace("<br>", " ")
    assert title.startswith(
        "Half of 3 kernels and copies start within 2.0 µs of their launch, the latest after 30.0 µs"
    )


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
