"""Each criterion of a selection against its definition, asked of one activity at a time in plain Python."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import ActivityKind, DependencyGraph, Selection, SelectionError
from htagraph.graph.selection import Criteria, backward_of, mask_of, named
from tests.graph import slow_tree
from tests.reach import DATA, JOBS, SHARED, graph_of, label
from tests.strategies import COMPUTE, MAIN, OTHER, Json, annotation, arrow, jobs, kernel, launch, load, op, step

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


Meets: TypeAlias = Callable[[DependencyGraph, int], bool]


def name_of(graph: DependencyGraph, row: int) -> str:
    return graph.names[graph.activities.name[row]]


def is_between(graph: DependencyGraph, row: int, first: float, last: float) -> bool:
    start_us, end_us = ((int(graph.time[2 * row + side]) - graph.origin_ns) / 1000 for side in range(2))
    return first <= start_us and end_us <= last


def lies_inside(graph: DependencyGraph, row: int, glob: str) -> bool:
    return any(fnmatch.fnmatchcase(name_of(graph, above), glob) for above in slow_tree.ancestors(graph)[row])


DEFINITIONS: list[tuple[Criteria, Meets]] = [
    ({"kind": "computation"}, lambda g, i: ActivityKind(g.activities.kind[i]).label == "computation"),
    ({"kind": ["op", "memory"]}, lambda g, i: ActivityKind(g.activities.kind[i]).label in {"op", "memory"}),
    ({"kind": "device"}, lambda g, i: ActivityKind(g.activities.kind[i]).on_device),
    ({"category": "cuda_*"}, lambda g, i: g.names[g.activities.category[i]].startswith("cuda_")),
    ({"name": "aten::*"}, lambda g, i: name_of(g, i).startswith("aten::")),
    ({"regex": "mm|Launch"}, lambda g, i: re.search("mm|Launch", name_of(g, i)) is not None),
    ({"op": "aten::mm"}, lambda g, i: lies_inside(g, i, "aten::mm")),
    ({"op": "ProfilerStep#*"}, lambda g, i: lies_inside(g, i, "ProfilerStep#*")),
    ({"stream": 20}, lambda g, i: g.lanes[g.activities.lane[i]].stream == 20 and bool(g.activities.on_device[i])),
    ({"time": (5.0, 25.0)}, lambda g, i: is_between(g, i, 5.0, 25.0)),
    ({"min_us": 3}, lambda g, i: g.activities.duration[i] >= 3000),
    ({"max_us": 3}, lambda g, i: g.activities.duration[i] <= 3000),
    ({"depth": [0, 2]}, lambda g, i: len(slow_tree.ancestors(g)[i]) in {0, 2}),
]


@pytest.mark.parametrize(("criteria", "meets"), DEFINITIONS, ids=[str(each) for each, _ in DEFINITIONS])
@given(job=jobs())
@settings(max_examples=10)
def test_a_criterion_is_its_definition(criteria: Criteria, meets: Meets, job: dict[int, list[Json]]) -> None:
    graph = load(job)
    assert mask_of(graph, criteria).tolist() == [meets(graph, row) for row in range(len(graph.activities))]


@given(jobs(), st.data())
@settings(max_examples=20)
def test_ranks_and_steps_are_those_of_the_activities(job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    acts = graph.activities
    ranks = data.draw(st.lists(st.sampled_from(graph.ranks), min_size=1))
    assert mask_of(graph, {"rank": ranks}).tolist() == [rank in ranks for rank in acts.rank.tolist()]
    if graph.steps:
        number = data.draw(st.sampled_from(graph.steps))
        expected = [each == number for each in acts.step.tolist()]
        assert mask_of(graph, {"step": number}).tolist() == expected
        assert mask_of(graph, {"step_index": graph.steps.index(number)}).tolist() == expected
        assert mask_of(graph, {"step_index": graph.steps.index(number) - len(graph.steps)}).tolist() == expected


def test_several_criteria_must_all_be_met_and_none_is_no_criterion() -> None:
    graph = load([step(1, 0, 50), op("a", 2, 9), launch(3, 1, 1), kernel(COMPUTE, 20, 5, 1), kernel(COMPUTE, 60, 5)])
    assert mask_of(graph, {}).all()
    assert mask_of(graph, {"name": None, "rank": None}).all()
    both = mask_of(graph, {"op": "a", "kind": "kernel"})
    assert np.array_equal(both, mask_of(graph, {"op": "a"}) & mask_of(graph, {"kind": "kernel"}))
    assert both.sum() == 1


def test_activities_are_chosen_by_number() -> None:
    graph = load([op("a", 0, 5), op("b", 10, 5), op("c", 20, 5)])
    chosen = mask_of(graph, {"activity": [2, 0]})
    assert np.flatnonzero(chosen).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("text", "expected"), [("[memory]", [True, False]), ("[m]*", [False, True]), ("x", [False] * 2)]
)
def test_a_name_matches_as_it_is_written_and_as_a_glob(text: str, expected: list[bool]) -> None:
    assert named(("[memory]", "malloc"), text).tolist() == expected


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"knd": "op"}, "'knd' is no criterion: choose from kind, "),
        ({"kind": "kernels"}, "kind 'kernels': choose from "),
        ({"regex": "("}, "is no regular expression"),
        ({"rank": 7}, "rank 7 is not in this graph; its ranks: 0"),
        ({"step": 7}, "step 7 is not in this graph; its steps: none"),
        ({"step_index": 0}, "this graph has 0 steps"),
        ({"time": (5, 1)}, "the start is after the end"),
        ({"time": 5}, "give \\(start_us, end_us\\)"),
        ({"min_us": "3"}, "give a number of µs"),
        ({"depth": "top"}, "whole numbers"),
        ({"activity": 99}, "this graph has activities 0 to "),
        ({"name": 3}, "give a name or a glob"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_refused_with_what_can(criteria: Any, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        mask_of(load([op("a", 0, 5)]), criteria)


NAMES = ["aten::mm", "## forward ##", "ProfilerStep#5", COMPUTE, "cuda*", "aten::*"]
PLACES = ["under", "before", "after"]


# sets


@given(jobs(), st.data())
@settings(max_examples=25)
def test_selections_are_sets(job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    numbers = st.sets(st.sampled_from(range(len(graph.activities)))) if len(graph.activities) else st.just(set())
    a, b = data.draw(numbers), data.draw(numbers)
    first, second = (graph.select(activity=sorted(each)) for each in (a, b))
    assert list(first & second) == sorted(a & b)
    assert list(first | second) == sorted(a | b)
    assert list(first - second) == sorted(a - b)
    assert list(first.select(kind="op")) == sorted(a & set(graph.select(kind="op")))


def test_selections_of_two_graphs_do_not_mix() -> None:
    first, second = (load([op("a", 0, 1)]) for _ in range(2))
    with pytest.raises(SelectionError, match="two graphs"):
        _ = first.select() & second.select()


# criteria


@given(jobs(), st.floats(0, 60), st.floats(0, 60))
@settings(max_examples=25)
def test_a_time_range_holds_what_begins_and_ends_in_it(job: dict[int, list[Json]], a: float, b: float) -> None:
    graph, (first, last) = load(job), sorted((a, b))
    frame = graph.select().to_frame()
    inside = (frame["start_us"] >= first) & (frame["start_us"] + frame["duration_us"] <= last)
    assert list(graph.select(time=(first, last))) == frame.index[inside].tolist()
    long = frame["duration_us"].between(first, last)
    assert list(graph.select(min_us=first, max_us=last)) == frame.index[long].tolist()


@pytest.mark.parametrize("pattern", ["^aten", "mm|add", "#+", "nothing"])
@given(job=jobs())
@settings(max_examples=10)
def test_a_regex_is_found_anywhere(pattern: str, job: dict[int, list[Json]]) -> None:
    graph = load(job)
    frame = graph.select().to_frame()
    assert list(graph.select(regex=pattern)) == [i for i, name in frame["name"].items() if re.search(pattern, name)]


@given(jobs())
@settings(max_examples=15)
def test_steps_by_position(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for position, number in enumerate(graph.steps):
        assert list(graph.select(step_index=position)) == list(graph.select(step=number))
        assert list(graph.select(step_index=position - len(graph.steps))) == list(graph.select(step=number))


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"regex": "("}, r"regex '\(' is no regular expression"),
        ({"regex": 3}, "regex 3 is no regular expression"),
        ({"time": 3}, "time 3: give"),
        ({"time": (1, 2, 3)}, "time .*: give"),
        ({"time": (2, 1)}, "the start is after the end"),
        ({"step_index": 2}, "step_index 2: this graph has 1 steps"),
        ({"activity": [0, 99]}, "activity 99: this graph has activities 0 to 2"),
        ({"depth": "deep"}, "whole numbers"),
    ],
)
def test_nonsense_is_refused_in_words(criteria: dict[str, Any], message: str) -> None:
    graph = load([step(4, 0, 9), op("a", 1, 2)])
    with pytest.raises(SelectionError, match=message):
        graph.select(**criteria)


def test_a_category_is_that_of_the_file() -> None:
    graph = load([step(4, 0, 9), op("a", 1, 2), launch(3, 1, 1), kernel(COMPUTE, 5, 1, 1)])
    assert graph.select(category="*runtime").to_frame()["kind"].tolist() == ["launch"]


# positions


def by_brute_force(selection: Selection, name: str, position: int, place: str, *, device: bool) -> set[int] | None:
    """Return what lies so, one activity at a time; None where no rank has so many."""
    graph = selection.graph
    frame = graph.select().to_frame().assign(start=graph.activities.start, end=graph.activities.end)
    rows: list[dict[str, Any]] = [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]
    exact = any(row["name"] == name for row in rows)
    found: set[int] = set()
    many = False
    for rank in graph.ranks:
        hits = [
            number
            for number in selection
            if rows[number]["rank"] == rank
            and rows[number]["kind"] != "boundary"
            and (rows[number]["name"] == name if exact else fnmatchcase(rows[number]["name"], name))
        ]
        hits.sort(key=lambda number: (rows[number]["start"], number))
        if -len(hits) <= position < len(hits):
            many = True
            at = rows[hits[position]]
            found |= {i for i, row in enumerate(rows) if row["rank"] == rank and _lies(place, row, at, rows, device)}
    return found & set(selection) if many else None


def _lies(place: str, row: dict[str, Any], at: dict[str, Any], rows: list[dict[str, Any]], device: object) -> bool:
    if device and at["stream"] < 0 <= row["stream"] and row["cause"] >= 0:
        return _lies(place, rows[row["cause"]], at, rows, device)
    if row["lane"] != at["lane"] if at["stream"] >= 0 else row["stream"] >= 0:
        return False
    if place == "under":
        return bool(row["start"] >= at["start"] and row["end"] <= at["end"])
    return bool(row["end"] <= at["start"] if place == "before" else row["start"] >= at["end"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
@given(job=jobs(), position=st.integers(-3, 2), device=st.booleans(), data=st.data())
@settings(max_examples=10)
def test_positions_are_those_of_a_search(
    place: str, name: str, job: dict[int, list[Json]], position: int, device: Any, data: st.DataObject
) -> None:
    graph = load(job)
    among = graph.select() - graph.select(kind=data.draw(st.sampled_from(["python", "op", "kernel"])))
    expected = by_brute_force(among, name, position, place, device=device)
    if expected is None:
        with pytest.raises(SelectionError, match="no rank has so many here"):
            getattr(among, place)(name, position, device=device)
    else:
        assert set(getattr(among, place)(name, position, device=device)) == expected


# the tree


def _backward() -> list[Json]:
    """Return what HTA's test data call_stack/backward_thread.json holds: a backward operator on another thread."""
    return [
        annotation("ProfilerStep#552", 0, 100),
        annotation("## backward ##", 10, 80),
        op("autograd::engine::evaluate_function: AddmmBackward0", 20, 50, OTHER),
        op("AddmmBackward0", 25, 40, OTHER),
        op("aten::mm", 30, 30, OTHER),
        launch(35, 10, 9, OTHER),
        kernel(COMPUTE, 60, 25, 9),
    ]


def test_a_stack_leads_over_threads_and_the_launch_to_the_kernel() -> None:
    graph = load(_backward())
    (work,) = graph.select(kind="kernel")
    names = ["ProfilerStep#552", "## backward ##", *(event["name"] for event in _backward()[2:])]
    assert graph.select(activity=work).ancestors().to_frame()["name"].tolist() == names[:-1]
    ops = graph.select(name="autograd::*")
    assert ops.descendants().to_frame()["name"].tolist() == names[3:]
    assert list(ops.leaves()) == list(graph.select(name="aten::mm").device_work()) == [work]


@given(jobs(), st.data())
@settings(max_examples=25)
def test_ancestors_and_descendants_are_each_others_inverse(job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    if not len(graph.activities):
        return
    row = data.draw(st.sampled_from(range(len(graph.activities))))
    one = graph.select(activity=row)
    acts = graph.activities
    assert list(one.ancestors()) == sorted(slow_tree.ancestors(graph)[row])
    below = [each for each in range(len(acts)) if row in graph.select(activity=each).ancestors()]
    assert list(one.descendants()) == below
    whole = sorted([row, *below])
    assert set(one.leaves()) == {each for each in whole if not len(graph.select(activity=each).descendants())}
    assert list(one.device_work()) == [each for each in whole if acts.on_device[each]]


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_every_real_job_has_its_tree(path: Any) -> None:
    graph = graph_of(path)
    tops = graph.select(depth=0)
    assert list(graph.select().descendants() | tops) == list(graph.select())
    assert list(tops.descendants()) == list(graph.select() - tops)
    assert list(graph.select().ancestors()) == list(graph.select() - graph.select().leaves())
    assert np.isin(tops.device_work().activities, graph.select(kind="device").activities).all()


# HTA's filters

CATEGORIES = ("cpu_op", "cuda_runtime", "gpu_memcpy", "gpu_memset", "kernel", "user_annotation")
UPLOAD = "Memcpy HtoD (Pinned -> Device)"
ROOT = "## forward ##"
Chosen = Callable[[DependencyGraph], Selection]
OURS: dict[str, Chosen] = {
    "iter": lambda graph: graph.select(step=1014),
    "first": lambda graph: graph.select(step_index=0),
    "index01": lambda graph: graph.select(step_index=[0, 1]),
    "time": lambda graph: graph.select(time=_quarter(graph)),
    "regex": lambda graph: graph.select(regex="^aten::.*m"),
    "nonzero": lambda graph: graph.select(min_us=0.001),
    "gpu": lambda graph: graph.select(kind="device"),
    "cpu": lambda graph: graph.select(kind="host"),
    "copy": lambda graph: graph.select(category="gpu_memcpy", name=UPLOAD),
    "under 0 False": lambda graph: _first(graph).under(ROOT, device=False),
    "under 0 True": lambda graph: _first(graph).under(ROOT),
    "before 0 True": lambda graph: _first(graph).before(ROOT),
    "after 0 False": lambda graph: _first(graph).after(ROOT, device=False),
    "after 0 True": lambda graph: _first(graph).after(ROOT),
    "combined False": lambda graph: _combined(graph, device=False),
    "combined True": lambda graph: _combined(graph, device=True),
}
"""What HTA's filters are here. Combined: under the first of ROOT, after the last gather, before the first detach."""

HTAS = {
    "iter": ((6747, 4310, 38, 109, 1428, 48), (5202, 3839, 803, 145, 1555, 48)),
    "first": ((6747, 3731, 38, 109, 1428, 48), (5202, 3434, 803, 145, 1555, 48)),
    "index01": ((13494, 7577, 76, 218, 2856, 96), (10404, 7308, 1606, 290, 3110, 96)),
    "time": ((10940, 6524, 43, 185, 2257, 70), (8277, 5053, 1380, 251, 2630, 56)),
    "regex": ((9492, 0, 0, 0, 0, 0), (7746, 0, 0, 0, 0, 0)),
    "nonzero": ((37769, 12744, 228, 654, 8568, 288), (30146, 12715, 4856, 900, 9876, 288)),
    "gpu": ((0, 0, 228, 654, 8568, 0), (0, 0, 4856, 900, 9876, 0)),
    "cpu": ((40506, 24692, 0, 0, 0, 288), (31236, 21167, 0, 0, 0, 288)),
    "copy": ((0, 0, 150, 0, 0, 0), (0, 0, 151, 0, 0, 0)),
    "under 0 False": ((1594, 1013, 0, 0, 0, 12), (1445, 1637, 0, 0, 0, 12)),
    "under 0 True": ((1594, 1013, 2, 12, 422, 12), (1445, 1637, 367, 40, 512, 12)),
    "before 0 True": ((157, 51, 24, 0, 1, 6), (157, 78, 24, 0, 1, 6)),
    "after 0 False": ((4996, 2667, 0, 0, 0, 29), (3600, 1719, 0, 0, 0, 29)),
    "after 0 True": ((4996, 2667, 12, 97, 1005, 29), (3600, 1719, 412, 105, 1042, 29)),
    "combined False": ((1530, 1001, 0, 0, 0, 9), (1357, 1603, 0, 0, 0, 9)),
    "combined True": ((1530, 1001, 2, 12, 416, 9), (1357, 1603, 367, 40, 502, 9)),
}  # fmt: skip
"""What HTA 0.6.1's filters leave of the traces control and test by category (whole-µs times; all its rows parsed)."""


def _quarter(graph: DependencyGraph) -> tuple[float, float]:
    whole = int(graph.time[graph.activities.event.repeat(2) >= 0].max() - graph.origin_ns) // 1000
    return whole // 4, whole // 2


def _first(graph: DependencyGraph) -> Selection:
    return graph.select(step_index=0)


def _combined(graph: DependencyGraph, *, device: bool) -> Selection:
    chosen = _first(graph).under(ROOT, device=device).after("aten::gather", -1, device=device)
    return chosen.before("aten::detach", device=device)


@cache
def _control(trace: str) -> DependencyGraph:
    return hg.load({0: SHARED / "hta" / "trace_diff" / trace / f"{trace}.json.gz"})


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("trace", ["control", "test"])
@pytest.mark.parametrize("chosen", OURS)
def test_filters_leave_what_htas_leave(chosen: str, trace: str) -> None:
    graph = _control(trace)
    acts = graph.activities
    rows = [row for row in OURS[chosen](graph) if acts.event[row] >= 0]
    counts = Counter(graph.names[acts.category[row]] for row in rows)
    assert tuple(counts[category] for category in CATEGORIES) == HTAS[chosen][trace == "test"]


def test_a_misspelt_operator_is_answered_with_the_nearest() -> None:
    with pytest.raises(SelectionError, match="did you mean 'aten::addmm'"):
        load([op("aten::addmm", 0, 5)]).select().under("aten::adddmm")


ENGINE = "autograd::engine::evaluate_function: "
AUTOGRAD = 2
"""Thread of the autograd engine."""


def trained() -> hg.DependencyGraph:
    """Return a job of two layers, each with an operator forward and one, with a kernel, backward."""
    forward = [op("first", 1, 8), op("second", 11, 8)]
    backward = [op("SecondBackward0", 31, 8, AUTOGRAD), op("FirstBackward0", 51, 8, AUTOGRAD)]
    events = [
        annotation("head", 0, 10), annotation("tail", 10, 10), *forward,
        op(ENGINE + "SecondBackward0", 30, 10, AUTOGRAD), *backward[:1], launch(32, 4, 1, AUTOGRAD),
        kernel("second_grad", 40, 100, 1), op(ENGINE + "FirstBackward0", 50, 10, AUTOGRAD), *backward[1:],
        *arrow(1, forward[0], backward[1]), *arrow(2, forward[1], backward[0]),
    ]  # fmt: skip
    return load(events)


def names_of(graph: hg.DependencyGraph, rows: np.ndarray) -> set[str]:
    return {graph.names[name] for name in graph.activities.name[rows]}


def test_the_engine_and_all_inside_belong_to_it() -> None:
    graph = trained()
    forward = np.isin(graph.activities.name, [graph.names.index("tail"), graph.names.index("second")])
    rows = np.flatnonzero(backward_of(graph, forward))
    assert names_of(graph, rows) == {ENGINE + "SecondBackward0", "SecondBackward0", "cudaLaunchKernel", "second_grad"}


def test_a_selection_asks_for_it_by_the_name_of_a_region() -> None:
    graph = trained()
    assert names_of(graph, graph.select(backward_of="head").activities) == {ENGINE + "FirstBackward0", "FirstBackward0"}
    assert not len(graph.select(backward_of="nothing").activities)


def test_removing_a_region_says_that_its_backward_stays() -> None:
    scenario = hg.what_if(trained())
    (note,) = [note for note in scenario.remove(op="tail").run().notes if "backward" in note]
    assert "stays (1 operator, " in note
    assert "remove(backward_of='tail')" in note
    both = scenario.remove(op="tail").remove(backward_of="tail").run()
    assert both.makespan_ns < scenario.remove(op="tail").run().makespan_ns
    assert not [note for note in scenario.remove(backward_of="tail").run().notes if "backward pass" in note]
