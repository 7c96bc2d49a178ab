from __future__ import annotations

import operator
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import ActivityKind, DependencyGraph, SelectionError
from tests.graph import slow_tree
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, MAIN, Json, annotation, jobs, kernel, launch, load, op, step

KINDS = [kind.label for kind in ActivityKind]
GLOBS = ["aten::*", "*forward*", "*", "ampere_sgemm_128x64_nn", "Profiler?tep#[56]", "nothing"]


def rows(graph: DependencyGraph) -> list[dict[str, Any]]:
    """Return every activity as plain values, with the names of all that it lies inside."""
    acts, ways = graph.activities, slow_tree.ancestors(graph)
    return [
        {
            "kind": ActivityKind(acts.kind[row]).label,
            "name": graph.names[acts.name[row]],
            "rank": int(acts.rank[row]),
            "step": int(acts.step[row]),
            "stream": graph.lanes[acts.lane[row]].stream if acts.lane[row] >= 0 else -1,
            "op": [graph.names[acts.name[each]] for each in ways[row]],
        }
        for row in range(len(acts))
    ]


@given(jobs(), st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
@settings(max_examples=20)
def test_kinds_are_alternatives(job: dict[int, list[Json]], kinds: list[str]) -> None:
    graph = load(job)
    assert list(graph.select(kind=kinds)) == [i for i, row in enumerate(rows(graph)) if row["kind"] in kinds]


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        ("kernel", {"computation", "communication"}),
        ("device", {"computation", "communication", "memory", "device_other"}),
        ("host", set(KINDS) - {"computation", "communication", "memory", "device_other"}),
    ],
)
@given(job=jobs())
@settings(max_examples=15)
def test_a_group_stands_for_its_kinds(group: str, kinds: set[str], job: dict[int, list[Json]]) -> None:
    graph = load(job)
    assert list(graph.select(kind=group)) == [i for i, row in enumerate(rows(graph)) if row["kind"] in kinds]


@pytest.mark.parametrize("criterion", ["name", "op"])
@pytest.mark.parametrize("glob", GLOBS)
@given(job=jobs())
@settings(max_examples=12)
def test_globs_match_names(criterion: str, glob: str, job: dict[int, list[Json]]) -> None:
    graph = load(job)

    def matches(row: dict[str, Any]) -> bool:
        names = row["op"] if criterion == "op" else [row["name"]]
        return any(fnmatchcase(name, glob) for name in names)

    criteria: Any = {criterion: glob}
    assert list(graph.select(**criteria)) == [i for i, row in enumerate(rows(graph)) if matches(row)]


@pytest.mark.parametrize("criterion", ["rank", "step", "stream"])
@given(job=jobs(), data=st.data())
@settings(max_examples=25)
def test_numbers_are_alternatives(criterion: str, job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    known = {"rank": graph.ranks, "step": graph.steps, "stream": (7, 20)}[criterion]
    wanted = data.draw(st.lists(st.sampled_from(known))) if known else []
    criteria: Any = {criterion: wanted}
    assert list(graph.select(**criteria)) == [i for i, row in enumerate(rows(graph)) if row[criterion] in wanted]


@given(jobs())
@settings(max_examples=20)
def test_several_criteria_hold_at_once(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    rank = graph.ranks[0]
    both = graph.select(kind="device", rank=rank, stream=7)
    assert set(both) == set(graph.select(kind="device")) & set(graph.select(rank=rank)) & set(graph.select(stream=7))
    assert list(graph.select()) == list(range(len(graph.activities)))


def small() -> DependencyGraph:
    return load(
        {2: [step(4, 0, 50), annotation("region", 1, 20), launch(2, 1, 1), kernel(COMPUTE, 30, 5, 1), op("a", 40, 5)]}
    )


def test_an_operator_stands_for_the_device_work_launched_under_it() -> None:
    assert [row["name"] for row in rows(small()) if "region" in row["op"]] == ["cudaLaunchKernel", COMPUTE]
    assert small().select(op="region").to_frame()["name"].tolist() == ["cudaLaunchKernel", COMPUTE]


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"kind": "cooking"}, r"kind 'cooking': choose from annotation, boundary, .*kernel"),
        ({"kind": ["op", "Op"]}, r"kind 'Op': choose from"),
        ({"rank": 7}, r"rank 7 is not in this graph; its ranks: 2"),
        ({"step": [4, 5]}, r"step 5 is not in this graph; its steps: 4"),
    ],
)
def test_an_error_names_what_would_match(criteria: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        small().select(**criteria)


def test_without_steps_an_error_says_so() -> None:
    with pytest.raises(SelectionError, match="its steps: none"):
        load([op("a", 0, 1)]).select(step=1)


def test_a_frame_has_one_row_per_activity() -> None:
    frame = small().select(name=COMPUTE).to_frame()
    assert frame.index.tolist() == [3]
    assert frame.index.name == "activity"
    assert frame.to_dict("records") == [
        {
            "rank": 2, "kind": "computation", "name": COMPUTE, "lane": "stream 7", "stream": 7, "step": 4,
            "start_us": 30.0, "duration_us": 5.0, "parent": -1, "cause": 2, "correlation": 1,
        }
    ]  # fmt: skip


def test_a_frame_of_nothing_has_the_same_columns() -> None:
    some, none = small().select().to_frame(), small().select(name="nothing").to_frame()
    assert len(none) == 0
    assert none.dtypes.to_dict() == some.dtypes.to_dict()


def test_a_thread_has_no_stream() -> None:
    assert small().select(kind="op").to_frame()["stream"].tolist() == [-1]
    assert list(small().select(stream=MAIN)) == []


def test_a_selection_shows_how_much_it_holds() -> None:
    assert repr(load([op("a", 0, 1), op("b", 2, 1)]).select(name="a")) == "Selection(1 of 2 activities)"


@pytest.mark.parametrize(
    "criteria", [{"name": 5}, {"op": None, "kind": 5}, {"rank": 2.0}, {"step": "4"}, {"kind": ["launch", None]}]
)
def test_what_is_no_criterion_is_refused_in_words(criteria: dict[str, Any]) -> None:
    with pytest.raises(SelectionError):
        small().select(**criteria)


@pytest.mark.parametrize("position", ["x", 1.5, None, True])
@pytest.mark.parametrize("way", ["under", "before", "after"])
def test_a_position_that_is_no_whole_number_is_refused(way: str, position: Any) -> None:
    with pytest.raises(hg.SelectionError, match="position"):
        getattr(graph_of(DATA / "demo").select(), way)("aten::addmm", position)


@pytest.mark.parametrize("criterion", ["min_us", "max_us"])
@pytest.mark.parametrize("value", ["x", "5", float("nan"), [1.0]])
def test_a_duration_that_is_no_number_is_refused(criterion: str, value: Any) -> None:
    with pytest.raises(hg.SelectionError, match=criterion):
        graph_of(DATA / "demo").select(**{criterion: value})


def test_only_selections_are_combined() -> None:
    some: Any = graph_of(DATA / "demo").select(kind="op")
    for combine, other in ((operator.and_, 5), (operator.or_, [1]), (operator.sub, None)):
        with pytest.raises(TypeError, match="is no selection"):
            combine(some, other)


@pytest.mark.parametrize("activity", ["x", 1.5, None, -1])
def test_a_stack_of_no_activity_is_refused(activity: Any) -> None:
    with pytest.raises(hg.SelectionError, match="this graph has activities"):
        hg.call_stack(graph_of(DATA / "demo"), activity)


def test_a_notebook_shows_how_much_is_selected_and_the_longest() -> None:
    graph = load([op("<b>long</b>", 0, 9), op("short", 10, 5)])
    shown = graph.select(kind="op")._repr_html_()
    assert "Selection(2 of 2 activities)" in shown
    assert "&lt;b&gt;long&lt;/b&gt;" in shown
    assert "<b>long" not in shown
    assert "Selection(0 of 2" in graph.select(name="nothing")._repr_html_()


def test_a_misspelt_criterion_is_answered_with_the_nearest() -> None:
    criteria: Any = {"knd": "kernel"}
    with pytest.raises(SelectionError, match=r"'knd' is no criterion: .*; did you mean 'kind'"):
        small().select(**criteria)
    with pytest.raises(SelectionError, match="did you mean 'communication'"):
        small().select(kind="comunication")
