"""What start-up is on a path, and what a job is without it."""

from __future__ import annotations

import htagraph as hg
from htagraph.queries.start_up import first_calls, start_up_by_rank, without_start_up
from tests.strategies import Json, load, op, runtime

MS = 1000


def calls(name: str, *durations: int, begin: int = 0) -> list[Json]:
    """Return calls one after the other."""
    events, at = [], begin
    for each in durations:
        events.append(runtime(name, at, each))
        at += each
    return events


def named(graph: hg.DependencyGraph) -> list[tuple[str, int]]:
    found = first_calls(hg.critical_path(graph))
    return [(graph.names[graph.activities.name[call]], round(ns / 1000 / MS) * MS) for call, ns in found.items()]


def test_a_first_call_that_takes_a_thousand_times_as_long_is_start_up() -> None:
    assert named(load(calls("cudaFree", 700 * MS, 60, 70))) == [("cudaFree", 700 * MS)]
    assert named(load(calls("cudaFree", 60, 700 * MS, 70))) == []
    assert named(load(calls("cudaFree", 700 * MS, 50 * MS, 60 * MS))) == []
    assert named(load(calls("cudaFree", 3 * MS, 10, 10))) == []


def test_of_a_call_without_later_ones_only_the_very_first_tells() -> None:
    once = [*calls("cudaStreamCreate", 900 * MS), *calls("cudaMalloc", 800 * MS, begin=900 * MS)]
    assert named(load(once)) == [("cudaStreamCreate", 900 * MS)]


def test_inside_an_operator_the_first_call_loads_its_library_if_it_is_long() -> None:
    def job(first: int) -> hg.DependencyGraph:
        early = calls("cudaMalloc", 50, 50)
        late = calls("cudaMalloc", first, 60, 70, begin=200)
        return load([*early, op("aten::conv", 150, first + 500), *late])

    assert named(job(300 * MS)) == [("cudaMalloc", 300 * MS)]
    assert named(job(20 * MS)) == [], "as long as a pause of the host"


def test_a_pause_of_one_rank_is_no_start_up() -> None:
    long, short = calls("cudaFree", 700 * MS, 60, 70), calls("cudaFree", 50, 60, 70)
    assert named(load({0: long, 1: short, 2: short})) == []
    assert [name for name, _ in named(load({0: long, 1: long, 2: short}))] == ["cudaFree"]


def test_a_job_without_start_up_takes_its_usual_time() -> None:
    events = [*calls("cudaFree", 700 * MS, 60, 70), op("aten::mm", 701 * MS, 500)]
    graph = load(events)
    assert start_up_by_rank(graph) == {0: 700 * MS * 1000 - 65_000}
    state = without_start_up(graph, graph.start_up.activity)
    saved = hg.what_if(graph).run().makespan_ns - hg.what_if(graph).scale(factor=1.0, name="cudaFree").run().makespan_ns
    assert saved == 0
    edges = graph.edges.activity == graph.start_up.activity[0]
    assert state.lag[edges].sum() == 65_000
