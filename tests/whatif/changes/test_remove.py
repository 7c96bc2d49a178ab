from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from tests.strategies import COMPUTE, COPY, kernel, launch, load, op, runtime, step
from tests.whatif.changes.gloo import job as gloo_job
from tests.whatif.changes.made import CALL_NS, LATENCY_NS, Piece, made, places
from tests.whatif.changes.simulated import recorded, small


def test_a_kernel_goes_with_its_launch() -> None:
    pieces = [Piece("gemm", 7, 3), Piece("other", 7, 3), Piece("gemm", 7, 3), Piece("last", 7, 30)]
    outcome = hg.what_if(made(pieces)).remove(name="gemm").run()
    without = made([pieces[1], pieces[3]])
    assert outcome.makespan_ns == without.time.max() - without.origin_ns == CALL_NS + LATENCY_NS + 30


def test_scaling_to_nothing_leaves_the_launch() -> None:
    pieces = [Piece("gemm", 7, 3), Piece("other", 7, 30)]
    graph = made(pieces)
    assert hg.what_if(graph).scale(factor=0, name="gemm").run().makespan_ns == CALL_NS + LATENCY_NS + 30
    assert hg.what_if(graph).remove(name="gemm").run().makespan_ns == LATENCY_NS + 30


def test_a_launch_of_other_work_stays() -> None:
    graph = load([launch(0, 4, 1), kernel(COMPUTE, 5, 5, 1), kernel(COPY, 10, 5, 1), op("a", 5, 5)])
    acts = hg.what_if(graph).remove(name=COMPUTE).run().graph.activities
    assert acts.duration[graph.select(kind="launch").activities].tolist() == [4_000]
    acts = hg.what_if(graph).remove(kind="device").run().graph.activities
    assert acts.duration[graph.select(kind="launch").activities].tolist() == [0]


def test_what_waited_for_it_still_waits_for_what_it_waited_for() -> None:
    pieces = [Piece("long", 8, 90), Piece("gemm", 7, 3, waits=(0,)), Piece("last", 7, 3)]
    graph = made(pieces)
    calls, works = places(pieces)
    outcome = hg.what_if(graph).remove(name="gemm").run()
    assert outcome.time[2 * works[2]] == LATENCY_NS + 90
    assert outcome.time[2 * calls[2]] == CALL_NS


def test_a_removed_collective_joins_nobody() -> None:
    graph, _ = recorded(small("communication_bound"))
    alone = hg.what_if(graph).remove(kind="communication")
    slow = alone.inject(rank=1, factor=5).run()
    first = np.repeat(graph.activities.rank == 0, 2)
    assert np.array_equal(slow.time[first], alone.run().time[first])
    assert slow.makespan_ns > alone.run().makespan_ns
    slow.graph.check()
    assert np.array_equal(slow.graph.time, slow.time)


@pytest.mark.parametrize("criteria", [{"op": "item"}, {"name": "cudaDeviceSynchronize"}])
def test_a_removed_call_does_not_wait_for_the_device(criteria: dict[str, str]) -> None:
    sync = [op("item", 10, 90), runtime("cudaDeviceSynchronize", 12, 85, 2)]
    graph = load([launch(0, 1, 1), kernel(COMPUTE, 5, 90, 1), *sync, op("python", 100, 50)])
    outcome = hg.what_if(graph).remove(**criteria).run()
    assert outcome.makespan_ns == 95_000  # the kernel, which runs beside the operator behind
    assert outcome.time[2 * graph.select(name="python").activities[0]] - graph.origin_ns < 20_000


def test_an_operator_goes_alone() -> None:
    graph = load([op("a", 0, 10), op("b", 6, 2), op("c", 12, 1)])
    assert hg.what_if(graph).remove(name="a").run().saved_ns == 8_000
    assert hg.what_if(graph).remove(op="a").run().saved_ns == 10_000


def test_an_operator_around_nothing_but_a_removed_one_goes_with_it() -> None:
    graph = load([op("node", 0, 20), op("inner", 5, 10), op("other", 20, 10), op("inner", 22, 2), op("more", 25, 1)])
    outcome = hg.what_if(graph).remove(name="inner").run()
    assert outcome.saved_ns == 20_000 + 2_000


def test_of_the_pauses_around_a_removed_operator_the_longest_stays() -> None:
    graph = load([step(1, 0, 100), op("a", 0, 10), op("b", 13, 7), op("b", 24, 6), op("c", 32, 68)])
    assert hg.what_if(graph).remove(name="b").run().saved_ns == 1000 * (3 + 7 + 6 + 2)


def test_communication_goes_with_the_operator_that_asked_for_it() -> None:
    graph = gloo_job()
    scenario = hg.what_if(graph)
    for outcome in (scenario.remove(name="c10d::*").run(), scenario.remove(op="c10d::*").run()):
        assert outcome.saved_ns >= 3 * 1_900_000, "three times 2 ms under way, with nothing beside"
    assert scenario.scale(factor=0.5, op="c10d::*").run().saved_ns == pytest.approx(3_000_000, rel=0.05)
