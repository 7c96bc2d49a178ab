from __future__ import annotations

from dataclasses import replace

import numpy as np

import htagraph as hg
from tests.strategies import COMMUNICATE, kernel, launch, load
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


def test_what_takes_longer_than_is_usual_for_its_class_is_no_time_of_the_network() -> None:
    durations = [30, 30, 90, 30, 30]
    pieces = [Piece("nccl", 7, ns, rank=rank, collective=at) for rank in (0, 1) for at, ns in enumerate(durations)]
    graph = made(pieces)
    assert graph.matches is not None
    alike = graph.replace(matches=replace(graph.matches, bytes=np.full(len(graph.matches.activity), 1 << 20)))
    transfers = [
        lag[alike.edges.activity == work].max()
        for lag in [hg.what_if(alike).scale_network(factor=2).state.lag]
        for work in places(pieces)[1][:5]
    ]
    assert transfers == [60, 60, 120, 60, 60]
