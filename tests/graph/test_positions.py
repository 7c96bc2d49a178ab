"""Choosing activities by time, position and tree: against brute force, and against HTA's own filters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph, Selection, SelectionError
from tests.graph import slow_tree
from tests.reach import JOBS, SHARED, graph_of, label
from tests.strategies import COMPUTE, OTHER, Json, annotation, jobs, kernel, launch, load, op, step

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
