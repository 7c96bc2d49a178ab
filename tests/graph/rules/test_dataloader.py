from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind, GapKind
from tests.oracles import edges_by_name
from tests.strategies import annotation, complete, load, op

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def test_the_wait_for_a_batch_is_the_loaders_time_and_no_gap() -> None:
    graph = load([op("before", 0, 10), annotation(LOADER, 20, 300), op("after", 330, 10)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [(f"{LOADER}.start", f"{LOADER}.end", 300)]
    assert {GapKind(kind).label for kind in graph.gap_kind[graph.gap > 0]} == {"host_untraced"}
    assert graph.gap.sum() == 20_000


def test_a_loader_that_is_written_as_an_operator_is_one_too() -> None:
    graph = load([op(LOADER, 20, 300)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [(f"{LOADER}.start", f"{LOADER}.end", 300)]


def test_operators_inside_keep_their_own_time() -> None:
    graph = load([annotation(LOADER, 0, 100), op("aten::stack", 40, 50)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [
        ("aten::stack.end", f"{LOADER}.end", 10),
        (f"{LOADER}.start", "aten::stack.start", 40),
    ]
    assert ("aten::stack.start", "aten::stack.end", 50) in edges_by_name(graph, EdgeKind.BODY)


def test_a_loader_in_a_python_function_waits_all_the_same() -> None:
    function = complete("python_function", "train.py(9): train", 0, 400)
    graph = load([function, annotation(LOADER, 20, 300), op("after", 330, 10)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [(f"{LOADER}.start", f"{LOADER}.end", 300)]
    assert (f"{LOADER}.start", f"{LOADER}.end", 300) not in edges_by_name(graph, EdgeKind.BODY)
    free = hg.what_if(graph).free_dataloader().run()
    assert free.saved_ns == 300_000
    assert not hg.replay(graph).max_error_ns


def batches(*waits_ms: float, compute_ms: float = 60, own_ms: float = 0.2) -> DependencyGraph:
    """Return the graph of a loop that waits so long for each batch, and then computes."""
    events, at = [], 0.0
    for wait in waits_ms:
        takes = 1000 * (wait + own_ms)
        events += [annotation(LOADER, at, takes), op("compute", at + takes + 10, 1000 * compute_ms)]
        at += takes + 20 + 1000 * compute_ms
    return load(events)


def produced(graph: DependencyGraph) -> list[int]:
    """Return the lags, ms, of the edges from one batch to a later one."""
    edges = graph.edges
    between = edges.kind == EdgeKind.OUTSIDE
    return sorted(round(lag / 1e6) for lag in edges.lag[between].tolist())


def recorded_ms(graph: DependencyGraph) -> float:
    return float(graph.time.max() - graph.time.min()) / 1e6


def predicted_ms(graph: DependencyGraph, factor: float) -> float:
    return hg.what_if(graph).inject(rank=0, kind="loader", factor=factor).run().makespan_ns / 1e6


def test_workers_that_limit_the_job_take_the_time_between_two_waits() -> None:
    graph = batches(40, 40, 40, 40)
    assert produced(graph) == [100, 100, 100]
    assert hg.replay(graph).max_error_ns == 0
    faster = hg.what_if(graph).scale(factor=0.5, name="compute").run()
    assert round(recorded_ms(graph) - faster.makespan_ns / 1e6) == 30, "only the last step gains"


def test_workers_twice_as_fast_hide_behind_the_computation() -> None:
    graph = batches(40, 40, 40, 40, compute_ms=60)
    first_wait, fetch, compute = 40 / 2, 1, 60
    assert abs(predicted_ms(graph, 0.5) - (first_wait + 4 * compute + 3 * 0.5 * fetch)) < 1
    assert abs(predicted_ms(graph, 2) - (2 * (40 + 3 * 100) + compute)) < 2


def test_two_workers_in_step_are_waited_for_at_each_second_batch() -> None:
    graph = batches(60, 0, 60, 0, 60, 0, compute_ms=60)
    assert produced(graph) == [180, 180]
    assert recorded_ms(graph) - predicted_ms(graph, 0.5) > 150


def test_two_workers_out_of_step_need_equally_long_for_each_second_batch() -> None:
    # each needs 64 to 69 ms for a batch; the first three were ready, and of two steps one, both or none wait
    graph = batches(0.1, 0.1, 0.1, 20.6, 0.1, 39.6, 5, 40, 0.1, 39.6, compute_ms=12)
    assert produced(graph) == [45, 64, 64, 69, 69]
    slower = hg.what_if(graph).scale(factor=4, name="compute").run()
    assert slower.makespan_ns / 1e6 == pytest.approx(10 * 48, abs=12), (
        "the loader keeps up with steps four times as long"
    )
    assert hg.what_if(graph).scale(factor=0.5, name="compute").run().speedup < 1.15


def test_batches_that_are_ready_are_no_production() -> None:
    graph = batches(1, 1.2, 0.9, 1)
    assert produced(graph) == []
    notes = hg.what_if(graph).inject(rank=0, kind="loader", factor=2).run().notes
    assert any("does not show how long they take" in note for note in notes)
    assert not hg.what_if(batches(40, 40, 40)).inject(rank=0, kind="loader", factor=2).run().notes


def test_a_fetch_of_constant_length_before_steps_that_vary_is_work() -> None:
    events, at = [], 0.0
    for compute in (30, 80, 50, 95, 20, 60):
        events += [annotation(LOADER, at, 10_000), op("compute", at + 10_010, 1000 * compute)]
        at += 10_020 + 1000 * compute
    assert produced(load(events)) == []


def test_the_self_time_of_the_loader_is_the_wait_and_not_the_production() -> None:
    graph = batches(40, 40, 40)
    loaders = graph.select(name=LOADER).activities
    assert (graph.own_time[loaders] / 1e6).round(1).tolist() == [40.2, 40.2, 40.2]


def test_a_loader_without_workers_works_on_the_thread() -> None:
    single = LOADER.replace("Multi", "Single")
    graph = load([annotation(single, 0, 40_000), op("compute", 40_010, 60_000), annotation(single, 100_020, 40_000)])
    assert produced(graph) == []
