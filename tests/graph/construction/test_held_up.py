from __future__ import annotations

import htagraph as hg
from htagraph import DependencyGraph, GapKind
from htagraph.queries.path_segments import bound_of
from tests.strategies import COMPUTE, Json, kernel, launch, load


def job(*, side: float, lasts: float, end: float = 1020) -> DependencyGraph:
    """Return a stream whose third kernel is queued, and waits while another stream runs a kernel from `side` on."""
    calls = [launch(i, 1, i + 1) for i in range(4)]
    before = [kernel(COMPUTE, 100, 100, 1), kernel(COMPUTE, 201, 100, 2)]
    return load([*calls, *before, kernel("large", side, lasts, 3, stream=20), kernel("small", end, 50, 4)])


def gap_before(graph: DependencyGraph, name: str) -> int:
    return int(graph.gap[2 * next(iter(graph.select(name=name)))])


def test_a_stream_that_waits_while_another_one_has_the_device_is_not_idle() -> None:
    graph = job(side=290, lasts=735)  # the last blocks leave room 5 µs before its end
    assert gap_before(graph, "small") == 0
    shares = bound_of(hg.critical_path(graph)).shares
    assert shares.get("gap", 0.0) == 0
    assert shares["computation"] > 85


def test_a_faster_kernel_elsewhere_holds_up_less() -> None:
    graph = job(side=290, lasts=735)
    halved = hg.what_if(graph).scale(name="large", factor=0.5).run()
    assert 350_000 < halved.saved_ns < 365_000
    longer = hg.what_if(graph).scale(name="large", factor=2.0).run()
    assert longer.makespan_ns > graph.time.max() - graph.time.min()


def test_what_the_device_did_not_run_meanwhile_stays_a_gap() -> None:
    graph = job(side=290, lasts=400)  # until 690: then nothing runs for 330 µs
    assert gap_before(graph, "small") == 330_000
    assert GapKind(graph.gap_kind[2 * next(iter(graph.select(name="small")))]) == GapKind.FIRST_RUN


def test_work_whose_launch_came_late_is_not_held_up() -> None:
    calls: list[Json] = [launch(0, 1, 1), launch(1, 1, 2), launch(900, 2, 3)]
    graph = load([*calls, kernel(COMPUTE, 10, 100, 1), kernel("large", 20, 2000, 2, stream=20), kernel("s", 907, 9, 3)])
    assert hg.what_if(graph).scale(name="large", factor=0.5).run().time[2 * 5] == graph.time[2 * 5]
    assert gap_before(graph, "s") == 0


def test_a_job_without_other_streams_is_as_it_was() -> None:
    graph = load([kernel("a", 0, 5), kernel("b", 7, 2), kernel("c", 109, 2)])
    assert graph.gap.tolist() == [0, 0, 0, 0, 99_000, 0]
