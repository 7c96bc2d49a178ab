from __future__ import annotations

import html
import json
import math

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.output.summary import SCHEMA_VERSION
from tests.strategies import COMMUNICATE, COMPUTE, Json, jobs, kernel, launch, load, op, runtime, step


def small() -> hg.Summary:
    rank = [
        step(4, 0, 90),
        launch(5, 2, 1),
        kernel(COMPUTE, 10, 20, 1),
        launch(8, 2, 2),
        kernel(COMMUNICATE, 40, 30, 2),
    ]
    return hg.summarize(load({0: rank, 3: rank}))


def test_the_tables_are_those_of_the_analyses() -> None:
    summary, ends = small(), {"min_us": 90, "max_us": 90}
    assert set(summary.tables) == {
        "steps", "temporal_breakdown", "overlap", "rank_idle", "idle_breakdown", "kernels", "launches",
        "critical_path", "opportunities", "stragglers", "interruptions", "gaps", "clocks",
    }  # fmt: skip
    assert summary.tables["steps"].to_dict("records") == [
        {"rank": rank, "steps": 1, "period_us": pytest.approx(math.nan, nan_ok=True), "median_us": 90, **ends}
        for rank in (0, 3)
    ]
    assert summary.window_us == 90


def test_the_inputs_say_what_was_read() -> None:
    row = small().inputs.iloc[1]
    assert (row["rank"], row["steps"], row["activities"]) == (3, "4", 6)


def test_kernels_are_summed_over_ranks() -> None:
    table = small().tables["kernels"].set_index("name")
    assert table[["ranks", "count", "total_us", "mean_us"]].to_dict("index")[COMPUTE] == {
        "ranks": 2, "count": 2, "total_us": 40, "mean_us": 20,
    }  # fmt: skip
    assert table["share_percent"].sum() == pytest.approx(100)


def test_a_graph_launch_is_one_launch_of_many_works() -> None:
    events = [runtime("cudaGraphLaunch", 0, 3, 1), *(kernel(COMPUTE, 5 + 5 * i, 4, 1) for i in range(3))]
    (row,) = hg.summarize(load(events)).tables["launches"].to_dict("records")
    assert (row["launches"], row["works"], row["short"]) == (1, 3, 0)
    (row,) = (
        hg.summarize(load([runtime("cudaGraphLaunch", 0, 30, 1), *events[1:]])).tables["launches"].to_dict("records")
    )
    assert (row["launches"], row["works"], row["short"]) == (1, 3, 1)


def test_as_many_kernels_of_each_kind_are_named_as_asked_for() -> None:
    graph = load([*(kernel(f"k{i}", 10 * i, i + 1) for i in range(9)), kernel(COMMUNICATE, 200, 5)])
    table = hg.summarize(graph, top=3).tables["kernels"]
    assert table["name"].tolist() == ["k8", "k7", "k6", COMMUNICATE]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_envelope_is_json_with_a_version(job: dict[int, list[Json]]) -> None:
    envelope = hg.summarize(load(job)).to_dict()
    text = json.dumps(envelope, allow_nan=False, default=lambda value: value.item())
    again = json.loads(text)
    assert again["schema_version"] == SCHEMA_VERSION
    assert (again["tool"], again["command"]) == ("htagraph", "summary")
    assert again["results"]["verdict"]
    assert [row["rank"] for row in again["inputs"]] == sorted(job)


def test_its_repr_is_one_line() -> None:
    text = repr(small())
    assert text.startswith("Summary(2 ranks, 90.0 µs, 13 tables: Bound by")
    assert "\n" not in text
    assert len(text) < 300


def test_a_notebook_shows_the_verdict_and_the_time_by_rank_escaped() -> None:
    summary = small()
    page = summary._repr_html_()
    assert all(html.escape(sentence) in page for sentence in summary.verdict)
    assert "Time by rank" in page
    assert page.count("<table") == 1
    nothing = hg.summarize(load([]))
    assert "No work was recorded" in nothing._repr_html_()
    assert "No work was recorded" in repr(nothing)


@pytest.mark.parametrize("steps", [[step(5, 100, 0), step(6, 100, 0)], [step(5, 0, 100)]])
def test_steps_without_length_or_in_common_are_no_error(steps: list[Json]) -> None:
    """As a rank leaves behind that is killed within its first step."""
    other = [step(number, 100 * number, 100) for number in range(4, 8)]
    work = [op("aten::mm", 100 * number, 40) for number in range(4, 8)]
    assert hg.summarize(load({0: [*other, *work], 1: [*other, *work], 2: [*steps, *work]})).verdict
    assert hg.summarize(load([*steps, op("aten::mm", 100, 0)])).verdict
