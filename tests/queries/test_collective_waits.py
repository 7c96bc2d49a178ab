from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.collective_waits import bus_factor, waits_of
from htagraph.simulate import REGIMES, Job, Simulated, simulate
from tests.host_jobs import host_job, transfer
from tests.reach import JOBS, SHARED, graph_of, label
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load, op

MADE = {
    "straggler": REGIMES["straggler"](),
    "pipeline": Job(ranks=3, steps=2, layers=3, parallelism="pipeline", microbatches=4, seed=4),
    "fsdp": Job(ranks=2, steps=2, layers=4, data_strategy="fsdp", seed=2),
    "three ways": Job(ranks=8, steps=2, layers=2, tp=2, pp=2, microbatches=2, seed=5),
    "exchange": Job(ranks=4, steps=2, layers=2, all_to_all=True, broadcast_buffers=True, seed=6),
}
MANY = ("megatron_tp8_a100", "torchrec_v100_equal", "torchrec_v100_leading_missing", "gloo4_cpu")
WHOLE = [*JOBS, *(SHARED / name for name in MANY if (SHARED / name).is_dir())]


@cache
def made(name: str) -> tuple[Simulated, DependencyGraph]:
    done = simulate(MADE[name])
    with tempfile.TemporaryDirectory() as folder:
        done.write(folder, level=1, truth=False)
        return done, hg.load(folder)


@pytest.mark.parametrize("path", WHOLE, ids=label)
def test_wait_transfer_and_excess_are_the_duration(path: Path) -> None:
    graph = graph_of(path)
    waits = waits_of(graph)
    duration = graph.activities.duration[waits.activity]
    own = graph.time[2 * waits.activity + 1] - graph.time[2 * waits.activity]
    assert np.array_equal(waits.beside + waits.wait + waits.pure + waits.excess, own)
    assert not graph.clocks or (abs(own - duration) <= duration // 1000 + 1).all()  # drift stretches by its ppm
    assert min(each.min(initial=0) for each in (waits.beside, waits.wait, waits.pure, waits.excess)) == 0
    assert len(np.unique(waits.activity)) == len(waits)


@pytest.mark.parametrize("name", MADE)
def test_waits_and_transfers_are_those_that_really_were(name: str) -> None:
    done, graph = made(name)
    waits = waits_of(graph)
    event = graph.activities.event[waits.activity]
    found = {
        key: (wait, transfer, int(graph.activities.rank[late]))
        for key, wait, transfer, late in zip(
            zip(waits.rank.tolist(), event.tolist(), strict=True), waits.wait.tolist(),
            waits.transfer.tolist(), waits.late.tolist(), strict=True,
        )
    }  # fmt: skip
    off, lasts, parts = 0, 0, 0
    for collective in done.truth.collectives:
        if collective.kind == "all_to_all":
            continue  # its truth, which messages were empty, is in no trace
        last = max(collective.members, key=lambda member: member.arrival_ns)
        for member in collective.members:
            wait, transfer, late = found[member.rank, member.event]
            assert wait + transfer == member.wait_ns + member.transfer_ns
            off += abs(wait - member.wait_ns) > 2_500  # clocks are known to the spread of ends
            parts += 1
            lasts += late == last.rank or member.wait_ns < 5_000 or collective.kind == "broadcast"
    assert off <= 0.02 * parts
    assert lasts >= 0.98 * parts


def test_a_collective_whose_partners_are_absent_has_no_wait() -> None:
    graph = load([
        launch(0, 1, 1), kernel(COMMUNICATE, 5, 30, 1), launch(40, 1, 2), kernel(COMMUNICATE, 45, 50, 2),
        launch(100, 1, 3), kernel(COMPUTE, 105, 5, 3),
    ])  # fmt: skip
    waits = waits_of(graph)
    assert waits.collective.tolist() == [-1, -1]
    assert waits.late.tolist() == [-1, -1]
    assert (waits.wait.tolist(), waits.pure.tolist()) == ([0, 0], [30_000, 30_000])
    assert waits.excess.tolist() == [0, 20_000]


@pytest.mark.parametrize(
    ("op", "size", "factor"),
    [("all_reduce", 2, 1.0), ("all_reduce", 8, 1.75), ("all_gather", 8, 0.875), ("reduce_scatter", 4, 0.75),
     ("all_to_all", 4, 0.75), ("broadcast", 4, 1.0), ("send_recv", 2, 1.0), ("all_reduce", 1, 1.0)],
)  # fmt: skip
def test_bus_factors_are_those_of_nccl_tests(op: str, size: int, factor: float) -> None:
    assert bus_factor(op, size) == factor


def test_a_receiver_waits_only_while_its_thread_does_nothing_else() -> None:
    """Rank 1 asks at 10 µs, works until 60, and waits until 120 for what rank 0 sends at 90."""
    graph = host_job({
        0: [op("long", 0, 85), *transfer("send", 1, 90, 91), op("next", 200, 5)],
        1: [*transfer("recv", 0, 10, 120), op("short", 20, 40), op("next", 200, 5)],
    })  # fmt: skip
    waits = waits_of(graph)
    row = int(np.argmax(waits.beside))
    parts = [int(each[row]) for each in (waits.beside, waits.wait, waits.transfer)]
    assert [round(each / 1000) for each in parts] == [50, 30, 30]
    assert waits.shows_transfer[row]
