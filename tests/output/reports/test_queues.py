"""Whether launches and counters show the calls, operators and queues that the events have."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.reports.queues import by_call, counters_report, launches_report
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load


def two_launches() -> hg.DependencyGraph:
    return load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), launch(20, 12, 2), kernel("k", 70, 5, 2)])


def test_each_launching_call_is_one_row_with_the_time_of_its_calls() -> None:
    (row,) = by_call(hg.launch_stats(two_launches())).to_dict("records")
    assert row["calls"] == 2
    assert row["works"] == 2
    assert row["total_us"] == 20.0
    assert row["max_us"] == 12.0
    assert row["short_percent"] == 50.0


def test_a_reader_sees_calls_once_for_all_ranks_with_the_least_and_the_most_of_a_rank() -> None:
    report = launches_report(graph_of(DATA / "demo"), ["x"])
    shown = (report.brief or {})["calls"]
    table = report.tables["calls"]
    assert not shown["name"].duplicated().any()
    assert shown["calls"].sum() == table["calls"].sum()
    assert (shown["least_us"] <= shown["most_us"]).all()
    assert table["rank"].nunique() == 4


def test_columns_without_a_known_value_are_not_shown() -> None:
    brief = launches_report(two_launches(), ["x"]).brief or {}
    assert brief["calls"].notna().any().all()
    assert "graph_launches" not in brief


def test_without_launches_no_table_is_shown_and_the_reader_is_told_what_to_record() -> None:
    report = launches_report(load([]), ["x"])
    assert report.brief == {}
    assert report.sentences[0].startswith("No launch with its device work is in the traces: ")


def test_series_of_counters_are_given_only_if_asked_for() -> None:
    graph = two_launches()
    assert set(counters_report(graph, ["x"]).tables) == {"queues", "bandwidth"}
    assert {"queue_length", "memory_bandwidth"} < set(counters_report(graph, ["x"], series=True).tables)


def test_the_longest_queue_is_the_one_the_answer_names() -> None:
    report = counters_report(graph_of(DATA / "demo"), ["x"])
    assert report.sentences[0].startswith("Queues never filled (at most 171 of 1,024 launches, rank ")
