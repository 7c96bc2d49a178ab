from __future__ import annotations

from dataclasses import replace

import numpy as np

import htagraph as hg
from tests.strategies import COMMUNICATE, Json, complete, kernel, launch, load, op
from tests.whatif.changes.made import Piece, made, places


def test_the_transfer_is_scaled_and_the_wait_is_not() -> None:
    pieces = [Piece("nccl", 7, 30, rank=0, collective=0), Piece("gemm", 7, 50, rank=1),
              Piece("nccl", 7, 30, rank=1, collective=0)]  # fmt: skip
    graph = made(pieces)
    _, works = places(pieces)
    predicted = hg.what_if(graph).scale_network(factor=0.5).run().graph
    arrival, gone = graph.time[2 * works[2]], predicted.time[2 * works[0] + 1]
    assert gone == arrival + 15
    assert np.array_equal(predicted.time[2 * np.array(works)], graph.time[2 * np.array(works)])


def test_without_partners_only_the_shortest_of_its_kind_is_transfer() -> None:
    graph = load([
        launch(0, 1, 1), kernel(COMMUNICATE, 10, 4, 1), launch(2, 1, 2), kernel(COMMUNICATE, 20, 10, 2),
    ])  # fmt: skip
    predicted = hg.what_if(graph).scale_network(factor=0.5).run().graph
    assert predicted.activities.duration[graph.select(name=COMMUNICATE).activities].tolist() == [2_000, 8_000]
    twice = hg.what_if(graph).scale_network(factor=0.5).scale_network(factor=4).run().graph
    assert twice.activities.duration[graph.select(name=COMMUNICATE).activities].tolist() == [8_000, 14_000]


def test_some_of_the_network() -> None:
    pieces = [Piece("nccl_a", 7, 30), Piece("nccl_b", 8, 300)]
    graph = made(pieces)
    assert hg.what_if(graph).scale_network(factor=0, name="nccl_a").run().saved_ns == 0
    assert hg.what_if(graph).scale_network(factor=2, name="nccl_a").state.lag.sum() == graph.edges.lag.sum() + 30


def test_what_takes_longer_than_is_usual_for_its_size_is_no_time_of_the_network() -> None:
    events = [event for at, takes in enumerate([900, 900, 2900, 900, 900]) for event in summed(at, takes)]
    recorded = load({0: events, 1: events})
    assert recorded.matches is not None
    sizes = np.full(len(recorded.matches.activity), 4000)
    graph = recorded.replace(matches=replace(recorded.matches, bytes=sizes))
    longer = hg.what_if(graph).scale_network(factor=2).state.lag - graph.edges.lag
    assert longer[longer != 0].tolist() == [750_000] * 10, "the third took as long as the others, and came late"
    longest = hg.what_if(recorded).scale_network(factor=2).state.lag.max()
    assert longest == 2 * 2_900_000 - 150_000, "of sizes nothing is known but what is usual besides bytes"


def summed(number: int, takes: int) -> list[Json]:
    """Return a sum by gloo that takes so many µs, and the operator that asks for it."""
    at = 5000 * number
    gloo = complete("user_annotation", "gloo:all_reduce", at + 50, takes, tid=77)
    return [op("c10d::allreduce_", at, 20), gloo, op("use", at + takes + 60, 100)]
