"""Loops in which a thread asks again and again whether device work is over."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import htagraph as hg
from htagraph import ActivityKind, DependencyGraph, EdgeKind
from htagraph.core.arrays import inverse_of
from htagraph.core.naming import DEFAULT_NAMING, names_like
from htagraph.graph.evidence import device_waits
from htagraph.graph.evidence.device_waits import implicit_syncs
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.host_time import longest_blocking
from htagraph.queries.path_segments import bound_of
from tests.strategies import COMPUTE, Json, complete, kernel, launch, load, op, runtime
from tests.waiting import by_hand


def called(name: str, duration: float, at: float = 10) -> list[Json]:
    """A call at `at`, while a kernel of another stream runs from 5 to 5005 µs after a launch at 0."""
    return [launch(0, 2, 1), kernel("k", 5, 5000, 1, stream=20), runtime(name, at, duration, 9)]


def confidence(events: list[Json]) -> list[int]:
    return implicit_syncs(by_hand(events).calls)[3].tolist()


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaFree", True), ("hipFree", True), ("cudaFreeHost", True), ("hipHostFree", True), ("cuMemFree_v2", True),
        ("cudaDeviceReset", True), ("cudaFreeAsync", False), ("cudaMalloc", False), ("cudaMallocAsync", False),
    ],
)  # fmt: skip
def test_calls_that_free_what_the_device_may_use_are_documented_to_wait(name: str, *, waits: bool) -> None:
    assert names_like(DEFAULT_NAMING.implicit_sync, (name,), [0]).tolist() == [waits]  # type: ignore[arg-type]


def test_a_documented_call_waits_for_the_work_of_every_stream_and_then_works_itself() -> None:
    _, _, own, percent = implicit_syncs(by_hand(called("cudaFree", 6000)).calls)
    assert (own.tolist(), percent.tolist()) == ([1_005_000], [95])


def test_a_documented_call_with_nothing_pending_may_wait_another_time() -> None:
    _, _, own, percent = implicit_syncs(by_hand(called("cudaFree", 300, at=5100)).calls)
    assert (own.tolist(), percent.tolist()) == ([300_000], [80])


def test_a_documented_call_that_returned_before_the_work_ended_did_not_wait() -> None:
    assert confidence(called("cudaFree", 3)) == []


def test_an_allocation_that_returned_while_the_device_was_busy_did_not_wait() -> None:
    assert confidence(called("cudaMalloc", 3000)) == []


@pytest.mark.parametrize("name", ["cudaHostAlloc", "cudaFuncSetAttribute", "cuModuleLoadData", "cudaLaunchKernel"])
def test_any_long_call_that_returns_just_as_the_device_falls_idle_waited(name: str) -> None:
    assert confidence(called(name, 5003)) == [65], "one call shows a wait, and little of how often it waits"
    assert confidence(called(name, 5800)) == [], "0.8 ms after the end of the work: it was busy itself"
    assert confidence([*called(name, 5003), *called(name, 7000, 11)[2:], *called(name, 8000, 12)[2:]]) == [], (
        "one of three may end in time by chance"
    )


def test_without_the_work_a_call_that_waited_takes_what_it_does_itself() -> None:
    graph = load([*called("cudaFree", 6000), op("after", 6012, 5)])
    edges = graph.edges
    assert edges.lag[edges.kind == EdgeKind.HOST_SYNC].tolist() == [1_005_000]
    assert not graph.gap[2 * 2 + 1]
    assert hg.what_if(graph).scale(factor=0, kind="computation").run().saved_ns == 4_995_000
    assert hg.what_if(graph).scale(factor=0, name="cudaFree").run().saved_ns == 1_005_000, "and no more than that"


LENGTH = 600
"""µs from the launch of the awaited work to its end, nearly."""


def steps(*, asks: str = "cudaEventQuery", until: int = LENGTH, pause: int = 20, sleeps: bool = False) -> list[Json]:
    """Return steps that record an event after a kernel, work beside it, ask for the event, and work on.

    Args:
        asks: the call that asks.
        until: how long the thread asks, µs.
        pause: from one question to the next, µs.
        sleeps: whether Python frames are recorded.
    """
    calls = itertools.count(1)
    events: list[Json] = []
    asked = [pause * number for number in range(1, until // pause + 2)]
    for number in range(4):
        at, call = 2000 * number, next(calls)
        events += [launch(at, 1, call), kernel("first", at + 5, LENGTH + 2 * number, call)]
        events += [runtime("cudaEventRecord", at + 3, 1, next(calls))]
        events += [launch(at + 5, 1, call := next(calls)), kernel(COMPUTE, at + 10, 100, call, stream=8)]
        events += [runtime(asks, at + after, 1, next(calls)) for after in asked]
        if sleeps:
            events += [complete("python_function", "sleep", at + after + 2, 17, 1) for after in asked[:-1]]
        events += [op("work", at + asked[-1] + 5, 300)]
    return events


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_loop_ends_with_the_work_however_long_that_takes(*, sleeps: bool) -> None:
    graph = load(steps(sleeps=sleeps))
    assert not hg.replay(graph).max_error_ns
    place = longest_blocking(graph)
    assert place is not None
    assert (place.name, place.count) == ("cudaEventQuery", 4)
    for factor, saved in ((0.5, 4 * 300), (2, -4 * 600)):
        outcome = hg.what_if(graph).scale(name="first", factor=factor).run()
        assert outcome.saved_ns / 1000 == pytest.approx(saved, abs=30), "questions come closer together, or later"
    assert not hg.what_if(graph).scale(name=COMPUTE, factor=0.5).run().saved_ns, "nobody asks for this work"
    without = hg.what_if(graph).remove_sync(name="cudaEventQuery").run()
    assert without.saved_ns / 1000 > 3 * 600, "the last step ends with its kernel"


@pytest.mark.parametrize(("asks", "pause", "late"), [("cudaStreamQuery", 20, 0), ("cudaEventQuery", 3, 9)])
def test_a_stream_may_be_asked_for_and_the_answer_may_come_late(asks: str, pause: int, late: int) -> None:
    graph = load(steps(asks=asks, pause=pause, until=LENGTH + late))
    assert hg.what_if(graph).scale(name="first", factor=0.5).run().saved_ns > 4 * 270_000


def test_questions_that_end_before_or_long_after_the_work_are_no_wait() -> None:
    for until in (100, 900):
        polled = by_hand(steps(until=until)).polled
        assert not len(polled.vertex), "an allocator asks, and goes on whatever the answer"
    few = [event for event in steps() if event["name"] != "cudaEventQuery" or event["ts"] % 2000 >= LENGTH - 20]
    assert not len(by_hand(few).polled.vertex), "two questions around an end may be chance"


def test_a_single_question_where_others_had_to_ask_again_would_have_waited() -> None:
    done = [event for event in steps() if event["name"] != "cudaEventQuery" or not 6000 < event["ts"] < 6610]
    assert by_hand(done).polled.over.sum() == 1


@pytest.mark.parametrize("places", [1, 3])
def test_what_is_as_long_as_the_job_is_looked_up_once_for_all_places(
    places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return inverse_of(*arguments)

    monkeypatch.setattr(device_waits, "inverse_of", counted)
    events = []
    for number in range(places):
        for event in steps():
            later = {"ts": event["ts"] + 20_000 * number}
            args = event.get("args", {})
            call = (
                {"args": {**args, "correlation": args["correlation"] + 1000 * number}} if "correlation" in args else {}
            )
            events.append({**event, **later, **call})
        events += [op(f"place {number}", 20_000 * number + 2000 * step, 1500) for step in range(4)]
    found = device_waits.polled(by_hand(events).calls)
    assert len(calls) == 1
    assert len(set(found.source.tolist())) == 4 * places


def test_a_loop_asks_for_one_of_so_many_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    job = by_hand(steps(asks="cudaStreamQuery"))
    assert len(device_waits.polled(job.calls).source)
    monkeypatch.setattr(device_waits, "LIMITS", replace(LIMITS, tried=0))
    assert not len(device_waits.polled(job.calls).source)


def synchronous(delays_us: Sequence[int]) -> DependencyGraph:
    """Return launches that return so long after the end of their own kernels, one after the other."""
    events: list[Json] = []
    at = 0
    for number, delay in enumerate(delays_us):
        takes = 100 + 17 * (number % 5)
        events += [op("aten::mm", at, takes + delay + 25), launch(at + 5, takes + delay + 10, number + 1)]
        events.append(kernel(COMPUTE, at + 12, takes, number + 1))
        at += takes + max(delay, 0) + 40
    return load(events)


def test_launches_that_return_after_their_own_work_wait_for_the_work() -> None:
    graph = synchronous([3] * 12)
    kernels = graph.activities.duration[graph.activities.kind == ActivityKind.COMPUTATION].sum()
    halved = hg.what_if(graph).scale(factor=0.5, kind="computation").run()
    assert halved.saved_ns == pytest.approx(kernels / 2, rel=0.01)
    assert not hg.replay(graph).max_error_ns


def test_launches_that_return_before_their_work_do_not() -> None:
    graph = synchronous([-80] * 12)
    assert not (graph.edges.kind == EdgeKind.HOST_SYNC).any()


def paused(
    *,
    wait: bool = True,
    spread: int = 900,
    lasts: int = 0,
    short: int = 40,
    inside: bool = False,
    behind: bool = False,
    late: int = 35,
    count: int = 8,
) -> list[Json]:
    """Return steps in which a thread pauses after a launch, for 5 ms or so: another stream's kernels run on.

    Args:
        wait: whether the pause ends 30 µs after the first kernel; else it lasts as long as `lasts` says.
        spread: by how much the first kernel's duration differs between steps, µs.
        lasts: how long a pause of own work lasts, µs; 0 for times that have nothing to do with the kernel.
        short: the duration of each of the kernels that keep the device busy, µs.
        inside: whether the pause is in an operator.
        behind: whether these kernels are on the same stream, behind the first one.
        late: how long after the first kernel a pause ends, µs; negative if the host polls memory that it writes.
        count: steps.
    """
    calls, events = itertools.count(1), []
    for number in range(count):
        at, work = 20_000 * number, 4000 + number * 37 % 11 * spread // 10
        pause = lasts or 4300 + number * 53 % 7 * spread // 7
        pause = work + late + number % 3 * 4 if wait else pause
        events += [launch(at, 2, call := next(calls)), kernel("awaited", at + 5, work, call)]
        for beside in range(8000 // short):
            events += [launch(at + 3, 0, call := next(calls))]
            start = at + 10 + (short + 1) * beside + behind * work
            events += [kernel("beside", start, short, call, stream=7 if behind else 8)]
        events += [op("holds", at + 4, pause + 200)] if inside else []
        events += [op("goes on", at + pause, 100), op("works", at + pause + 300, 9000)]
    return events


@pytest.mark.parametrize(("inside", "behind"), [(False, False), (True, False), (False, True)])
def test_a_pause_that_ends_with_the_same_work_each_time_waits_for_it(*, inside: bool, behind: bool) -> None:
    graph = load(paused(inside=inside, behind=behind))
    assert not hg.replay(graph).max_error_ns
    shorter = hg.what_if(graph).scale(name="awaited", factor=0.5).run()
    assert shorter.saved_ns == pytest.approx(8 * 2_200_000, rel=0.1)
    assert not hg.what_if(graph).scale(name="beside", factor=0.5).run().saved_ns, "its ends are near, too, by chance"
    place = longest_blocking(graph)
    assert place is not None
    assert (place.name, place.count) == ("holds" if inside else "goes on", 8)
    assert place.blocked_ns == pytest.approx(8 * 4_400_000, rel=0.1)


@pytest.mark.parametrize("late", [-70, -40, -20, 5, 60])
def test_a_host_that_polls_memory_goes_on_shortly_before_or_after_the_kernel_that_writes_it(late: int) -> None:
    graph = load(paused(late=late, inside=True))
    assert not hg.replay(graph).max_error_ns
    shorter = hg.what_if(graph).scale(name="awaited", factor=0.5).run()
    assert shorter.saved_ns == pytest.approx(8 * 2_200_000, rel=0.1)
    assert not hg.what_if(graph).scale(name="beside", factor=0.5).run().saved_ns


@pytest.mark.parametrize("late", [-40, 35])
def test_a_pause_waits_for_the_work_whatever_the_program_does_next(late: int) -> None:
    events = paused(late=late)
    following = [event for event in events if event["name"] == "goes on"]
    for number, event in enumerate(following):
        event["name"] = f"goes on {number % 4}"
    shorter = hg.what_if(load(events)).scale(name="awaited", factor=0.5).run()
    assert shorter.saved_ns == pytest.approx(8 * 2_200_000, rel=0.1)


@pytest.mark.parametrize("late", [-1500, -600])
def test_a_host_that_goes_on_long_before_a_kernel_ends_does_not_wait_for_it(late: int) -> None:
    assert not len(by_hand(paused(late=late)).polled.vertex)


@pytest.mark.parametrize(
    "own", [{}, {"spread": 1, "lasts": 4035}, {"short": 20, "lasts": 4500}, {"count": 2, "wait": True}, {"short": 2000}]
)
def test_work_of_the_host_stays_work_of_the_host_whatever_ends_beside_it(own: dict[str, Any]) -> None:
    graph = load(paused(**{"wait": False} | own))
    assert not len(by_hand(paused(**{"wait": False} | own)).polled.vertex)
    assert not hg.what_if(graph).scale(factor=0.5, kind="computation").run().saved_ns


def exchanged(lasts: Sequence[int], *, lead: int, own: int = 0) -> list[Json]:
    """Return rounds in which a host launches a kernel, records nothing until it is nearly over, and launches another.

    Args:
        lasts: how long the kernel of each round runs, µs.
        lead: how long before the end of the kernel the host goes on, µs.
        own: how long the host pauses in place of that, µs, for work of its own; 0 for none.
    """
    events: list[Json] = []
    now, free = 10, 0
    for number, length in enumerate(lasts):
        begin = max(free, now + 8)
        events += [op("asks", now, 9), launch(now + 1, 4, 2 * number + 1)]
        events.append(kernel("exchange", begin, length, 2 * number + 1))
        now = now + 10 + own if own else begin + length - lead
        free = begin + length + 1
        events += [op("goes on", now, 9), launch(now + 1, 4, 2 * number + 2)]
        begin = max(free, now + 8)
        events.append(kernel(COMPUTE, begin, 120, 2 * number + 2))
        now += 10
        free = begin + 121
    return events


LASTS = (1830, 2900, 1200, 3300)


@pytest.mark.parametrize("lead", [5, 30, 65])
def test_few_pauses_beside_a_device_that_never_runs_dry_show_that_the_host_waits(lead: int) -> None:
    graph = load(exchanged(LASTS, lead=lead))
    halved = hg.what_if(graph).scale(kind="computation", factor=0.5).run()
    assert halved.saved_ns >= 0.95 * 1000 * (sum(LASTS) + 4 * 120) / 2
    assert bound_of(hg.critical_path(graph)).cause == "computation"


def test_few_pauses_of_a_host_that_runs_ahead_show_nothing() -> None:
    graph = load(exchanged(LASTS, lead=0, own=700))
    assert not (graph.edges.kind == EdgeKind.HOST_SYNC).any()
