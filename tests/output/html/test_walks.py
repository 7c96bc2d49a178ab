"""A page knows the dependencies, the slack and the gain of its slices as the graph does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import ADDED, GapKind, of_kinds
from htagraph.output.html.timeline import timeline_of
from htagraph.output.html.walks import NOT_DRAWN, NOTHING_BEFORE, OWN_WORK, walks_of
from tests.output.html.unpacking import slices_of, unpacked
from tests.reach import DATA, DATASETS, graph_of, label
from tests.strategies import Json, jobs, load

MOST_ASKED = 100
"""Activities of a job whose tables are compared, evenly spread; a table takes a millisecond."""


class Wait(NamedTuple):
    """A dependency between the moments of two activities."""

    target: int
    source: int
    edge: str
    lag_ns: int
    binds: bool


def listed_by(graph: DependencyGraph) -> tuple[set[Wait], dict[int, int]]:
    """Return the dependencies that a page lists, and what decided each moment without being listed."""
    timeline = timeline_of(hg.critical_path(graph))
    columns = unpacked(timeline.header["columns"], timeline.data)
    added = np.flatnonzero(of_kinds(graph.activities.kind, ADDED)).tolist()
    places = [*(each["activity"] for each in slices_of(timeline)), *added]
    kinds = timeline.header["edgeKinds"]
    waits = set()
    unlisted = {}
    row = 0
    for moment, count in enumerate(columns["waits"]):
        vertex = 2 * places[moment // 2] + moment % 2
        decided = columns["decided"][moment]
        if decided <= NOT_DRAWN:
            unlisted[vertex] = decided
        for position in range(count):
            far = moment + columns["waitFrom"][row]
            source = 2 * places[far // 2] + far % 2
            edge = kinds[columns["waitKind"][row]]
            binds = decided == 3 + position
            apart = int(graph.time[vertex] - graph.time[source])
            lag_ns = apart - columns["late"][moment] if binds else columns["waitLag"][row]
            waits.add(Wait(vertex, source, edge, lag_ns, binds))
            row += 1
    assert row == len(columns["waitKind"])
    return waits, unlisted


def holds(graph: DependencyGraph) -> None:
    """Assert that a page and the graph's own tables say the same."""
    waits, unlisted = listed_by(graph)
    acts = graph.activities
    is_shown = of_kinds(acts.kind, ADDED) | ((acts.lane >= 0) & (acts.event >= 0))
    shown = np.flatnonzero(is_shown)
    asked = shown[:: max(1, len(shown) // MOST_ASKED)].tolist()
    expected = set()
    for activity in asked:
        table = graph.predecessors(activity)
        for row in table[is_shown[table["other_activity"].to_numpy(np.int64)]].itertuples():
            target = 2 * activity + (row.moment == "end")
            source = 2 * row.other_activity + (row.other_moment == "end")
            expected.add(Wait(target, source, row.edge, round(1000 * row.lag_us), row.binds))
    numbers = set(asked)
    listed = {wait for wait in waits if wait.target // 2 in numbers and wait.source // 2 != wait.target // 2}
    assert listed == expected
    for vertex, why in unlisted.items():
        binding = int(graph.binding[vertex])
        is_own = binding >= 0 and int(graph.edges.source[binding]) // 2 == vertex // 2
        assert why == (NOTHING_BEFORE if binding < 0 else OWN_WORK if is_own else NOT_DRAWN)


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_a_page_lists_the_predecessors_that_the_graph_knows(path: Path) -> None:
    holds(graph_of(path))


@pytest.mark.slow
@given(jobs())
def test_a_page_of_any_job_lists_its_predecessors(job: dict[int, list[Json]]) -> None:
    holds(load(job))


def test_slack_and_gain_are_those_of_the_analysis() -> None:
    graph = graph_of(DATA / "demo")
    timeline = timeline_of(hg.critical_path(graph))
    columns = unpacked(timeline.header["columns"], timeline.data)
    table = hg.slack(graph)
    activities = [each["activity"] for each in slices_of(timeline)]
    assert [value > 0 for value in columns["slack"]] == [each in table.index for each in activities]
    at = [place for place, value in enumerate(columns["slack"]) if value]
    expected = table.loc[[activities[place] for place in at]]
    assert [columns["slack"][place] - 1 for place in at] == (1000 * expected["slack_us"]).round().tolist()
    assert [columns["gain"][place] - 1 for place in at] == (1000 * expected["drag_us"]).round().tolist()
    assert [columns["gainLeast"][place] == 0 for place in at] == expected["drag_exact"].tolist()


def test_a_moment_comes_as_much_later_as_its_gap() -> None:
    graph = graph_of(DATA / "demo")
    timeline = timeline_of(hg.critical_path(graph))
    columns = unpacked(timeline.header["columns"], timeline.data)
    words = timeline.header["gapKinds"]
    for place, each in enumerate(slices_of(timeline)):
        for end in (0, 1):
            vertex = 2 * each["activity"] + end
            assert columns["late"][2 * place + end] == graph.gap[vertex]
            assert words[columns["lateWhy"][2 * place + end]] == GapKind(graph.gap_kind[vertex]).label


def test_of_too_many_dependencies_those_of_the_path_are_kept_and_that_is_said() -> None:
    graph = graph_of(DATA / "demo")
    slices = np.flatnonzero((graph.activities.lane >= 0) & (graph.activities.event >= 0))
    path = hg.critical_path(graph).segments.place
    whole = walks_of(graph, slices, on_path=path)
    most = 5000
    kept = walks_of(graph, slices, on_path=path, most=most)
    assert not whole.left_out
    assert len(kept.columns["waitKind"]) == most
    assert f"{len(whole.columns['waitKind']) - most:,} dependencies" in kept.left_out[0]
    on_path = np.isin(slices, path)
    ends = np.flatnonzero(on_path)
    for moment in (2 * ends, 2 * ends + 1):
        assert (kept.columns["waits"][moment] == whole.columns["waits"][moment]).all()
