from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, op, runtime, step
from tests.whatif.changes.simulated import recorded, small

SHORT = 2


def host_bound() -> DependencyGraph:
    """Two steps of three launches, 10 µs of operators and Python apart; the device is idle most of the time."""
    events = []
    for number, at in ((1, 0), (2, 100)):
        events += [step(number, at, 60), op("a", at + 5, 50)]
        for i in range(3):
            correlation = 10 * number + i
            events += [launch(at + 10 + 15 * i, 4, correlation)]
            events += [kernel(COMPUTE, at + 14 + 15 * i, SHORT, correlation)]
    return load(events)


def test_host_time_in_the_range_vanishes_and_work_hangs_on_the_first_launch() -> None:
    graph = host_bound()
    outcome = hg.what_if(graph).cuda_graph(step=1).run()
    predicted = outcome.graph
    kernels = graph.select(kind="computation", step=1).activities
    start = (predicted.time[2 * kernels] - graph.origin_ns).tolist()
    assert start == [4_000, 7_000, 10_000], "behind one another, with the pause that a device usually makes"
    mark = graph.select(kind="step", step=1).activities
    assert predicted.activities.duration[mark].tolist() == [4_000]  # its launch costs what the first one did
    assert outcome.saved_ns == 56_000


def test_other_steps_keep_their_pace() -> None:
    graph = host_bound()
    acts = hg.what_if(graph).cuda_graph(step=1).run().graph.activities
    later = graph.select(step=2).activities
    assert np.array_equal(acts.duration[later], graph.activities.duration[later])
    assert len(np.unique(graph.activities.start[later] - acts.start[later])) == 1


def test_a_range_of_time_is_on_the_common_clock() -> None:
    graph = host_bound()
    by_time = hg.what_if(graph).cuda_graph(start_us=0, end_us=60).run()
    assert np.array_equal(by_time.time, hg.what_if(graph).cuda_graph(step=1).run().time)
    part = hg.what_if(graph).cuda_graph(start_us=24, end_us=60).run()
    assert 0 < part.saved_ns < by_time.saved_ns


def test_a_sync_inside_is_refused_by_name() -> None:
    events = [step(1, 0, 60), launch(2, 4, 1), kernel(COMPUTE, 8, 20, 1), runtime("cudaStreamSynchronize", 10, 20)]
    graph = load([*events, launch(40, 4, 2), kernel(COMPUTE, 45, 5, 2)])
    with pytest.raises(SelectionError, match="cudaStreamSynchronize"):
        hg.what_if(graph).cuda_graph(step=1)
    assert hg.what_if(graph).cuda_graph(start_us=31, end_us=60).run().saved_ns >= 0
    assert hg.what_if(graph).remove_sync().cuda_graph(step=1).run().saved_ns > 0


@pytest.mark.slow
def test_a_blocking_copy_inside_is_refused() -> None:
    graph, _ = recorded(small("host_bound"))  # its steps end in a pageable .item()
    with pytest.raises(SelectionError, match="waits for the device"):
        hg.what_if(graph).cuda_graph(step=graph.steps[0])


def test_a_host_bound_step_becomes_as_long_as_its_work() -> None:
    job = small("host_bound").model_copy(update={"item": "none", "ranks": 1})
    graph, _ = recorded(job)
    outcome = hg.what_if(graph).cuda_graph(step=graph.steps).run()
    rows = np.flatnonzero(graph.activities.kind == ActivityKind.COMPUTATION)
    assert outcome.makespan_ns >= graph.activities.duration[rows].sum()
    assert outcome.speedup > 2


def test_only_the_ranks_asked_for() -> None:
    graph = graph_of(DATA / "demo")
    some = graph.time[2 * graph.select(kind="launch", rank=1).activities] - graph.origin_ns
    at = float(some[5]) / 1000
    scenario = hg.what_if(graph).cuda_graph(start_us=at, end_us=at + 30, rank=1)
    changed = np.flatnonzero(scenario.state.lag != graph.edges.lag)
    assert set(graph.activities.rank[graph.edges.source[changed] // 2].tolist()) == {1}
