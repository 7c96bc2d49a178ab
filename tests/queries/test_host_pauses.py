"""Whether the host's time on a path is told by what ran and where."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.queries.host_pauses import host_pauses
from tests.reach import DATASETS, graph_of
from tests.strategies import Json, annotation, complete, load, op


def frame(name: str, start: int, duration: int) -> Json:
    return complete("python_function", name, start, duration)


def test_a_sleep_is_told_with_the_function_that_calls_it() -> None:
    events = [frame("train.py(42): augment", 0, 1000), frame("<built-in function sleep>", 100, 300)]
    events += [frame("<built-in function sleep>", 500, 400), op("aten::add", 950, 20)]
    table = host_pauses(hg.critical_path(load(events)))
    first = table.iloc[0]
    assert (first["what"], first["inside"], first["count"]) == ("<built-in function sleep>", "train.py(42): augment", 2)
    assert (first["total_us"], first["longest_us"]) == (700, 400)
    assert first["share_percent"] == pytest.approx(70)


def test_time_that_no_event_covers_is_told_by_the_annotation_and_what_comes_next() -> None:
    events = [annotation("## forward ##", 0, 1000), op("aten::relu", 0, 100), op("aten::add", 800, 200)]
    first = host_pauses(hg.critical_path(load(events))).iloc[0]
    assert (first["what"], first["inside"], first["before"]) == ("", "## forward ##", "aten::add")
    assert first["after"] == "aten::relu"
    assert first["total_us"] == 700


def test_time_at_the_end_of_a_region_is_told_by_what_ran_before_it() -> None:
    first = host_pauses(hg.critical_path(load([annotation("## forward ##", 0, 1000), op("aten::relu", 0, 100)]))).iloc[
        0
    ]
    assert (first["inside"], first["before"], first["after"]) == ("## forward ##", "", "aten::relu")


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_all_rows_sum_to_the_hosts_part_of_the_path(path: Path) -> None:
    critical = hg.critical_path(graph_of(path))
    segments = critical.to_frame()
    host = segments.loc[segments["category"].isin(["host", "launch", "sync"]), "duration_us"]
    table = host_pauses(critical, len(segments) + 1)
    assert table["total_us"].sum() == pytest.approx(host.sum())
    assert (table["longest_us"] <= table["total_us"] + 1e-9).all()


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_a_pause_before_something_is_not_inside_it(path: Path) -> None:
    graph = graph_of(path)
    table = host_pauses(hg.critical_path(graph), 1000)
    untraced = table[(table["before"] != "") & (table["inside"] != "")]
    for row in untraced.to_dict("records"):
        around = [graph.names[graph.activities.name[each]] for each in ancestors(graph, row["activity"])]
        assert row["inside"] in around


def ancestors(graph: hg.DependencyGraph, activity: int) -> list[int]:
    above = []
    while (activity := int(graph.tree.parent[activity])) >= 0:
        above.append(activity)
    return above
