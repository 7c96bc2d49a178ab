"""Each criterion of a selection against its definition, asked of one activity at a time in plain Python."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
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
from tests.analyses.test_call_tree import backward_thread
from tests.graph import slow_tree
from tests.reach import JOBS, SHARED, graph_of, label
from tests.strategies import COMPUTE, MAIN, Json, annotation, arrow, jobs, kernel, launch, load, op, step

KINDS = [kind.label for kind in ActivityKind]
DEVICE_KINDS = {"computation", "communication", "memory", "device_other"}
GLOBS = ["aten::*", "*forward*", "*", "ampere_sgemm_128x64_nn", "Profiler?tep#[56]", "nothing"]
NAMES = ["aten::mm", "## forward ##", "ProfilerStep#5", COMPUTE, "cuda*", "aten::*"]
PLACES = ["under", "before", "after"]
Meets: TypeAlias = Callable[[DependencyGraph, int], bool]


def small() -> DependencyGraph:
    return load(
        {2: [step(4, 0, 50), annotation("region", 1, 20), launch(2, 1, 1), kernel(COMPUTE, 30, 5, 1), op("a", 40, 5)]}
    )


# criteria


def name_of(graph: DependencyGraph, row: int) -> str:
    return graph.names[graph.activities.name[row]]


def kind_of(graph: DependencyGraph, row: int) -> str:
    return ActivityKind(graph.activities.kind[row]).label


def is_between(graph: DependencyGraph, row: int, first: float, last: float) -> bool:
    start_us, end_us = ((int(graph.time[2 * row + side]) - graph.origin_ns) / 1000 for side in range(2))
    return first <= start_us and end_us <= last


def lies_inside(graph: DependencyGraph, row: int, glob: str) -> bool:
    return any(fnmatchcase(name_of(graph, above), glob) for above in slow_tree.ancestors(graph)[row])


def of_glob(glob: str) -> list[tuple[Criteria, Meets]]:
    return [
        ({"name": glob}, lambda g, i: fnmatchcase(name_of(g, i), glob)),
        ({"op": glob}, lambda g, i: lies_inside(g, i, glob)),
    ]


def of_pattern(pattern: str) -> tuple[Criteria, Meets]:
    return {"regex": pattern}, lambda g, i: re.search(pattern, name_of(g, i)) is not None


DEFINITIONS: list[tuple[Criteria, Meets]] = [
    *(pair for glob in (*GLOBS, "aten::mm", "ProfilerStep#*") for pair in of_glob(glob)),
    *(of_pattern(pattern) for pattern in ("^aten", "mm|add", "#+", "mm|Launch", "nothing")),
    ({"kind": "computation"}, lambda g, i: kind_of(g, i) == "computation"),
    ({"kind": ["op", "memory"]}, lambda g, i: kind_of(g, i) in {"op", "memory"}),
    ({"kind": "kernel"}, lambda g, i: kind_of(g, i) in {"computation", "communication"}),
    ({"kind": "device"}, lambda g, i: kind_of(g, i) in DEVICE_KINDS and bool(g.activities.on_device[i])),
    ({"kind": "host"}, lambda g, i: kind_of(g, i) in set(KINDS) - DEVICE_KINDS),
    ({"category": "cuda_*"}, lambda g, i: g.names[g.activities.category[i]].startswith("cuda_")),
    ({"category": "*runtime"}, lambda g, i: g.names[g.activities.category[i]].endswith("runtime")),
    ({"stream": 20}, lambda g, i: g.lanes[g.activities.lane[i]].stream == 20 and bool(g.activities.on_device[i])),
    ({"stream": [7, 20]}, lambda g, i: bool(g.activities.on_device[i]) and g.lane_of(i).stream in {7, 20}),
    ({"time": (5.0, 25.0)}, lambda g, i: is_between(g, i, 5.0, 25.0)),
    ({"min_us": 3}, lambda g, i: g.activities.duration[i] >= 3000),
    ({"max_us": 3}, lambda g, i: g.activities.duration[i] <= 3000),
    ({"min_us": 1, "max_us": 3}, lambda g, i: 1000 <= g.activities.duration[i] <= 3000),
    ({"depth": [0, 2]}, lambda g, i: len(slow_tree.ancestors(g)[i]) in {0, 2}),
    ({"kind": "device", "stream": 7}, lambda g, i: bool(g.activities.on_device[i]) and g.lane_of(i).stream == 7),
    (
        {"op": "aten::*", "kind": "computation"},
        lambda g, i: lies_inside(g, i, "aten::*") and kind_of(g, i)[:4] == "comp",
    ),
    ({}, lambda *_: True),
    ({"name": None, "rank": None}, lambda *_: True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("criteria", "meets"), DEFINITIONS, ids=[str(each) for each, _ in DEFINITIONS])
@given(job=jobs())
@settings(max_examples=10)
def test_a_criterion_is_its_definition(criteria: Criteria, meets: Meets, job: dict[int, list[Json]]) -> None:
    graph = load(job)
    expected = [meets(graph, row) for row in range(len(graph.activities))]
    assert mask_of(graph, criteria).tolist() == expected
    assert list(graph.select(**criteria)) == np.flatnonzero(expected).tolist()


@pytest.mark.slow
@given(jobs(), st.data())
@settings(max_examples=25)
def test_ranks_and_steps_are_those_of_the_activities(job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    acts = graph.activities
    ranks = data.draw(st.lists(st.sampled_from(graph.ranks)))
    assert mask_of(graph, {"rank": ranks}).tolist() == [rank in ranks for rank in acts.rank.tolist()]
    some = data.draw(st.lists(st.sampled_from(graph.steps))) if graph.steps else []
    assert mask_of(graph, {"step": some}).tolist() == [number in some for number in acts.step.tolist()]
    for position, number in enumerate(graph.steps):
        expected = (acts.step == number).tolist()
        assert mask_of(graph, {"step": number}).tolist() == expected
        assert mask_of(graph, {"step_index": position}).tolist() == expected
        assert mask_of(graph, {"step_index": position - len(graph.steps)}).tolist() == expected


def test_activities_are_chosen_by_number() -> None:
    graph = load([op("a", 0, 5), op("b", 10, 5), op("c", 20, 5)])
    assert np.flatnonzero(mask_of(graph, {"activity": [2, 0]})).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("text", "expected"), [("[memory]", [True, False]), ("[m]*", [False, True]), ("x", [False] * 2)]
)
def test_a_name_matches_as_it_is_written_and_as_a_glob(text: str, expected: list[bool]) -> None:
    assert named(("[memory]", "malloc"), text).tolist() == expected


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"knd": "op"}, r"'knd' is no criterion: choose from kind, .*; did you mean 'kind'"),
        ({"kind": "cooking"}, r"kind 'cooking': choose from annotation, boundary, .*kernel"),
        ({"kind": "comunication"}, "did you mean 'communication'"),
        ({"kind": ["op", "Op"]}, r"kind 'Op': choose from"),
        ({"kind": ["launch", None]}, "kind None: choose from"),
        ({"kind": 5, "op": None}, "kind 5: choose from"),
        ({"name": 5}, "give a name or a glob"),
        ({"regex": "("}, r"regex '\(' is no regular expression"),
        ({"regex": 3}, "regex 3 is no regular expression"),
        ({"rank": 7}, r"rank 7 is not in this graph; its ranks: 2"),
        ({"rank": 2.0}, "whole numbers"),
        ({"step": [4, 5]}, r"step 5 is not in this graph; its steps: 4"),
        ({"step": "4"}, "whole numbers"),
        ({"step_index": 2}, "step_index 2: this graph has 1 steps"),
        ({"time": 3}, r"time 3: give \(start_us, end_us\)"),
        ({"time": (1, 2, 3)}, "time .*: give"),
        ({"time": (2, 1)}, "the start is after the end"),
        *(({which: value}, f"{which} .*: give a number of µs") for which in ("min_us", "max_us")
          for value in ("x", "5", float("nan"), [1.0])),
        ({"depth": "deep"}, "whole numbers"),
        ({"activity": [0, 99]}, "activity 99: this graph has activities 0 to 5"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_refused_with_what_can(criteria: Any, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        small().select(**criteria)


def test_without_steps_an_error_says_so() -> None:
    graph = load([op("a", 0, 1)])
    refused: list[tuple[Criteria, str]] = [
        ({"step": 1}, "its steps: none"), ({"step_index": 0}, "this graph has 0 steps")
    ]  # fmt: skip
    for criteria, message in refused:
        with pytest.raises(SelectionError, match=message):
            graph.select(**criteria)


@pytest.mark.parametrize("position", ["x", 1.5, None, True])
@pytest.mark.parametrize("way", PLACES)
def test_a_position_that_is_no_whole_number_is_refused(way: str, position: Any) -> None:
    with pytest.raises(SelectionError, match="position"):
        getattr(small().select(), way)("a", position)


@pytest.mark.slow
@given(jobs(), st.floats(0, 60), st.floats(0, 60))
@settings(max_examples=25)
def test_a_time_range_holds_what_begins_and_ends_in_it(job: dict[int, list[Json]], a: float, b: float) -> None:
    graph, (first, last) = load(job), sorted((a, b))
    frame = graph.select().to_frame()
    inside = (frame["start_us"] >= first) & (frame["start_us"] + frame["duration_us"] <= last)
    assert list(graph.select(time=(first, last))) == frame.index[inside].tolist()
    long = frame["duration_us"].between(first, last)
    assert list(graph.select(min_us=first, max_us=last)) == frame.index[long].tolist()


# tables and texts


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
    assert small().select(op="region").to_frame()["name"].tolist() == ["cudaLaunchKernel", COMPUTE]


def test_a_frame_of_nothing_has_the_same_columns() -> None:
    some, none = small().select().to_frame(), small().select(name="nothing").to_frame()
    assert len(none) == 0
    assert none.dtypes.to_dict() == some.dtypes.to_dict()


def test_a_thread_has_no_stream() -> None:
    assert small().select(kind="op").to_frame()["stream"].tolist() == [-1]
    assert list(small().select(stream=MAIN)) == []


def test_a_selection_shows_how_much_it_holds_and_the_longest() -> None:
    graph = load([op("<b>long</b>", 0, 9), op("short", 10, 5)])
    assert repr(graph.select(name="short")) == "Selection(1 of 2 activities)"
    shown = graph.select(kind="op")._repr_html_()
    assert "Selection(2 of 2 activities)" in shown
    assert "&lt;b&gt;long&lt;/b&gt;" in shown
    assert "<b>long" not in shown
    assert "Selection(0 of 2" in graph.select(name="nothing")._repr_html_()


# sets


@pytest.mark.slow
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


def test_only_selections_of_one_graph_are_combined() -> None:
    first, second = (load([op("a", 0, 1)]) for _ in range(2))
    some: Any = first.select()
    for combine, other in ((operator.and_, 5), (operator.or_, [1]), (operator.sub, None)):
        with pytest.raises(TypeError, match="is no selection"):
            combine(some, other)
    with pytest.raises(SelectionError, match="two graphs"):
        _ = some & second.select()


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


@pytest.mark.slow
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


def test_a_stack_leads_over_threads_and_the_launch_to_the_kernel() -> None:
    graph = load(backward_thread())
    (work,) = graph.select(kind="kernel")
    names = ["ProfilerStep#552", "## backward ##", *(event["name"] for event in backward_thread()[2:])]
    assert graph.select(activity=work).ancestors().to_frame()["name"].tolist() == names[:-1]
    ops = graph.select(name="autograd::*")
    assert ops.descendants().to_frame()["name"].tolist() == names[3:]
    assert list(ops.leaves()) == list(graph.select(name="aten::mm").device_work()) == [work]


@pytest.mark.slow
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


@pytest.mark.slow
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


def trained(more: Sequence[Json] = ()) -> DependencyGraph:
    """Return a job of two layers, each with an operator forward and one, with a kernel, backward."""
    forward = [op("first", 1, 8), op("second", 11, 8)]
    backward = [op("SecondBackward0", 31, 8, AUTOGRAD), op("FirstBackward0", 51, 8, AUTOGRAD)]
    events = [
        annotation("head", 0, 10), annotation("tail", 10, 10), *forward,
        op(ENGINE + "SecondBackward0", 30, 10, AUTOGRAD), *backward[:1], launch(32, 4, 1, AUTOGRAD),
        kernel("second_grad", 40, 100, 1), op(ENGINE + "FirstBackward0", 50, 10, AUTOGRAD), *backward[1:],
        *arrow(1, forward[0], backward[1]), *arrow(2, forward[1], backward[0]), *more,
    ]  # fmt: skip
    return load(events)


def names_of(graph: DependencyGraph, rows: np.ndarray) -> set[str]:
    return {graph.names[name] for name in graph.activities.name[rows]}


def test_the_engine_and_all_inside_belong_to_it() -> None:
    graph = trained()
    forward = np.isin(graph.activities.name, [graph.names.index("tail"), graph.names.index("second")])
    rows = np.flatnonzero(backward_of(graph, forward))
    assert names_of(graph, rows) == {ENGINE + "SecondBackward0", "SecondBackward0", "cudaLaunchKernel", "second_grad"}


def test_the_sums_of_its_gradients_belong_to_it() -> None:
    """The engine runs a sum as soon as the operator before it has made the gradient."""
    sums = [op(f"{ENGINE}torch::autograd::AccumulateGrad", at, 4, AUTOGRAD) for at in (41, 46, 61)]
    graph = trained(sums)
    of_tail, of_head = (graph.select(backward_of=name, name="*AccumulateGrad").activities for name in ("tail", "head"))
    assert (len(of_tail), len(of_head)) == (2, 1)
    assert graph.activities.start[of_tail].max() < graph.activities.start[of_head].min()


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
