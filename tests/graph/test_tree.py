"""The one tree: its definition, asked slowly; its order; and its laws on every trace in reach."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, of_kinds
from htagraph.graph.tree import asked_at, asked_by, innermost_around, inside
from htagraph.queries.attribution import annotation_of, operator_of
from htagraph.queries.change_scope import activities_of
from htagraph.queries.weights import initial
from tests.graph import slow_tree
from tests.reach import DATA, JOBS, graph_of, label
from tests.strategies import COMPUTE, OTHER, Json, annotation, complete, jobs, kernel, launch, load, op, step

DEVICE_WORK = ["computation", "communication", "memory"]
every_job = pytest.mark.parametrize("path", JOBS, ids=label)


@given(jobs())
@settings(max_examples=20)
def test_the_tree_is_its_definition(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    tree, ways = graph.tree, slow_tree.ancestors(graph)
    assert tree.parent.tolist() == slow_tree.parents(graph)
    assert tree.depth.tolist() == list(map(len, ways))


@given(jobs(), st.data())
@settings(max_examples=20)
def test_inside_around_nearest_and_outermost_are_walks_up(job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    count, ways = len(graph.activities), slow_tree.ancestors(graph)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    inside = [bool(chosen[way].any()) for way in ways]
    around = {each for row, way in enumerate(ways) if chosen[row] for each in way}
    nearest = [next((each for each in (row, *way) if chosen[each]), -1) for row, way in enumerate(ways)]
    assert graph.tree.inside(chosen).tolist() == inside
    assert np.flatnonzero(graph.tree.around(chosen)).tolist() == sorted(around)
    assert graph.tree.nearest(chosen, np.arange(count)).tolist() == nearest
    assert graph.tree.outermost(chosen).tolist() == [row for row in np.flatnonzero(chosen) if not inside[row]]


@every_job
def test_in_depth_first_order_what_lies_inside_is_a_slice(path: Any) -> None:
    tree = graph_of(path).tree
    count = len(tree.parent)
    assert np.array_equal(np.sort(tree.order), np.arange(count))
    assert np.array_equal(tree.order[tree.first], np.arange(count))
    below = tree.parent >= 0
    up = tree.parent[below]
    assert (tree.first[below] > tree.first[up]).all()
    assert (tree.stop[below] <= tree.stop[up]).all()
    size = np.bincount(up, minlength=count)
    rows = np.flatnonzero(size == 0)
    assert (tree.stop[rows] == tree.first[rows] + 1).all()
    start = graph_of(path).activities.start[tree.order]
    sibling = tree.parent[tree.order]
    by_family = np.lexsort((np.arange(count), sibling))  # stable: siblings in the tree's order
    same = (sibling[by_family][1:] == sibling[by_family][:-1]) & (sibling[by_family][1:] >= 0)
    assert (np.diff(start[by_family])[same] >= 0).all()


def _names(graph: DependencyGraph) -> list[str]:
    """Return up to 12 names, of what encloses most and of a few others."""
    acts = graph.activities
    parents = graph.tree.parent[graph.tree.parent >= 0]
    most = np.argsort(-np.bincount(acts.name[parents], minlength=len(graph.names)))[:8]
    return [graph.names[name] for name in [*most.tolist(), *np.unique(acts.name)[:4].tolist()]]


def _glob(name: str) -> str:
    return glob.escape(name)


def related_to(graph: DependencyGraph, operators: hg.Selection) -> set[int]:
    """Return operators, and whatever any relation puts inside: the tree, a thread's own nesting, or what asked."""
    acts, rows = graph.activities, np.arange(len(graph.activities))
    asking = asked_at(graph, rows)
    relations: list[Any] = [graph.tree.parent, acts.parent, np.where(asking >= 0, graph.edges.source[asking] >> 1, -1)]
    inside_of: dict[int, list[int]] = {}
    for above in relations:
        for row in np.flatnonzero(above >= 0).tolist():
            inside_of.setdefault(int(above[row]), []).append(row)
    reached, waiting = set(operators), list(operators)
    while waiting:
        new = [row for row in inside_of.get(waiting.pop(), []) if row not in reached]
        reached.update(new)
        waiting += new
    return reached


def check_inside(graph: DependencyGraph, glob_of_name: str) -> None:
    """Assert that an operator has its descendants in it, and nothing that no relation puts there."""
    operators = graph.select(name=glob_of_name)
    lies = graph.select(op=glob_of_name)
    assert len(operators.descendants() - lies) == 0
    assert set(lies) <= related_to(graph, operators)


@every_job
def test_what_lies_in_an_operator_is_related_to_it(path: Any) -> None:
    graph = graph_of(path)
    for name in _names(graph):
        check_inside(graph, _glob(name))
        operators = graph.select(name=_glob(name))
        outer = operators.activities[graph.tree.parent[operators.activities] < 0]
        assert not set(outer.tolist()) & set(operators.descendants())


@given(jobs())
@settings(max_examples=25)
def test_what_lies_in_an_operator_is_related_to_it_in_any_job(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for name in {graph.names[name] for name in graph.activities.name}:
        check_inside(graph, name)


@given(jobs())
@settings(max_examples=20)
def test_a_step_is_its_annotation_and_all_that_lies_inside_it_in_any_job(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for number in graph.steps:
        mark = graph.select(kind="step", step=number)
        assert list(graph.select(step=number) - graph.select(kind=["boundary", "join"])) == list(
            mark | mark.descendants()
        )


@every_job
def test_a_step_is_its_annotation_and_all_that_lies_inside_it(path: Any) -> None:
    graph = graph_of(path)
    for number in graph.steps:
        mark = graph.select(kind="step", step=number)
        whole = graph.select(step=number) - graph.select(kind=["boundary", "join"])  # the graph added these
        assert list(whole) == list(mark | mark.descendants())
        assert list(graph.select(op=f"ProfilerStep#{number}")) == list(mark.descendants())


@every_job
def test_device_time_is_the_same_figure_by_every_route(path: Any) -> None:
    graph = graph_of(path)
    acts = graph.activities
    calls = hg.call_tree(graph)
    rows = graph.select(kind=["annotation", "step"]).activities[:100]
    by_selection = [
        acts.duration[graph.select(activity=[row]).descendants().select(kind=DEVICE_WORK).activities].sum()
        for row in rows.tolist()
    ]
    assert np.allclose(calls.loc[rows, "kernel_us"].to_numpy() * 1000, by_selection)
    table = hg.operator_breakdown(graph)
    for row in table[table["kind"] == "op"].head(12).to_dict("records"):
        whole = (
            graph.select(kind="op", rank=row["rank"], name=_glob(row["name"])).device_work().select(kind=DEVICE_WORK)
        )
        assert row["device_total_us"] * 1000 == pytest.approx(acts.duration[whole.activities].sum(), abs=1)


@pytest.mark.parametrize("path", [DATA / "demo", DATA / "gloo_ddp"], ids=label)
@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_equal_extents_scaled_give_equal_outcomes(path: Any, factor: float) -> None:
    graph = graph_of(path)
    for number in graph.steps[:2]:
        name = f"ProfilerStep#{number}"
        by_step, by_name, by_op = (
            hg.what_if(graph).scale(factor=factor, **criteria).run()
            for criteria in ({"step": number}, {"name": name}, {"op": name})
        )
        assert by_step.makespan_ns == by_name.makespan_ns == by_op.makespan_ns
        assert np.array_equal(by_step.time, by_name.time)
        assert np.array_equal(by_step.time, by_op.time)


def test_on_the_demo_a_step_has_the_same_device_time_by_three_routes() -> None:
    graph = graph_of(DATA / "demo")
    acts = graph.activities
    mark = graph.select(kind="step", step=5, rank=0)
    routes = (graph.select(step=5, rank=0), graph.select(op="ProfilerStep#5", rank=0), mark.descendants())
    assert {int(acts.duration[each.select(kind="device").activities].sum()) // 1000 for each in routes} == {8673}


def test_each_kernel_of_the_demo_lies_in_an_annotation_as_its_tree_says() -> None:
    graph = graph_of(DATA / "demo")
    table = hg.annotated_kernels(graph)
    launched = graph.select(kind="annotation").descendants().select(kind="device")
    assert (table["annotation"] != "").sum() == len(table) >= len(launched)


@pytest.mark.parametrize("backward", ["autograd::engine::evaluate_function: MmBackward0", "MmBackward"])
def test_backward_lies_in_what_called_the_engine_and_an_annotation_around_it(backward: str) -> None:
    graph = load([
        step(1, 0, 100), annotation("backward", 10, 60),
        complete("cpu_op", backward, 20, 30, tid=OTHER), launch(25, 2, 1, tid=OTHER), kernel(COMPUTE, 40, 5, 1),
    ])  # fmt: skip
    lying = graph.select(op="backward").to_frame()["name"].tolist()
    assert lying == [backward, "cudaLaunchKernel", COMPUTE]
    work = graph.select(kind="device").activities
    assert graph.names[graph.activities.name[operator_of(graph, work)[0]]] == backward
    assert graph.names[graph.activities.name[annotation_of(graph, work)[0]]] == "backward"


def test_what_a_helper_thread_begins_during_a_step_lies_in_the_step() -> None:
    graph = load([step(1, 0, 100), complete("cpu_op", "aten::copy_", 90, 30, tid=9), step(2, 200, 50)])
    assert graph.select(op="ProfilerStep#1").to_frame()["name"].tolist()[0] == "aten::copy_"


def test_a_frame_around_a_step_does_not_lie_in_it() -> None:
    frame = complete("python_function", "train.py(1): main", 0, 300)
    graph = load([frame, step(1, 0, 100), op("aten::mm", 5, 5)])
    assert "train.py(1): main" not in graph.select(op="ProfilerStep#1").to_frame()["name"].tolist()
    assert graph.select(op="train.py(1): main").to_frame()["name"].tolist()[:2] == ["ProfilerStep#1", "aten::mm"]


def test_a_frame_that_begins_in_a_step_and_outlasts_it_lies_in_the_step() -> None:
    around = complete("python_function", "train.py(1): main", 0, 300)
    crossing = complete("python_function", "torch/profiler/profiler.py(811): step", 95, 20)
    graph = load([around, step(1, 1, 99), crossing])
    names = graph.select(op="ProfilerStep#1", kind="python").to_frame()["name"].tolist()
    assert names == ["torch/profiler/profiler.py(811): step"]


def test_the_innermost_of_a_thread_that_contains_an_interval() -> None:
    graph = load([op("a", 0, 50), op("b", 10, 20)])
    acts = graph.activities
    start, end = np.array([12, 0, 60]) * 1000 + acts.origin, np.array([15, 49, 70]) * 1000 + acts.origin
    assert innermost_around(acts, np.array([0, 1]), start, end).tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    "events",
    [
        [step(1, 0, 300), step(2, 50, 50), op("a", 60, 5), op("b", 200, 5)],
        [step(1, 0, 100), step(1, 0, 100), op("a", 60, 5)],
        [step(1, 0, 100), complete("cpu_op", "ProfilerStep#1", 0, 100), op("a", 60, 5)],
    ],
    ids=["one step in another", "twice", "as annotation and as operator"],
)
def test_odd_steps_keep_the_times_of_the_job(events: list[Json]) -> None:
    graph = load(events)
    span = max(event["ts"] + event["dur"] for event in events) - min(event["ts"] for event in events)
    assert int(graph.time.max() - graph.time.min()) == 1000 * span
    assert (graph.activities.step[graph.activities.kind == hg.ActivityKind.STEP] > 0).all()
    assert graph.tree.parent.tolist() == slow_tree.parents(graph)


def test_steps_on_the_engines_thread_make_no_circle() -> None:
    graph = load([
        step(5, 0, 100), op("F", 140, 160),
        complete("cpu_op", "autograd::engine::evaluate_function: A", 120, 5, tid=OTHER),
        complete("user_annotation", "ProfilerStep#6", 140, 60, tid=OTHER),
    ])  # fmt: skip
    assert sorted(graph.tree.order.tolist()) == list(range(len(graph.activities)))
    assert graph.tree.parent.tolist() == slow_tree.parents(graph)


@given(jobs())
@settings(max_examples=20)
def test_one_step_loaded_alone_is_that_step(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for number in graph.steps[:2]:
        alone, whole = load(job, steps=[number]), graph.select(step=number) - graph.select(kind="join")
        names = sorted(alone.names[name] for name in alone.activities.name[: alone.activities.ranked])
        assert names == sorted(graph.names[name] for name in graph.activities.name[whole.activities])


def test_a_step_loaded_alone_has_what_began_in_it_and_what_lies_inside_that() -> None:
    events = [
        step(1, 0, 100), complete("python_function", "outer", 90, 50), complete("python_function", "child", 110, 5),
        step(2, 200, 99),
    ]  # fmt: skip
    whole = load(events).select(step=1, kind="python").to_frame()["name"].tolist()
    assert whole == load(events, steps=[1]).select(kind="python").to_frame()["name"].tolist() == ["outer", "child"]


NAMES = 30
SMALL_JOBS = [path for path in JOBS if path.is_dir() or path.stat().st_size < 30_000]


def names_of(graph: DependencyGraph) -> list[str]:
    """Return names of operators and regions, from the rarest to the most frequent, at most a few."""
    acts = graph.activities
    is_code = of_kinds(acts.kind, (*ANNOTATIONS, ActivityKind.OP))
    names, counts = np.unique(acts.name[is_code], return_counts=True)
    return [graph.names[name] for name in names[np.argsort(counts)]][:: max(1, len(names) // NAMES)]


@pytest.mark.parametrize("path", SMALL_JOBS, ids=label)
def test_a_change_of_op_is_about_what_select_finds_and_the_operator_itself(path: Path) -> None:
    graph = graph_of(path)
    for name in names_of(graph):
        exact = f"[{name[0]}]{name[1:]}" if name[0] in "*?" else name
        named = graph.select(name=exact)
        changed = np.flatnonzero(activities_of(initial(graph), {"op": exact}))
        assert changed.tolist() == (named | graph.select(op=exact)).activities.tolist(), name
        assert len(named.descendants() - graph.select(op=exact)) == 0, name
        assert graph.select(op=named).activities.tolist() == graph.select(op=exact).activities.tolist(), name


def test_communication_on_a_thread_of_its_own_is_inside_the_operator_that_asked_for_it() -> None:
    graph = graph_of(DATA / "gloo_ddp")
    reduces = graph.select(op="c10d::allreduce_", kind="host_communication")
    assert len(reduces) > 0
    asking = graph.edges.source[asked_at(graph, reduces.activities)] >> 1
    assert {graph.names[name] for name in graph.activities.name[asking]} == {"c10d::allreduce_"}
    calls = graph.select(name="c10d::allreduce_")._mask()
    assert np.flatnonzero(asked_by(graph, calls)).tolist() == reduces.activities.tolist()


def test_an_activity_is_not_inside_itself() -> None:
    graph = load([op("a", 0, 9), op("b", 1, 2)])
    assert inside(graph, np.array([True, False])).tolist() == [False, True]
    assert not inside(graph, np.array([False, False])).any()
