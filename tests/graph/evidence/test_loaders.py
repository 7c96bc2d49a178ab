"""Whose time is a data loader's, also where Python frames are recorded."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.core.kinds import GapKind
from tests.oracles import edges_by_name
from tests.strategies import annotation, complete, load, op, runtime, step
from tests.waiting import by_hand

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
    produced = (edges.kind == EdgeKind.DATALOADER) & (edges.lag > 40_000_000)
    assert edges.lag[produced].tolist() == [100_000_000] * 3
    assert not [each for each in edges_by_name(graph, EdgeKind.BODY) if each[0] == "poll.start"]
    assert hg.replay(graph).max_error_ns == 0
    faster = hg.what_if(graph).inject(rank=0, kind="loader", factor=0.5).run()
    assert 100 < faster.saved_ns / 1e6 < 4 * 40


def test_operators_inside_a_loader_and_frames_around_it_keep_their_time() -> None:
    events = [complete("python_function", "train", 0, 100), annotation(WORKERS, 10, 50), op("aten::stack", 20, 10)]
    job = by_hand(events)
    source, target, owner = job.slices()
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
