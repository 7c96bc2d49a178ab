"""Whose time is a data loader's, also where Python frames are recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.core.kinds import GapKind
from htagraph.graph.evidence.threads import HostThread, host_threads
from tests.oracles import edges_by_name
from tests.strategies import OTHER, Json, annotation, complete, load, op, runtime, step
from tests.threads_at_work import links
from tests.waiting import by_hand

BACKWARD = "autograd::engine::evaluate_function: A"


def threads(*events: Json) -> list[HostThread]:
    return host_threads(by_hand(list(events)), 0)


def test_the_busiest_thread_comes_first_and_a_thread_of_backward_operators_is_a_worker() -> None:
    first, second = threads(op(BACKWARD, 0, 10, OTHER), op("x", 20, 5), op("y", 30, 5))
    assert (len(first.vertices), first.is_worker) == (4, False)
    assert (len(second.vertices), second.is_worker) == (2, True)


def test_moments_lie_in_order_and_say_what_runs_behind_them() -> None:
    (thread,) = threads(op("outer", 0, 10), op("inner", 2, 3), complete("python_function", "frame", 12, 4))
    assert (thread.times - thread.times[0]).tolist() == [0, 2000, 5000, 10_000, 12_000, 16_000]
    assert thread.running.tolist() == [0, 1, 0, -1, 2, -1]
    assert thread.tops.tolist() == [0, 2]


def test_a_thread_and_its_worker_are_idle_where_both_are() -> None:
    caller, worker = threads(op("f", 0, 10), op("g", 100, 10), op(BACKWARD, 20, 30, OTHER))
    both = caller.with_worker(worker)
    assert np.all(np.diff(both.times) >= 0)
    assert (both.running >= 0).tolist() == [True, False, True, False, True, False]


ROOM = ("consume.end", "produce.start", 55)
"""A queue may be full, too."""
FIRST = ("produce.end", "consume.start", 65)
"""The first item, of which nobody knows whether it was waited for."""


def queue(produce: int, consume: Sequence[int], delay: int = 150) -> list[Json]:
    """Return a thread that makes items one after the other, and the main thread that takes each of them, µs."""
    events, free, made = [], 0, 0
    for number, takes in enumerate(consume):
        events.append(op("produce", made, produce, OTHER))
        made += produce + 50
        start = max(free, made - 50 + delay)
        events += [step(number, free, start + takes - free), op("consume", start, takes)]
        free = start + takes + 60
    return events


def test_a_consumer_that_waits_goes_on_when_the_producer_is_done() -> None:
    events = queue(produce=5000, consume=[2000] * 6)
    assert links(events) == [ROOM, FIRST, ("produce.end", "consume.start", 80)]
    graph = load(events)
    faster = hg.what_if(graph).scale(factor=0.5, name="produce").run()
    assert hg.replay(graph).max_error_ns == 0
    assert faster.speedup > 1.7, "both threads move"
    assert hg.what_if(graph).scale(factor=0.5, name="consume").run().speedup < 1.05, "the producer is slower"


def test_an_item_that_was_ready_is_found_by_counting() -> None:
    events = queue(produce=5000, consume=[2000, 2000, 2000, 2000, 13_000, 2000, 2000, 2000])
    assert links(events) == [ROOM, FIRST, ("produce.end", "consume.start", 80)]
    graph = load(events)
    edges, time = graph.edges, graph.time
    counted = (edges.kind == EdgeKind.THREAD) & (edges.confidence == 65)
    assert counted.sum() == 1 + 3, "the first one, and those that were ready after the long one"
    assert sorted(time[edges.target[counted]] - time[edges.source[counted]])[1] > 1_000_000


def test_a_producer_that_waits_for_room_goes_on_when_an_item_is_taken() -> None:
    events: list[Json] = []
    for number in range(6):
        begin = 5000 * number
        events += [op("consume", begin, 4800), op("produce", begin + 4900, 1000, OTHER)]
    assert ("consume.end", "produce.start", 80) in links(events)


def test_two_producers_that_wait_for_room_limit_a_faster_consumer() -> None:
    events: list[Json] = []
    for number in range(10):
        begin = 4000 * number
        events += [op("consume", begin, 3900), op("produce", begin + 50, 6000, OTHER + number % 2)]
    graph = load(events)
    assert ("produce.end", "consume.start", 55) in links(events)
    assert hg.replay(graph).max_error_ns == 0
    faster = hg.what_if(graph).scale(factor=0.25, name="consume").run()
    assert 1.2 < faster.speedup < 1.4, "one item per 3 ms, not per 1 ms"


def test_futures_are_waited_for_all_together() -> None:
    events: list[Json] = []
    for number in range(5):
        begin = 10_000 * number
        events += [op("train", begin, 2000), op("assemble", begin + 8200, 1000)]
        for task in range(4):
            events.append(op("decode", begin + 20 + 4000 * (task // 2), 3950 + task, OTHER + task % 2))
    assert ("decode.end", "assemble.start", 80) in links(events)
    assert ("decode.end", "assemble.start", 65) in links(events), "the futures that were done sooner"
    slower = hg.what_if(load(events)).scale(factor=0.5, name="train").run()
    assert slower.speedup < 1.01


def test_a_main_thread_that_runs_no_operator_ends_its_steps_with_the_work_of_others() -> None:
    """As an event loop does whose model runs in a thread: two clients take turns at it, and prepare meanwhile."""
    events: list[Json] = []
    for number in range(20):
        begin = 20_400 * number
        events += [op("model", begin, 20_000, OTHER), op("prepare", begin + 20_150, 18_000, OTHER + 1 + number % 2)]
        events += [step(number // 2, begin - 100, 40_800)] if number % 2 == 0 else []
    faster = hg.what_if(load(events)).scale(factor=0.5, name="model").run()
    assert faster.step_ns == pytest.approx(28_500_000, rel=0.05), "a client prepares, and is answered"


def test_a_region_of_a_thread_is_one_item_whatever_runs_in_it() -> None:
    """As a batch that a future decodes by a loop over images, each of several operators."""
    events: list[Json] = []
    for number in range(8):
        begin = 20_000 * number
        events += [step(number, begin, 20_000), op("train", begin + 12_400, 7_500)]
        events += [annotation("decode", begin + 100, 12_100, OTHER)]
        events += [op("resize", begin + 110 + 3_000 * i, 2_950, OTHER) for i in range(4)]
    links = [(a, b) for a, b, _ in edges_by_name(load(events), EdgeKind.THREAD)]
    assert links.count(("decode.end", "train.start")) >= 7


def test_threads_without_regularity_are_left_alone() -> None:
    events = [op("a", 1000 * i, 300) for i in range(10)]
    events += [op("b", 7000 * i % 9000 + 411 * i, 100, OTHER) for i in range(9)]
    assert links(events) == []
    assert edges_by_name(load([op("a", 0, 10), op("b", 5, 10, OTHER)]), EdgeKind.THREAD), "a guess where it began"


def test_a_thread_that_wakes_while_another_runs_operator_after_operator_was_not_woken_by_them() -> None:
    """As the thread of a data loader that pins memory does: a worker process wakes it, during forward as it happens."""
    events: list[Json] = []
    for number in range(6):
        begin = 60_000 * number
        events += [op("linear", begin + 1000 * i, 950) for i in range(10)]
        wakes = begin + 3000 + 210 * number
        events += [op("pin", wakes, 50, OTHER), op("pin", wakes + 2270, 50, OTHER), op("done", wakes + 4500, 9, OTHER)]
    assert not [link for link in links(events) if link[0].startswith("linear")]


WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
INLINE = WORKERS.replace("MultiProcessing", "SingleProcess")


def with_frames(loader: str) -> DependencyGraph:
    """Return the graph of a loop of four batches in Python frames: its annotation, and a frame that waits."""
    events = [complete("python_function", "train", 0, 500_000)]
    for at in range(0, 400_000, 100_000):
        events += [annotation(loader, at + 10, 40_000), complete("python_function", "poll", at + 20, 39_000)]
        events += [op("compute", at + 40_020, 59_000)]
    return load(events)


def test_the_time_of_an_annotation_in_a_frame_is_the_loaders() -> None:
    graph = with_frames(INLINE)
    assert sum(lag for *_, lag in edges_by_name(graph, EdgeKind.DATALOADER)) == 4 * 1000
    assert sum(lag for source, _, lag in edges_by_name(graph, EdgeKind.BODY) if source == "poll.start") == 4 * 39_000
    faster = hg.what_if(graph).scale(name="enumerate(DataLoader)*", factor=0.5).run()
    assert faster.saved_ns == 4 * 20_000_000


def test_frames_inside_a_loader_with_workers_wait_for_them() -> None:
    graph = with_frames(WORKERS)
    edges = graph.edges
    produced = edges.kind == EdgeKind.OUTSIDE
    assert edges.lag[produced].tolist() == [100_000_000] * 3
    assert not [each for each in edges_by_name(graph, EdgeKind.BODY) if each[0] == "poll.start"]
    assert hg.replay(graph).max_error_ns == 0
    faster = hg.what_if(graph).inject(rank=0, kind="loader", factor=0.5).run()
    assert 100 < faster.saved_ns / 1e6 < 4 * 40


def test_operators_inside_a_loader_and_frames_around_it_keep_their_time() -> None:
    events = [complete("python_function", "train", 0, 100), annotation(WORKERS, 10, 50), op("aten::stack", 20, 10)]
    job = by_hand(events)
    source, target, owner = job.slices
    lasts = job.moment(target) - job.moment(source)
    assert lasts[job.loaders >= 0].sum() == 40_000
    assert {job.names[name] for name in job.activities.name[owner[job.loaders < 0]]} == {"train", "aten::stack"}
    assert np.array_equal(by_hand([op("a", 0, 10)]).loaders, [-1])


def test_a_thread_that_wakes_while_workers_are_waited_for_waits_for_them_too() -> None:
    """A second thread pins each batch 0.2 ms before the main thread gets it, so that a free loader frees it as well."""
    events = []
    for at in range(0, 600_000, 100_000):
        events += [step(at // 100_000, at, 99_000), annotation(WORKERS, at + 10, 40_000), op("a", at + 40_100, 58_000)]
        events += [runtime("cudaHostAlloc", at + 39_800, 50, tid=9)]
    graph = load(events)
    pins = graph.select(name="cudaHostAlloc").activities
    assert set(graph.gap_kind[2 * pins].tolist()) == {GapKind.DATA_WAIT}
    free, half = (hg.what_if(graph).inject(rank=0, kind="loader", factor=factor).run() for factor in (0.0, 0.5))
    assert free.saved_ns > half.saved_ns > 100e6
    assert free.saved_ns / free.baseline_ns == pytest.approx(1 - free.mean_step_ns / free.baseline_mean_step_ns, 0.1)
    assert hg.replay(graph).max_error_ns == 0
