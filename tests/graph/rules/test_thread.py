from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import EdgeKind, GapKind
from htagraph.queries.replay import predict
from htagraph.simulate import REGIMES, simulate
from tests.host_jobs import host_job, tensor_args
from tests.oracles import edges_by_name
from tests.reach import SHARED
from tests.strategies import OTHER, Json, annotation, complete, load, op, step


def backward(name: str, start: float, duration: float) -> Json:
    return op(f"autograd::engine::evaluate_function: {name}", start, duration, OTHER)


def thread_edges(*events: Json) -> list[tuple[str, str, int]]:
    return edges_by_name(load(list(events)), EdgeKind.THREAD)


def test_autograds_thread_is_called_and_joined() -> None:
    frame = "autograd::engine::evaluate_function:"
    events = [op("forward", 0, 10), backward("A", 20, 5), backward("B", 26, 5), op("optimizer", 40, 10)]
    assert thread_edges(*events) == [(f"{frame} B.end", "optimizer.start", 0), ("forward.end", f"{frame} A.start", 0)]


def test_a_thread_that_runs_beside_its_caller_is_no_worker_of_it() -> None:
    begun = ("a.start", "autograd::engine::evaluate_function: A.start", 0)
    assert thread_edges(op("a", 0, 10), backward("A", 5, 10), op("b", 12, 10)) == [begun], "a guess where it began"


def test_a_pause_of_a_worker_between_its_call_and_its_return_is_its_callers() -> None:
    graph = load([op("forward", 0, 10), backward("A", 20, 5), backward("B", 900, 5), op("optimizer", 940, 10)])
    assert len(edges_by_name(graph, EdgeKind.THREAD)) == 2
    assert {GapKind(kind) for kind in graph.gap_kind[graph.gap > 0]} == {GapKind.HOST_UNTRACED}
    assert hg.what_if(graph).scale(factor=0.0, kind="host").run().makespan_ns == 0


def test_beside_a_thread_with_steps_one_backward_operator_makes_a_worker() -> None:
    events = [step(1, 0, 1000), op("forward", 5, 10), op("c10d::allgather", 30, 500, OTHER), backward("A", 540, 5)]
    assert ("forward.end", "c10d::allgather.start", 0) in thread_edges(*events)


def test_the_caller_is_the_busiest_thread_that_stands_still() -> None:
    idle = [op("query", 0, 1, OTHER + 1), op("query", 990, 1, OTHER + 1)]
    main = [op(f"op {i}", 10 * i, 5) for i in range(10)] + [op("optimizer", 500, 10)]
    assert ("autograd::engine::evaluate_function: A.end", "optimizer.start", 0) in thread_edges(
        *idle, *main, backward("A", 200, 100)
    )


def test_what_woke_a_thread_is_taken_to_be_the_last_moment_of_its_rank() -> None:
    events = [op("main", 0, 10), op("x", 5, 1, OTHER), op("main too", 300, 10), op("y", 330, 1, OTHER)]
    first = ("main.start", "x.start", 0)
    assert thread_edges(*events) == sorted([first, ("main too.end", "y.start", 0)])
    assert thread_edges(*events[:3], op("y", 90, 1, OTHER)) == [first], "it did not pause for long"


def test_any_other_thread_is_left_alone() -> None:
    events = [op("a", 0, 10), op("copy", 12, 3, OTHER), op("b", 20, 10)]
    assert thread_edges(*events) == [("a.end", "copy.start", 0)], "a guess where it began; nobody waits for it"


def test_a_frame_that_calls_backward_does_not_work_while_it_waits() -> None:
    call = complete("python_function", "run_backward", 0, 100)
    graph = load([call, backward("A", 20, 60), op("after", 90, 5)])
    gap = graph.gap[2 * 2]
    assert gap == 10_000, "from the end of the worker to the operator behind"
    lag = graph.edges.lag.copy()
    lag[graph.edges.lag == 60_000] = 0
    faster = predict(graph, lag)
    assert graph.time[4] - faster[4] == 60_000, "the caller goes on when its worker is done"


def test_gloos_threads_take_collectives_in_order_and_are_waited_for() -> None:
    events = [
        op("c10d::allreduce_", 0, 10), op("c10d::allreduce_", 12, 10), annotation("wait", 25, 100),
        op("gloo:all_reduce", 5, 60, OTHER), op("gloo:all_reduce", 15, 20, OTHER + 1), op("optimizer", 70, 10),
    ]  # fmt: skip
    assert thread_edges(*events) == [
        ("c10d::allreduce_.start", "gloo:all_reduce.start", 0),
        ("c10d::allreduce_.start", "gloo:all_reduce.start", 0),
        ("gloo:all_reduce.end", "optimizer.start", 0),
        ("gloo:all_reduce.end", "optimizer.start", 0),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_the_hand_overs_of_simulated_jobs_are_found(regime: str) -> None:
    import tempfile

    done = simulate(REGIMES[regime]())
    with tempfile.TemporaryDirectory() as folder:
        done.write(folder, level=1, truth=False)
        graph = hg.load(folder)
    acts = graph.activities
    edges = graph.edges.take(graph.edges.kind == EdgeKind.THREAD)
    ours = {
        (int(acts.rank[u // 2]), int(acts.event[u // 2]), int(acts.rank[v // 2]), int(acts.event[v // 2]))
        for u, v in zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    }
    truth = {tuple(each[:4]) for each in done.truth.dependencies if each.kind == "thread"}
    assert len(truth) == len(ours) > 0
    workers = {(rank, v) for _, _, rank, v in truth} | {(rank, u) for rank, u, _, _ in truth}
    assert all((a, u) in workers or (b, v) in workers for a, u, b, v in ours)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared traces")
def test_each_gloo_collective_is_enqueued_and_awaited() -> None:
    graph = hg.load(SHARED / "gloo4_cpu")
    found = edges_by_name(graph, EdgeKind.THREAD)
    calls = [edge for edge in found if edge[1] == "gloo:all_reduce.start"]
    waits = [edge for edge in found if edge[0] == "gloo:all_reduce.end"]
    assert len(calls) == len(graph.select(kind="host_communication")) == 24
    assert len(waits) >= 18


def asks_and_answers(*, answered: bool) -> dict[int, list[Json]]:
    """Return two ranks that record no communication: rank 1 looks up, and rank 0 trains with it or not."""
    job: dict[int, list[Json]] = {0: [], 1: []}
    at = 0
    for number in range(8):
        asks = at if answered else 31_300 * number % 23_000 + 30_000 * number
        job[1].append(op("lookup", asks + 200, 12_000))
        at += 12_400
        job[0].append(op("train", at, 9_000 + 40 * number))
        at += 9_000 + 40 * number
    return job


def test_ranks_of_a_host_without_recorded_communication_may_wait_for_each_other() -> None:
    graph = host_job(asks_and_answers(answered=True))
    assert [name for name, *_ in edges_by_name(graph, EdgeKind.THREAD)].count("lookup.end") >= 7
    faster = hg.what_if(graph).scale(factor=0.5, name="lookup").run()
    assert faster.saved_ns == pytest.approx(8 * 6_000_000, rel=0.2)
    apart = host_job(asks_and_answers(answered=False))
    assert not [edge for edge in edges_by_name(apart, EdgeKind.THREAD) if "lookup.end" in edge]


def test_ranks_of_a_host_that_communicate_may_wait_for_each_others_locks_too() -> None:
    """Two ranks take turns at a lock, who comes first differs, and reduce in each step, which is no wait for a lock."""
    job: dict[int, list[Json]] = {0: [], 1: []}
    for number in range(12):
        at, first = 40_000 * number, number * 5 % 3 % 2
        for rank in (0, 1):
            early = 2_000 + 170 * number % 900
            begins = at + (early if rank == first else early + 15_100)
            job[rank] += [op("own", at, early - 50 + 700 * (rank != first)), op("cached", begins, 15_000)]
            work = annotation("gloo:all_reduce", begins + 15_300, at + early + 30_800 - begins - 15_300)
            job[rank] += [op("c10d::allreduce_", begins + 15_250, 40, **tensor_args(16)), {**work, "tid": OTHER}]
    graph = host_job(job)
    edges = [edge for edge in edges_by_name(graph, EdgeKind.THREAD) if edge[0] == "cached.end"]
    assert len(edges) == 12, "only where the lock was taken"
    assert hg.what_if(graph).scale(factor=0.5, name="cached").run().saved_ns > 11 * 14_000_000


@pytest.mark.parametrize(("given", "lock"), [(50_000, "0x1"), (40_000, "0x1"), (50_000, "0x2")])
def test_who_takes_a_lock_for_long_waits_for_who_gives_it(given: int, lock: str) -> None:
    take = "<built-in method acquire of _thread.lock object at 0x1>"
    give = f"<built-in method release of _thread.lock object at {lock}>"
    writer = [complete("python_function", take, 0, 50_050), op("write", 50_200, 9_000)]
    trains = [op("train", 0, 30_000, 5), complete("python_function", give, given, 30, 5), op("train", 50_100, 10, 5)]
    graph = load([*writer, *trains])
    released = (f"{give}.start", f"{take}.end", 0) in edges_by_name(graph, EdgeKind.THREAD)
    assert released == ((given, lock) == (50_000, "0x1")), "what was given long before, or another lock, is not that"


def served(trainers: tuple[int, ...] = (1, 2), rounds: int = 8) -> dict[int, list[Json]]:
    """Return ranks that meet by collectives, and in between call rank 0, whose answer a thread of each rank takes."""
    job: dict[int, list[Json]] = {rank: [] for rank in (0, *trainers)}
    begin = 0
    for number in range(rounds):
        trained = begin + 12_000 + 170 * number % 900
        answered = trained + 600 + 30_000
        job[0].append({**op("update", trained + 600, 30_000), "tid": OTHER + 1})
        for rank in trainers:
            job[rank].append(op("train", begin, trained - begin - 300 * (rank != trainers[number % len(trainers)])))
            job[rank].append({**op("unpack", answered + 700 + 10 * rank, 20), "tid": OTHER + 1})
        meet = answered + 1_200
        for rank in job:
            calls = meet if rank else begin + 100
            work = annotation("gloo:barrier", calls + 50, meet + 200 - calls)
            job[rank] += [op("c10d::barrier", calls, 40, **tensor_args(16)), {**work, "tid": OTHER}]
        begin = meet + 500
    return job


def test_a_thread_that_calls_no_collective_may_wait_for_another_rank_across_collectives() -> None:
    """The thread that unpacks answers idles while its rank's main thread is in a barrier, of which it takes no part."""
    graph = host_job(served())
    names = [(source, target) for source, target, *_ in edges_by_name(graph, EdgeKind.THREAD)]
    assert names.count(("update.end", "unpack.start")) >= 2 * 6
    faster = hg.what_if(graph).scale(factor=0.5, name="update").run()
    assert faster.saved_ns == pytest.approx(8 * 15_000_000, rel=0.2)


def loaded_ahead(compute: int, load_time: int, layers: int = 4, steps: int = 8) -> list[Json]:
    """Return a main thread that computes layers, and a thread that stages, then loads each layer one layer ahead."""
    events: list[Json] = []
    at = 0
    for _ in range(steps):
        events.append(op("prepare", at, 3_000))
        events.append(op("stage", at + 3_150, 1_000, tid=OTHER))
        asked = at + 4_200
        free = asked
        done = []
        computed = [asked]
        for layer in range(layers):
            # a load begins once the layer before the last one is computed, and the thread is free
            begins = max(computed[max(0, layer - 1)], free) + 150
            free = begins + load_time
            done.append(free)
            events.append(op("load", begins, load_time, tid=OTHER))
            starts = max(computed[-1] + 60, free + 150)
            events.append(op("compute", starts, compute))
            computed.append(starts + compute)
        at = computed[-1] + 80
    return events


def test_the_kth_operator_takes_the_kth_item_where_only_the_first_had_to_wait() -> None:
    """Loads that were hidden behind what they are loaded ahead of bind once that is faster."""
    graph = load(loaded_ahead(16_000, 9_000))
    outcome = hg.what_if(graph).scale(factor=0.125, op="compute").run()
    truth = load(loaded_ahead(2_000, 9_000))
    assert outcome.makespan_ns == pytest.approx(int(truth.time.max()) - truth.origin_ns, rel=0.03)
