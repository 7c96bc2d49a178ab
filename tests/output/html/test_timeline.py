"""The timeline of a page has every activity at its time to the nanosecond, in rows that do not overlap."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.output.html.timeline import MAX_LETTERS, differences, kept_slices, packed, timeline_of
from tests.output.html.unpacking import slices_of, stretches_of, unpacked
from tests.reach import DATA, DATASETS, graph_of, label
from tests.strategies import OTHER, Json, complete, jobs, kernel, launch, load, op, step


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
    stretches, parts = stretches_of(timeline), path.segments
    bounds = [start for start, _, _ in stretches]
    assert [end for _, end, _ in stretches] == [*bounds[1:], path.window[1] - graph.origin_ns][-len(bounds) or 1 :]
    lasting = parts.length > 0
    within = np.searchsorted(bounds, parts.start[lasting] - graph.origin_ns, side="right") - 1
    places = [slices[at]["activity"] if at >= 0 else -1 for at in (stretches[each][2] for each in within.tolist())]
    assert places == np.where(np.isin(parts.place[lasting], shown), parts.place[lasting], -1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_a_recorded_job_is_shown_whole(path: Path) -> None:
    holds(graph_of(path))


@pytest.mark.slow
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


def test_all_is_kept_where_it_fits() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    kept, sentences = kept_slices(path)
    assert not sentences
    assert int(kept.sum()) == path.graph.activities.ranked - int((path.graph.activities.kind == 10).sum())


def test_python_goes_first_then_the_shortest_calls_and_the_path_stays() -> None:
    python = [complete("python_function", f"f{i}", 1 + 2 * i, 1, OTHER) for i in range(5)]
    calls = [op(f"op{i}", 20 + 10 * i, i + 1) for i in range(5)]
    graph = load([step(1, 0, 100), *python, *calls, launch(80, 2, 1), kernel("gemm", 90, 50, 1)])
    path = hg.critical_path(graph)
    always = set(np.unique(path.segments.place).tolist())
    kept, sentences = kept_slices(path, 6)
    names = {graph.names[graph.activities.name[row]] for row in np.flatnonzero(kept)}
    assert {"gemm", "ProfilerStep#1"} <= names
    assert always <= set(np.flatnonzero(kept).tolist()) | set(np.flatnonzero(graph.activities.lane < 0).tolist())
    assert "Python" in sentences[0]


def test_the_sentences_count_what_is_left_out() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    kept, sentences = kept_slices(path, 3000)
    whole, _ = kept_slices(path)
    counted = sum(int(sentence.split(" ")[0].replace(",", "")) for sentence in sentences)
    assert counted == int(whole.sum()) - int(kept.sum()) > 0


NUMBERS = st.lists(st.integers(-(2**52), 2**52), max_size=30)


@given(NUMBERS, NUMBERS)
def test_integers_are_read_back(first: list[int], second: list[int]) -> None:
    whole = packed({"first": np.array(first, np.int64), "second": np.abs(np.array(second, np.int64))})
    assert unpacked(*whole) == {"first": first, "second": [abs(each) for each in second]}


def test_small_numbers_take_one_plane_and_zeros_none() -> None:
    columns = packed({"zeros": np.zeros(9, np.int64), "small": np.arange(9)})[0]
    assert [column["planes"] for column in columns] == [0, 1]


def test_equal_columns_give_equal_bytes() -> None:
    made = [packed({"a": np.arange(1000), "b": np.arange(9)})[1] for _ in range(2)]
    assert made[0] == made[1]


@given(NUMBERS)
def test_sums_of_differences_are_the_values(values: list[int]) -> None:
    assert np.cumsum(differences(np.array(values, np.int64))).tolist() == values
