from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from tests.strategies import load, op
from tests.whatif.changes.made import Piece, made
from tests.whatif.changes.simulated import recorded, small


def test_only_the_ranks_kernels_become_slower() -> None:
    pieces = [
        Piece(name, 7, 100, rank=rank, collective=c) for rank in (0, 1) for name, c in (("gemm", -1), ("nccl", 0))
    ]
    graph = made(pieces)
    changed = hg.what_if(graph).inject(rank=1, factor=2.5).state.lag - graph.edges.lag
    assert changed[changed != 0].tolist() == [150]


def test_everybody_waits_for_a_straggler() -> None:
    graph, _ = recorded(small("gpu_bound"))
    steps = hg.what_if(graph).inject(rank=1, factor=1.5).run().step_times()
    longer = (steps["predicted_end_us"] - steps["end_us"]).groupby(steps["rank"]).max()
    assert longer[0] == pytest.approx(longer[1], rel=0.02)
    assert longer[0] > 0


def test_one_step_of_the_host() -> None:
    graph, _ = recorded(small("host_bound"))
    state = hg.what_if(graph).inject(rank=0, factor=2, kind="host", step=graph.steps[1]).state
    changed = np.flatnonzero(state.lag != graph.edges.lag)
    assert set(graph.activities.step[graph.edges.activity[changed]].tolist()) == {graph.steps[1]}
    assert not graph.activities.on_device[graph.edges.activity[changed]].any()


def test_a_name_of_an_operator_is_its_self_time_and_a_note_says_so() -> None:
    graph = load({0: [op("outer", 0, 100), op("inner", 10, 60)], 1: [op("outer", 0, 100)]})
    outcome = hg.what_if(graph).inject(rank=0, factor=2, kind="host", name="outer").run()
    assert outcome.notes == (
        "scaled 0.04 ms self time of outer, 40 % of the time inside it; op='outer' scales everything inside",
    )
    assert not hg.what_if(graph).inject(rank=0, factor=2, kind="host").run().notes
