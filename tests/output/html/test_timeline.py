"""The timeline of a page has every activity at its time to the nanosecond, in rows that do not overlap."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.output.html.timeline import MAX_LETTERS, timeline_of
from tests.output.html.unpacking import slices_of, unpacked
from tests.reach import DATASETS, graph_of, label
from tests.strategies import Json, jobs, kernel, load, op


def holds(graph: DependencyGraph) -> None:
    """Assert the laws of a timeline."""
    path = hg.critical_path(graph)
    timeline = timeline_of(path)
    slices, acts = slices_of(timeline), graph.activities
    shown = [row for row in range(len(acts)) if acts.lane[row] >= 0 and acts.event[row] >= 0]
    assert sorted(each["activity"] for each in slices) == shown
    for each in slices:
        row = each["activity"]
        assert (each["start"], each["end"]) == tuple((graph.time[2 * row : 2 * row + 2] - graph.origin_ns).tolist())
        assert each["rank"] == acts.rank[row]
        assert each["step"] == acts.step[row]
    for one, other in pairwise(slices):
        assert one["row"] != other["row"] or one["end"] <= other["start"]
    columns = unpacked(timeline.header["columns"], timeline.data)
    assert sum(columns["pathLength"]) == path.makespan_ns
    places = np.cumsum(columns["pathSlice"]).tolist()
    on_path = {slices[place]["activity"] for place in places if place >= 0}
    assert on_path == set(path.segments.place.tolist()) & set(shown)


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_a_recorded_job_is_shown_whole(path: Path) -> None:
    holds(graph_of(path))


@given(jobs())
def test_any_job_is_shown_whole(job: dict[int, list[Json]]) -> None:
    holds(load(job))


def test_slices_that_overlap_in_part_are_on_different_rows() -> None:
    graph = load([op("a", 0, 10), op("b", 5, 10), op("c", 12, 2)])
    rows = {each["name"]: each["row"][1] for each in slices_of(timeline_of(hg.critical_path(graph)))}
    assert rows == {"a": 0, "b": 1, "c": 2}


def test_names_are_there_once_and_long_ones_are_cut_which_is_said() -> None:
    graph = load([op("x" * 10_000, 0, 1), op("x" * 10_000, 2, 1), kernel("k", 0, 1)])
    timeline = timeline_of(hg.critical_path(graph))
    names = {each["name"] for each in slices_of(timeline)}
    assert max(map(len, names)) == MAX_LETTERS
    assert "1 name of more than 1,000 letters" in timeline.left_out[0]


def test_members_of_collectives_are_those_that_were_matched() -> None:
    graph = graph_of(DATASETS[0])
    timeline = timeline_of(hg.critical_path(graph))
    columns, slices = unpacked(timeline.header["columns"], timeline.data), slices_of(timeline)
    members = [slices[place]["activity"] for place in np.cumsum(columns["memberSlice"]).tolist()]
    assert graph.matches is not None
    assert members == graph.matches.activity.tolist()
    assert len(timeline.header["collectives"]) == graph.matches.count


def test_the_same_job_gives_the_same_bytes() -> None:
    path = hg.critical_path(graph_of(DATASETS[0]))
    assert timeline_of(path).data == timeline_of(path).data
