"""Which time is spent once: hand-made starts of every kind, and what looks like one but is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.start_up import KINDS
from tests.strategies import Json, annotation, complete, kernel, launch, load, op, runtime, step

MS = 1000
LAUNCH_US = 8


def launches(loads_us: Sequence[int], again: int = 3, at: int = 0, first: int = 1) -> list[Json]:
    """Return a kernel per load, launched once with it and then again without: the call takes so much longer."""
    events: list[Json] = []
    call = first
    for number in range(len(loads_us) * (1 + again)):
        took = LAUNCH_US + (loads_us[number] if number < len(loads_us) else 0)
        name = f"kernel_{number % len(loads_us)}"
        events += [op(f"aten::{name}", at, took + 4), launch(at + 2, took, call), kernel(name, at + took + 6, 3, call)]
        at += took + 20
        call += 1
    return events


def by_kind(graph: DependencyGraph, rank: int = 0) -> dict[str, float]:
    """Return the start-up of a rank by kind, µs."""
    rows = graph.start_up.of(graph.activities.rank[graph.start_up.activity] == rank)
    total: dict[str, float] = {}
    for kind, ns in zip(rows.kind.tolist(), rows.time.tolist(), strict=True):
        total[KINDS[kind]] = total.get(KINDS[kind], 0.0) + ns / 1000
    return total


def named(graph: DependencyGraph) -> list[str]:
    return [graph.names[name] for name in graph.activities.name[graph.start_up.activity].tolist()]


LOADS = st.lists(st.integers(2 * MS, 30 * MS), min_size=3, max_size=8)


@given(st.lists(LOADS, min_size=1, max_size=3), st.integers(1, 4))
def test_loads_of_modules_are_start_up_to_the_us_on_each_rank(loads: list[list[int]], again: int) -> None:
    graph = load({rank: launches(of_rank, again) for rank, of_rank in enumerate(loads)})
    for rank, of_rank in enumerate(loads):
        assert by_kind(graph, rank) == {"kernel": sum(of_rank)}


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(1, 4))
def test_steady_launches_are_none(jitter: list[int], again: int) -> None:
    assert by_kind(load(launches(jitter, again))) == {}


def test_ranks_are_judged_one_by_one() -> None:
    graph = load({0: launches([9 * MS] * 4), 1: launches([0] * 4, again=200)})
    assert by_kind(graph, 0) == {"kernel": 36 * MS}
    assert by_kind(graph, 1) == {}


def test_a_pause_that_hits_one_first_launch_of_many_calls_is_none() -> None:
    assert by_kind(load(launches([0, 7 * MS, 0], again=400))) == {}


def test_a_pause_that_hits_later_launches_is_none() -> None:
    events = launches([0, 0, 0], again=40)
    late = [each | {"ts": each["ts"] + 10_000} for each in launches([9 * MS], again=0, first=900)]
    assert by_kind(load([*events, *[each | {"name": each["name"].replace("0", "1")} for each in late]])) == {}


def test_processes_of_one_file_are_judged_one_by_one() -> None:
    """A worker of a data loader that loads the same kernels later loads them for itself."""
    loads = [9 * MS] * 4
    main = launches(loads)
    begin = max(each["ts"] for each in main) + MS
    worker = [
        each | {"pid": each["pid"] + 1 if isinstance(each["pid"], int) and each["cat"] != "kernel" else each["pid"]}
        for each in launches(loads, at=begin, first=500)
    ]
    assert by_kind(load(main)) == {"kernel": 36 * MS}
    assert by_kind(load([*main, *worker])) == {"kernel": 72 * MS}


def handle(**kwargs: int) -> list[Json]:
    """Return a first product that makes a handle (two frees) and loads its kernel, and a second product."""
    frees = [runtime("cudaFree", 10, 3 * MS), runtime("cudaFree", 4 * MS, 12 * MS), runtime("cudaMalloc", 17 * MS, 150)]
    first = [op("aten::addmm", 0, 30 * MS), *frees, launch(20 * MS, 7 * MS, 1), kernel("gemm", 27 * MS + 5, 3, 1)]
    second = [op("aten::addmm", 40 * MS, 100), launch(40 * MS + 10, 8, 2), kernel("gemm", 40 * MS + 30, 3, 2)]
    return [*first, *second, *launches([6 * MS], at=50 * MS, first=10, again=kwargs.get("again", 2))]


def test_handles_of_libraries_are_start_up_with_what_no_call_shows() -> None:
    graph = load(handle())
    own_us = 30 * MS - 3 * MS - 12 * MS - 150 - 7 * MS - (100 - 8)  # of the first product, beyond that of the second
    assert by_kind(graph) == {"kernel": 13 * MS - LAUNCH_US, "library": 15 * MS + own_us}
    assert named(graph).count("cudaFree") == 2


def test_on_a_rank_without_loads_a_short_call_in_a_first_operator_is_none() -> None:
    quiet = [event for event in handle() if event["cat"] == "cpu_op" or "Free" in event["name"]]
    assert by_kind(load([*quiet, *launches([0], again=300, at=100 * MS)])) == {}


def collectives(group: str, first_us: int, count: int = 5, at: int = 0) -> list[Json]:
    args: dict[str, Any] = {"Process Group Name": group, "Collective name": "allreduce"}
    durations = [first_us, *[20] * (count - 1)]
    events = []
    for duration in durations:
        events.append(op("record_param_comms", at, duration, **args))
        at += duration + 10
    return events


def test_the_first_collective_of_a_group_connects_it() -> None:
    both = [*collectives("0", 200 * MS), *collectives("7", 90 * MS, at=300 * MS)]
    assert by_kind(load({0: both, 1: both})) == {"group": 290 * MS - 40}
    assert by_kind(load(collectives("0", 40))) == {}
    late = {0: collectives("0", 200 * MS), 1: collectives("0", 30), 2: collectives("0", 30)}
    assert by_kind(load(late)) == {}, "no group connects on one of three ranks alone"


COMPILES = "compile_fx.<locals>.fw_compiler_base (dynamo_timed)"


@pytest.mark.parametrize("region", [COMPILES, "Torch-Compiled Region: 0/0"])
def test_code_compiled_in_one_step_is_start_up_and_in_every_step_is_none(region: str) -> None:
    def job(compiled: int) -> list[Json]:
        events: list[Json] = []
        for number in range(5):
            at = number * 60 * MS
            events.append(step(number, at, 59 * MS))
            if number < compiled:
                events += [annotation(region, at + 10, 40 * MS), op("aten::fake", at + 20, 30 * MS)]
            events.append(op("aten::mm", at + 50 * MS, 100))
        return events

    expected = {"compiling": 30 * MS} if region == COMPILES else {}
    assert by_kind(load(job(1))) == expected
    assert by_kind(load(job(5))) == {}


def test_kernels_are_tuned_in_frames_that_say_so() -> None:
    frame = complete("python_function", "triton/runtime/autotuner.py(171): _bench", 10, 50 * MS)
    runs = complete("python_function", "triton/runtime/autotuner.py(200): run", 70 * MS, 20)
    assert by_kind(load([frame, runs, op("aten::mm", 80 * MS, 100)])) == {"tuning": 50 * MS}


def test_rows_are_of_distinct_activities_and_no_longer_than_these() -> None:
    graph = load(handle())
    rows = graph.start_up
    assert len(set(rows.activity.tolist())) == len(rows)
    assert (rows.time <= rows.whole).all()
    assert (rows.time > 0).all()
    assert (rows.whole <= graph.activities.duration[rows.activity]).all()


def test_a_graph_without_calls_has_no_start_up() -> None:
    assert len(load([]).start_up) == len(load([op("aten::mm", 0, 900 * MS)]).start_up) == 0
