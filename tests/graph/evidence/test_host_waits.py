from __future__ import annotations

import itertools

import pytest

import htagraph as hg
from htagraph import EdgeKind
from tests.oracles import edges_by_name
from tests.strategies import OTHER, Json, annotation, complete, load, op, step

GLOO, CALL = "gloo:all_reduce", "c10d::allreduce_"


def waits(events: list[Json]) -> list[tuple[str, int, int]]:
    """Return (vertex after the wait, its time in µs, confidence) of each edge from the end of a collective."""
    graph = load(events)
    edges, acts = graph.edges, graph.activities
    rows = [i for i in range(len(edges)) if graph.names[acts.name[edges.source[i] // 2]] == GLOO]
    rows = [i for i in rows if edges.kind[i] == EdgeKind.THREAD and edges.source[i] % 2]
    first = graph.time.min()
    return sorted(
        (
            f"{graph.names[acts.name[v // 2]]}.{('start', 'end')[v % 2]}",
            int(graph.time[v] - first) // 1000,
            int(edges.confidence[i]),
        )
        for i, v in ((i, int(edges.target[i])) for i in rows)
    )


def overlapped(number: int, begin: int, takes: int, compute: int) -> list[Json]:
    """Return a step that enqueues a collective, computes beside it, does other work, waits and goes on."""
    at = begin + 20 + compute
    resumes = max(at + 60, begin + 15 + takes + 10)
    return [
        step(number, begin, resumes + 50 - begin), op(CALL, begin + 5, 10), op("compute", begin + 20, compute),
        op("more", at + 5, 40), op("use", resumes, 20), annotation(GLOO, begin + 15, takes, OTHER),
    ]  # fmt: skip


def test_a_wait_that_blocked_in_one_step_is_in_all_steps() -> None:
    steps = [*overlapped(1, 0, 400, 200), *overlapped(2, 1000, 100, 200), *overlapped(3, 2000, 100, 200)]
    assert waits(steps) == [("use.start", 425, 80), ("use.start", 1280, 75), ("use.start", 2280, 75)]


def test_a_wait_that_never_blocked_is_at_the_first_place_possible_in_every_step() -> None:
    steps = [*overlapped(1, 0, 100, 200), *overlapped(2, 1000, 100, 200), *overlapped(3, 2000, 230, 200)]
    assert [name for name, _, _ in waits(steps)] == ["use.start"] * 3, "in step 3 `more` starts before it ends"
    assert {sure for _, _, sure in waits(steps)} == {55}


def early(number: int, begin: int, shortfall: int, *, frame: bool = False) -> list[Json]:
    """Return a step that waits for a collective and goes on some µs before the record of the collective ends.

    With a frame, the wait is inside a function of Python.
    """
    resumes = begin + 50_015 - shortfall
    inside = [complete("python_function", "run_backward", begin + 16, 49_990 - shortfall)] if frame else []
    return [
        *inside, step(number, begin, 60_000), op(CALL, begin + 5, 10), op("use", resumes, 20),
        annotation(GLOO, begin + 15, 50_000, OTHER),
    ]  # fmt: skip


@pytest.mark.parametrize("frame", [False, True])
def test_a_thread_may_go_on_before_the_record_of_the_collective_ends(*, frame: bool) -> None:
    """gloo wakes the caller first; where cores are few, gloo's thread writes its record a slice later."""
    steps = (early(i + 1, 100_000 * i, by, frame=frame) for i, by in enumerate((3000, -20, 2500)))
    graph = load(list(itertools.chain(*steps)))
    lags = graph.edges.lag[(graph.edges.kind == EdgeKind.THREAD) & (graph.edges.source % 2 == 1)]
    assert sorted(lags[lags < 0].tolist()) == [-3_000_000 - 9_000 * frame, -2_500_000 - 9_000 * frame]
    assert not hg.replay(graph).max_error_ns
    assert hg.what_if(graph).scale(factor=0.5, name=GLOO).run().saved_ns == pytest.approx(75e6, rel=0.02)


def test_a_thread_that_goes_on_a_slice_too_soon_did_not_wait() -> None:
    steps = [*early(1, 0, 9000), *early(2, 100_000, 8000), *early(3, 200_000, 9500)]
    assert "use.start" not in [name for name, _, _ in waits(steps)]


def test_a_record_may_end_late_by_several_slices_where_the_pauses_follow_the_ends_of_records() -> None:
    takes, late = (30, 70, 45, 100, 150, 35), (2, 9, 4, 11, 40, 1)  # ms
    ends, follows = (28, 29, 38, 29, 37, 28), [a - b for a, b in zip(takes, late, strict=True)]
    exact = [28, 29, 33, 29, 32, 28]  # most end with the record, and two a slice and more before it
    for pauses, of, waited in ((follows, takes, 6), ([27, 40, 40, 60, 80, 34], takes, 0), (exact, ends, 6)):
        events = []
        for i, (paused, lasts) in enumerate(zip(pauses, of, strict=True)):
            begin = 300_000 * i
            resumes = begin + 15 + 1000 * paused
            events += [step(i + 1, begin, 200_000), op(CALL, begin + 5, 10), op("use", resumes, 20)]
            events.append(annotation(GLOO, begin + 15, 1000 * lasts, OTHER))
        assert [name for name, _, _ in waits(events)].count("use.start") == waited


def test_a_slower_network_is_waited_for_where_it_was_over_in_time() -> None:
    graph = load([*overlapped(1, 0, 400, 200), *overlapped(2, 1000, 100, 200)])
    slower = hg.what_if(graph).scale(factor=10, name=GLOO, step=2).run()
    last_operator_ended = 1000 + 20 + 200 + 5 + 40
    assert slower.makespan_ns - (1330 * 1000) == (1015 + 10 * 100 - last_operator_ended) * 1000


def test_buckets_of_backward_are_waited_for_at_its_end() -> None:
    frame = "autograd::engine::evaluate_function: A"
    events = [
        op(frame, 0, 100), op(CALL, 50, 10), op(frame, 105, 100), op(CALL, 150, 10), op(frame, 210, 100),
        op("optimizer", 330, 50), annotation(GLOO, 55, 70, OTHER), annotation(GLOO, 155, 70, OTHER),
    ]  # fmt: skip
    assert waits(events) == [("optimizer.start", 330, 65), ("optimizer.start", 330, 65)]


def test_collectives_enqueued_at_once_are_waited_for_at_once() -> None:
    calls = [op(CALL, 0, 10), op(CALL, 20, 10), op(CALL, 40, 10), op("next", 300, 50)]
    works = [annotation(GLOO, 5, 30, OTHER), annotation(GLOO, 25, 50, OTHER + 1), annotation(GLOO, 45, 245, OTHER)]
    assert [(name, at) for name, at, _ in waits(calls + works)] == [("next.start", 300)] * 3


@pytest.mark.parametrize("takes", [50, 300])
def test_a_python_frame_that_waits_names_the_place(takes: int) -> None:
    frame = "<built-in method wait of PyCapsule object at 0x7f0000000001>"
    until = max(200, 10 + takes + 5)
    events = [
        op(CALL, 0, 10), op("compute", 15, 100), op("more", 120, 30),
        complete("python_function", frame, 180, until - 180), op("use", until + 20, 20),
        annotation(GLOO, 10, takes, OTHER),
    ]  # fmt: skip
    assert [(name, at) for name, at, _ in waits(events)] == [(f"{frame}.end", until)]


def test_an_operator_that_waits_is_one_place_more() -> None:
    wait = "_c10d_functional::wait_tensor"
    events = [op(CALL, 0, 10), op("compute", 15, 100), op(wait, 120, 100), annotation(GLOO, 10, 205, OTHER)]
    assert waits(events) == [(f"{wait}.end", 220, 80)]


def test_on_the_engines_thread_the_caller_waits_for_what_the_worker_enqueued() -> None:
    frame = "autograd::engine::evaluate_function: A"
    events = [
        op("forward", 0, 50), op("loss", 55, 20), op(frame, 100, 50, OTHER), op(CALL, 120, 10, OTHER),
        op(frame, 155, 50, OTHER), op("optimizer", 420, 50), annotation(GLOO, 125, 280, OTHER + 1),
    ]  # fmt: skip
    assert waits(events) == [("optimizer.start", 420, 80)]


def test_a_collective_whose_call_was_not_recorded_is_left_alone() -> None:
    events = [annotation(GLOO, 0, 30, OTHER), op("x", 10, 50), op(CALL, 70, 10), annotation(GLOO, 75, 30, OTHER)]
    begun = [edge for edge in edges_by_name(load([*events, op("y", 120, 5)]), EdgeKind.THREAD) if CALL in edge[0]]
    assert begun == [(f"{CALL}.start", f"{GLOO}.start", 0)]


def test_a_hook_of_backward_may_wait_inside_the_operator_that_calls_it() -> None:
    frame, hook = "autograd::engine::evaluate_function: A", "RegisterPostBackward"
    events: list[Json] = []
    for number in range(3):
        begin = 1000 * number
        events += [
            step(number, begin, 900), op("forward", begin + 5, 100), op(frame, begin + 110, 600),
            op(hook, begin + 115, 590), op("c10d::_reduce_scatter_base_", begin + 120, 10),
            annotation(GLOO, begin + 128, 400, OTHER), op("aten::chunk", begin + 540, 20),
            op("optimizer", begin + 750, 50),
        ]  # fmt: skip
    assert [name for name, _, _ in waits(events)] == ["aten::chunk.start"] * 3
    slower = hg.what_if(load(events)).scale(factor=2, name=GLOO, step=2).run()
    assert slower.makespan_ns == (2900 + 400) * 1000
