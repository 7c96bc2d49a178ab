from __future__ import annotations

import statistics
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Json, annotation, complete, kernel, launch, load, step


def on_device(name: str, start: int, duration: int, stream: int = 7) -> Json:
    return complete("gpu_user_annotation", name, start, duration, stream) | {"pid": 0}


def test_regions_are_counted_on_the_host_and_on_the_device() -> None:
    events = [
        step(1, 0, 50), annotation("forward", 1, 10), annotation("forward", 20, 20), launch(2, 1, 1),
        kernel(COMPUTE, 5, 30, 1), on_device("forward", 5, 30), on_device("ProfilerStep#1", 5, 30),
    ]  # fmt: skip
    table = hg.annotation_breakdown(load(events))
    assert table[["on", "name", "count", "total_us", "mean_us", "min_us", "max_us"]].to_numpy().tolist() == [
        ["host", "ProfilerStep#1", 1, 50, 50, 50, 50],
        ["host", "forward", 2, 30, 15, 10, 20],
        ["device", "ProfilerStep#1", 1, 30, 30, 30, 30],
        ["device", "forward", 1, 30, 30, 30, 30],
    ]
    assert table["std_us"].tolist() == pytest.approx([0, statistics.stdev([10, 20]), 0, 0])


def test_of_chosen_steps_the_annotations_beside_their_device_work_are_kept() -> None:
    events = [
        step(1, 0, 50), launch(2, 1, 1), kernel(COMPUTE, 5, 30, 1), on_device("ProfilerStep#1", 5, 30),
        step(2, 50, 50), launch(52, 1, 2), kernel(COMPUTE, 55, 30, 2), on_device("ProfilerStep#2", 55, 30),
    ]  # fmt: skip
    assert hg.annotation_breakdown(load(events, steps=[2]))["name"].tolist() == ["ProfilerStep#2", "ProfilerStep#2"]


_regions = st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 12), st.booleans())


@pytest.mark.slow
@given(st.lists(_regions, max_size=12))
@settings(max_examples=60)
def test_the_statistics_are_those_of_the_durations_in_the_file(regions: list[tuple[str, int, int, bool]]) -> None:
    events = [(on_device if device else annotation)(name, start, took) for name, start, took, device in regions]
    took: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, _, us, device in regions:
        took["device" if device else "host", name].append(us)
    table = hg.annotation_breakdown(load([*events, kernel(COMPUTE, -1, 60)]))
    assert len(table) == len(took)
    for row in table.to_dict("records"):
        each = took[row["on"], row["name"]]
        spread = statistics.stdev(each) if len(each) > 1 else 0
        expected = (len(each), sum(each), statistics.mean(each), min(each), max(each), spread)
        ours = [row[key] for key in ("count", "total_us", "mean_us", "min_us", "max_us", "std_us")]
        assert ours == pytest.approx(expected, abs=1e-6)


def test_by_job_an_annotation_is_one_row_per_side_over_all_ranks() -> None:
    graph = load({0: [annotation("a", 0, 5), annotation("b", 10, 90)], 1: [annotation("a", 0, 7)]})
    assert hg.annotation_breakdown(graph, by="job").to_dict("records") == [
        {"on": "host", "name": "b", "ranks": 1, "count": 1, "total_us": 90.0, "mean_us": 90.0, "min_us": 90.0,
         "max_us": 90.0},
        {"on": "host", "name": "a", "ranks": 2, "count": 2, "total_us": 12.0, "mean_us": 6.0, "min_us": 5.0,
         "max_us": 7.0},
    ]  # fmt: skip


def test_by_job_the_host_comes_before_the_device() -> None:
    table = hg.annotation_breakdown(graph_of(DATA / "demo"), by="job")
    assert table["on"].drop_duplicates().tolist() == ["host", "device"]
    for _, side in table.groupby("on"):
        assert side["total_us"].is_monotonic_decreasing
