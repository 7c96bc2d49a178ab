from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import ActivityKind, DependencyGraph
from tests.graph import slow_tree
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op, step

OPERATORS = (ActivityKind.OP, ActivityKind.HOST_COMMUNICATION)
REGIONS = (ActivityKind.ANNOTATION, ActivityKind.STEP)
NESTED = [
    step(1, 0, 100), op("aten::linear", 4, 30), op("aten::addmm", 5, 10), launch(6, 2, 1), launch(20, 2, 2),
    op("aten::linear", 50, 10), launch(52, 2, 3), launch(80, 2, 4),
    kernel(COMPUTE, 10, 5, 1), kernel(COMPUTE, 30, 6, 2), kernel(COMPUTE, 60, 7, 3), kernel("late", 85, 8, 4),
    kernel("lost", 99, 9, 99),
]  # fmt: skip


def test_an_operator_has_what_it_launched_itself_and_what_operators_inside_it_did() -> None:
    table = hg.operator_breakdown(load(NESTED)).set_index("name")
    columns = ["kind", "count", "host_us", "device_count", "device_us", "device_total_us"]
    assert table[columns].T.to_dict("list") == {
        "aten::linear": ["op", 2, 40, 2, 13, 18], "": ["", 0, 0, 1, 9, 9], "ProfilerStep#1": ["step", 1, 100, 1, 8, 26],
        "aten::addmm": ["op", 1, 10, 1, 5, 5],
    }  # fmt: skip
    assert table["host_self_us"].to_dict() == {"aten::linear": 30, "aten::addmm": 10, "ProfilerStep#1": 2, "": 0}
    assert table["share_percent"].sum() == pytest.approx(100)


def test_an_operator_inside_one_of_its_own_name_is_not_counted_twice() -> None:
    events = [op("aten::to", 0, 20), op("aten::to", 5, 10), launch(6, 1, 1), kernel(COMPUTE, 30, 5, 1)]
    (row,) = hg.operator_breakdown(load(events)).to_dict("records")
    assert (row["count"], row["host_us"], row["host_self_us"], row["device_total_us"]) == (2, 20, 20, 5)


def shaped(start: int, dims: list[list[int]], key: str = "Input Dims") -> Json:
    return op("aten::mm", start, 10) | {"args": {key: dims}}


def test_calls_with_other_shapes_are_told_apart(tmp_path: Path) -> None:
    events = [
        shaped(0, [[2, 3], [3, 4]]), launch(1, 1, 1), kernel(COMPUTE, 5, 5, 1),
        shaped(20, [[9, 9], [9, 9]]), launch(21, 1, 2), kernel(COMPUTE, 25, 7, 2),
        shaped(40, [[2, 3], [3, 4]]), launch(41, 1, 3), kernel(COMPUTE, 45, 5, 3),
        op("aten::mm", 60, 10), shaped(80, [[1]], "Input dims"),
    ]  # fmt: skip
    table = hg.operator_breakdown(load(events, tmp_path), by_shape=True)
    assert table[["input_dims", "count", "device_us"]].to_numpy().tolist() == [
        ["[[2, 3], [3, 4]]", 2, 10], ["[[9, 9], [9, 9]]", 1, 7], ["", 1, 0], ["[[1]]", 1, 0],
    ]  # fmt: skip


def test_the_columns_by_shape_are_there_on_an_empty_job() -> None:
    empty, full = hg.operator_breakdown(load([]), by_shape=True), hg.operator_breakdown(load(NESTED))
    assert list(empty.drop(columns="input_dims").dtypes) == list(full.dtypes)


def owners(graph: DependencyGraph, chain: list[int]) -> list[int]:
    """Return the operators of a chain upwards, the innermost first; of those above no operator, regions; slowly."""
    acts = graph.activities
    around: list[int] = []
    while chain:
        wanted = [[each for each in chain if acts.kind[each] in group] for group in (OPERATORS, REGIONS)]
        found = next((group[0] for group in wanted if group), -1)
        if found < 0:
            break
        around.append(found)
        chain = chain[chain.index(found) + 1 :]
    return around


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_times_are_those_of_a_slow_walk_upwards(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    acts, self_ns = graph.activities, graph.own_time
    own, total, host = Counter[object](), Counter[object](), Counter[object]()
    for activity, way in enumerate(slow_tree.ancestors(graph)):
        owned_by = owners(graph, [activity, *way])
        names = [(int(acts.kind[each]), graph.names[acts.name[each]]) for each in owned_by] or [(-1, "")]
        rank = int(acts.rank[activity])
        if acts.on_device[activity]:
            own[rank, names[0]] += int(acts.duration[activity])
            for name in set(names):
                total[rank, name] += int(acts.duration[activity])
        else:
            host[rank, names[0]] += int(self_ns[activity])
    for row in hg.operator_breakdown(graph).to_dict("records"):
        kind = ActivityKind[row["kind"].upper()] if row["kind"] else -1
        key = (row["rank"], (int(kind), row["name"]))
        ours = [round(1000 * row[column]) for column in ("device_us", "device_total_us", "host_self_us")]
        assert ours == [own.pop(key, 0), total.pop(key, 0), host.pop(key, 0)]
    assert not +own + +host


@pytest.mark.parametrize("by_shape", [False, True])
def test_by_job_an_operator_is_one_row_with_the_time_of_all_ranks(by_shape: bool) -> None:  # noqa: FBT001
    graph = graph_of(DATA / "demo")
    by_rank, by_job = (hg.operator_breakdown(graph, by=by, by_shape=by_shape) for by in ("rank", "job"))
    keys = ["kind", "name", "input_dims"] if by_shape else ["kind", "name"]
    assert not by_job.duplicated(keys).any()
    for column in ("count", "host_us", "host_self_us", "device_count", "device_us", "device_total_us"):
        sums = by_rank.groupby(keys)[column].sum()
        assert by_job.set_index(keys)[column].sort_index().tolist() == pytest.approx(sums.sort_index().tolist())
    assert by_job["device_us"].is_monotonic_decreasing
