"""Communication whose group was recorded on some of its ranks only."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.intervals import length, union
from htagraph.core.kinds import COMMUNICATION
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import bus_factor, lacks_members, ranks_not_read, waiting_devices
from htagraph.simulate import REGIMES, Job, Simulated, simulate
from tests.host_jobs import host_job, transfer
from tests.reach import DATA, JOBS, SHARED, graph_of, label
from tests.strategies import COMMUNICATE, COMPUTE, Json, annotation, kernel, launch, load, op

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


@pytest.mark.slow
@pytest.mark.parametrize("path", WHOLE, ids=label)
def test_wait_transfer_and_excess_are_the_duration(path: Path) -> None:
    graph = graph_of(path)
    waits = graph.waits
    duration = graph.activities.duration[waits.activity]
    own = graph.time[2 * waits.activity + 1] - graph.time[2 * waits.activity]
    assert np.array_equal(waits.beside + waits.wait + waits.pure + waits.excess, own)
    assert not graph.clocks or (abs(own - duration) <= duration // 1000 + 1).all()  # drift stretches by its ppm
    assert min(each.min(initial=0) for each in (waits.beside, waits.wait, waits.pure, waits.excess)) == 0
    assert len(np.unique(waits.activity)) == len(waits)


@pytest.mark.parametrize("name", MADE)
def test_waits_and_transfers_are_those_that_really_were(name: str) -> None:
    done, graph = made(name)
    waits = graph.waits
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
    waits = graph.waits
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
    waits = graph.waits
    row = int(np.argmax(waits.beside))
    parts = [int(each[row]) for each in (waits.beside, waits.wait, waits.transfer)]
    assert [round(each / 1000) for each in parts] == [50, 30, 30]
    assert waits.shows_transfer[row]


def job(ranks: list[int], group: list[int]) -> DependencyGraph:
    def rank(late: float) -> list[Json]:
        made: list[Json] = []
        for i in range(4):
            at = 100_000 * i
            made += [op("c10d::allreduce_", at, 5), annotation("gloo:all_reduce", at + 50 + late, 50_000 - late, 2)]
            made += [op("work", at + 56_000, 40_000)]
        return made

    return host_job({each: rank(3_000.0 * each) for each in ranks}, groups=[group])


def test_all_communication_of_a_group_with_an_absent_rank_may_wait_for_it() -> None:
    whole, part = job([0, 1], [0, 1]), job([0, 1], [0, 1, 2])
    assert (ranks_not_read(whole), ranks_not_read(part)) == ((), (2,))
    assert not lacks_members(whole).any()
    talks = np.isin(part.activities.kind, COMMUNICATION)
    assert np.array_equal(lacks_members(part), talks)


def test_a_faster_network_is_promised_no_gain_where_transfers_may_be_waits() -> None:
    outcomes = [hg.what_if(job([0, 1], group)).scale_network(factor=0.1).run() for group in ([0, 1], [0, 1, 2])]
    assert outcomes[0].speedup == outcomes[1].speedup > 1.3
    assert outcomes[0].low > 1.2
    assert 0.9 < outcomes[1].low <= 1  # no gain, less chance
    assert "waiting for ranks that were not recorded" in outcomes[1].interval_cause


def test_it_is_the_waiting_of_collectives_without_what_runs_beside_it() -> None:
    graph = graph_of(DATA / "demo")
    acts, waits, every = graph.activities, graph.waits, waiting_devices(graph)
    for rank in graph.ranks:
        rows = waits.rank == rank
        waited = {
            moment
            for start, lasts in zip(acts.start[waits.activity[rows]], waits.wait[rows], strict=True)
            for moment in range(int(start), int(start + lasts), 1000)
        }
        work = acts.of_rank(rank)
        busy = [i for i in range(work.start, work.stop) if acts.on_device[i] and i not in set(waits.activity)]
        start, end = union(acts.start[busy], acts.end[busy])
        idle = sum(not ((start <= moment) & (moment < end)).any() for moment in waited)
        assert every[rank] / 1000 == pytest.approx(idle, abs=2 * len(busy) ** 0.5 + 20)
    assert length((acts.start[:0], acts.end[:0])) == 0


def test_a_job_without_devices_has_none() -> None:
    assert set(waiting_devices(graph_of(DATA / "gloo_ddp")).values()) == {0}
