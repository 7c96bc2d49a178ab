"""Whether time in which a device only waits in a collective is told from time in which it works meanwhile."""

from __future__ import annotations

import pytest

from htagraph.core.intervals import length, union
from htagraph.queries.collective_waits import waits_of
from htagraph.queries.waiting_devices import waiting_devices
from tests.reach import DATA, graph_of


def test_it_is_the_waiting_of_collectives_without_what_runs_beside_it() -> None:
    graph = graph_of(DATA / "demo")
    acts, waits, every = graph.activities, waits_of(graph), waiting_devices(graph)
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
