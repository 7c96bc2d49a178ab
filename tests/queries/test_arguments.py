"""Operators and the nodes of an execution trace are linked by record-function id and name."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from benchmarks.processor_time import least, seconds_by_name
from htagraph.core.errors import SelectionError, TraceError
from htagraph.core.statistics import MOST
from htagraph.queries.arguments import arguments, link_execution_trace
from htagraph.trace.kineto.read import category_arguments
from htagraph.trace.profiler_files.files import LISTS
from tests.reach import JOBS, SHARED, graph_of, label, raw_events
from tests.strategies import COMPUTE, MAIN, annotation, complete, kernel, launch, load, op, write

NAMES = ("Input Dims", "External id", "correlation", "grid", "no such argument")
EVENTS = [op("aten::mm", 0, 9, MAIN, **{"Input Dims": [[2, 3], [3, 4], []]}), launch(1, 1, 5), kernel(COMPUTE, 4, 2, 5)]


def test_a_column_per_argument_and_a_row_per_activity_asked_for(tmp_path: Path) -> None:
    graph = load(EVENTS, tmp_path)
    table = arguments(graph, ["Input Dims", "correlation"], [2, 0])
    assert table.index.tolist() == [2, 0]
    assert table["Input Dims"].tolist() == [None, [[2, 3], [3, 4], []]]
    assert table["correlation"].tolist() == [5, None]
    assert table.index.name == "activity"
    assert set(table.dtypes) == {np.dtype(object)}


def test_an_activity_asked_for_twice_has_two_rows(tmp_path: Path) -> None:
    assert arguments(load(EVENTS, tmp_path), ["stream"], [2, 1, 2])["stream"].tolist() == [7, None, 7]


def test_each_rank_has_the_arguments_of_its_own_file(tmp_path: Path) -> None:
    graph = load({rank: [op("x", 0, 9, number=rank)] for rank in (0, 3)}, tmp_path)
    assert arguments(graph, ["number"])["number"].tolist() == [0, 3]


@pytest.mark.slow
def test_what_no_file_recorded_has_no_arguments() -> None:
    graph = hg.DependencyGraph.from_frames(
        pd.DataFrame({"duration_ns": [5]}), pd.DataFrame({"source": [], "target": []}, dtype="int64")
    )
    assert arguments(graph, ["stream"])["stream"].tolist() == [None]


def test_asking_for_nothing_reads_nothing() -> None:
    graph = load(EVENTS)  # whose file is gone
    assert arguments(graph, []).shape == (len(graph.activities), 0)
    assert arguments(graph, ["stream"], []).shape == (0, 1)


def test_an_unknown_activity_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hg.SelectionError, match="has activities 0 to 2"):
        arguments(load(EVENTS, tmp_path), ["stream"], [3])


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    graph = load(EVENTS, tmp_path)
    write(EVENTS[:1], tmp_path / "rank-0.json")
    with pytest.raises(hg.TraceError, match="was changed"):
        arguments(graph, ["stream"])


def test_all_arguments_of_a_category(tmp_path: Path) -> None:
    counters = [complete("cuda_profiler_range", "k", t, 1, counter=float(t), **{"sm__x.sum": t}) for t in (1, 2)]
    path = write([op("x", 0, 9), *counters, op("y", 10, 1), complete("cuda_profiler_range", "k", 3, 1)], tmp_path / "t")
    table = category_arguments(path, "cuda_profiler_range")
    assert table.index.tolist() == [1, 2, 4]
    assert table.columns.tolist() == ["counter", "sm__x.sum"]
    assert table.loc[1:2, "counter"].tolist() == [1.0, 2.0]
    assert table.loc[4].isna().all()
    assert category_arguments(path, "kernel").shape == (0, 0)


def test_a_category_of_old_is_known_by_the_name_of_today(tmp_path: Path) -> None:
    path = write([complete("Memcpy", "Memcpy DtoD", 0, 1, bytes=4)], tmp_path / "t")
    assert category_arguments(path, "gpu_memcpy")["bytes"].tolist() == [4]


def _in_file(path: Path, graph: hg.DependencyGraph, rank: int) -> list[tuple[Any, ...]]:
    events, acts = raw_events(path), graph.activities
    mine = np.arange(len(acts))[acts.of_rank(rank)]
    args = [(events[i].get("args") or {}) if i >= 0 else {} for i in acts.event[mine].tolist()]
    return [tuple(each.get(name) for name in NAMES) for each in args]


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=label)
def test_arguments_are_those_that_json_reads(job: Path) -> None:
    graph = graph_of(job)
    if any(issue.what in ("truncated", "event_unreadable") for issue in graph.issues):
        pytest.skip("json does not read damaged files")
    table = arguments(graph, NAMES)
    for rank in graph.ranks:
        mine = table.iloc[graph.activities.of_rank(rank)]
        assert list(mine.itertuples(index=False, name=None)) == _in_file(Path(graph.traces[rank].path), graph, rank)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared traces")
def test_a_hundred_thousand_events_take_about_a_second() -> None:
    graph = graph_of(next((SHARED / "hta/trace_diff/test").glob("*.json.gz")))
    measured = partial(seconds_by_name, {"all": lambda: arguments(graph, ["Input Dims", "Input type"])})
    seconds = least(measured, lambda found: found["all"] >= 5, 3)
    assert seconds["all"] < 5  # of the processor, 25 times what it takes, for slow machines


def test_a_selection_is_taken_as_its_activities(tmp_path: Path) -> None:
    graph = load(EVENTS, tmp_path)
    assert arguments(graph, ["stream"], graph.select(kind="kernel"))["stream"].tolist() == [7]
    with pytest.raises(hg.SelectionError, match="another graph"):
        arguments(load(EVENTS), ["stream"], graph.select(kind="kernel"))


@pytest.mark.parametrize("activities", [[1.5], 5, [[1, 2]], [[1], [2, 3]], ["x"], [10**30], [True, False, True], [-1]])
def test_what_is_no_list_of_activities_is_refused(activities: Any, tmp_path: Path) -> None:
    with pytest.raises(hg.SelectionError, match="activities"):
        arguments(load(EVENTS, tmp_path), ["stream"], activities)


@pytest.mark.parametrize("names", ["stream", [5], 'a"b', ['a"b'], ["a\\b"], ["a\n"]])
def test_what_is_no_list_of_names_is_refused(names: Any, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match=r"names=|cannot be looked up"):
        arguments(load(EVENTS, tmp_path), names)


def _nodes(rows: list[tuple[int, str, int]]) -> pd.DataFrame:
    """Return what `read_execution_trace` would: nodes as (id, name, record-function id)."""
    table = pd.DataFrame(rows, columns=["id", "name", "rf_id"]).set_index("id")
    more = {"op_schema": "s", **dict.fromkeys(LISTS)}
    return table.assign(parent=-1, **more)


_entries = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6)), max_size=8)


@pytest.mark.slow
@given(_entries, _entries)
@settings(max_examples=80)
def test_links_are_those_of_trying_every_pair(operators: list[tuple[str, int]], nodes: list[tuple[str, int]]) -> None:
    graph = load([op(name, 10 * i, 5, **{"External id": number}) for i, (name, number) in enumerate(operators)])
    table = _nodes([(100 + i, name, number) for i, (name, number) in enumerate(nodes)])
    first = {number: (100 + i, name) for i, (name, number) in reversed([*enumerate(nodes)]) if number > 0}
    pairs = [(i, *first[number], name) for i, (name, number) in enumerate(operators) if number in first]
    same = {i: node for i, node, there, here in pairs if there == here}
    if pairs and len(same) < MOST * len(pairs):
        with pytest.raises(TraceError, match="not of this run"):
            link_execution_trace(graph, table)
    else:
        assert link_execution_trace(graph, table)["et_node"].to_dict() == same


def test_a_trace_of_this_run_is_taken_up_to_half_of_the_names_being_others() -> None:
    graph = load([op("a", 0, 5, **{"External id": 1}), op("b", 10, 5, **{"External id": 2})])
    assert link_execution_trace(graph, _nodes([(7, "a", 1), (8, "x", 2)]))["et_node"].to_dict() == {0: 7}
    with pytest.raises(TraceError, match="2 of 2 shared ids"):
        link_execution_trace(graph, _nodes([(7, "y", 1), (8, "x", 2)]))


def test_annotations_have_nodes_too_and_device_work_has_none(tmp_path: Path) -> None:
    marked = annotation("phase", 0, 50)
    marked["args"] = {"External id": 3}
    work = kernel("k", 10, 5)
    work["args"]["External id"] = 3
    graph = load([marked, work], tmp_path)
    linked = link_execution_trace(graph, _nodes([(7, "phase", 3)]))
    assert linked["name"].tolist() == ["phase"]


def test_of_several_ranks_one_must_be_named() -> None:
    graph = load({0: [op("a", 0, 5)], 2: [op("a", 0, 5, **{"External id": 1})]})
    nodes = _nodes([(7, "a", 1)])
    for rank in (None, 1):
        with pytest.raises(SelectionError, match="ranks 0, 2"):
            link_execution_trace(graph, nodes, rank)
    assert link_execution_trace(graph, nodes, 2)["et_node"].tolist() == [7]
    assert link_execution_trace(load({0: []}), nodes).empty
