from __future__ import annotations

import htagraph as hg
from tests.strategies import COMPUTE, kernel, launch, load, op, runtime
from tests.whatif.changes.simulated import recorded, small


def test_the_call_costs_what_it_costs_when_nothing_is_pending() -> None:
    events = [runtime("cudaDeviceSynchronize", 0, 2), launch(5, 2, 1), kernel(COMPUTE, 10, 50, 1)]
    graph = load([*events, runtime("cudaDeviceSynchronize", 8, 54), op("after", 62, 5)])
    outcome = hg.what_if(graph).remove_sync().run()
    sync = graph.select(kind="sync").activities[1]
    assert outcome.time[2 * sync + 1] - outcome.time[2 * sync] == 2_000
    assert outcome.makespan_ns == 60_000


def test_only_the_calls_asked_for() -> None:
    graph, _ = recorded(small("gpu_bound"))
    one = hg.what_if(graph).remove_sync(rank=0, step=graph.steps[0]).run()
    assert one.saved_ns <= hg.what_if(graph).remove_sync().run().saved_ns
