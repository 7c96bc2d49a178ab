from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from tests.strategies import COMPUTE, complete, kernel, launch, load, op, runtime, step
from tests.whatif.changes.simulated import recorded, small


def test_only_the_device_is_left() -> None:
    graph = load([
        op("a", 0, 10), launch(12, 3, 1), kernel(COMPUTE, 16, 5, 1), op("b", 20, 30), launch(55, 3, 2),
        kernel(COMPUTE, 59, 6, 2),
    ])  # fmt: skip
    assert hg.what_if(graph).infinite_host().run().makespan_ns == 12_000, "two kernels and a pause"


def test_a_sync_still_waits() -> None:
    job = [launch(0, 2, 1), kernel(COMPUTE, 5, 20, 1), runtime("cudaDeviceSynchronize", 3, 24), launch(30, 2, 2)]
    graph = load([*job, kernel(COMPUTE, 35, 5, 2)])
    predicted = hg.what_if(graph).infinite_host().run()
    assert predicted.makespan_ns == 26_000
    sync = graph.select(kind="sync").activities[0]
    assert predicted.time[2 * sync + 1] - graph.origin_ns == 20_000


def test_the_busiest_stream_bounds_what_is_left() -> None:
    graph, _ = recorded(small("host_bound"))
    outcome = hg.what_if(graph).infinite_host().run()
    acts = graph.activities
    work = acts.kind == ActivityKind.COMPUTATION
    assert outcome.makespan_ns >= np.bincount(acts.lane[work], weights=acts.duration[work]).max()
    assert outcome.speedup > 2


def test_waiting_for_data_stays() -> None:
    graph, _ = recorded(small("gpu_bound").model_copy(update={"loader_us": 50_000.0}))
    outcome = hg.what_if(graph).infinite_host().run()
    assert outcome.makespan_ns > 3 * 45_000_000


def test_a_collective_on_the_host_takes_its_time_also_without_its_peers() -> None:
    alone = load([
        step(0, 0, 5000), op("forward", 0, 1000), complete("user_annotation", "gloo:all_reduce", 1050, 2000, tid=77),
        op("optimize", 3100, 500),
    ])  # fmt: skip
    transfer = alone.select(kind="host_communication").activities[0]
    predicted = hg.what_if(alone).infinite_host().run()
    assert predicted.time[2 * transfer + 1] - predicted.time[2 * transfer] == 2_000_000
    assert predicted.makespan_ns >= 2_000_000
