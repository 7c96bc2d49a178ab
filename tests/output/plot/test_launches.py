from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.output.plot.launches import CLASS_LABELS, counts_of, used_classes
from tests.reach import DATA, graph_of


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
