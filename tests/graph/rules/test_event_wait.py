from __future__ import annotations

from pathlib import Path

import pytest

from htagraph import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.rules.event_wait import event_wait
from tests.oracles import edges_by_name
from tests.reach import SHARED
from tests.strategies import COPY, Json, kernel, launch, load, op, runtime
from tests.waiting import MADE, Pair, by_hand, hidden, named, read, simulated, sync_row, unresolved, verdict

NCCL = SHARED / "hta" / "nccl" / "nccl_data.json.gz"
WITH_IDS = sorted((SHARED / "hta" / "critical_path").glob("*.json.gz"))


def stream_wait(at: float, correlation: int, waits: int, awaited: int, record: int) -> list[Json]:
    return [
        runtime("cudaStreamWaitEvent", at, 1, correlation),
        sync_row(
            "Stream Wait Event", at, correlation, stream=waits, device=0, wait_on_stream=awaited,
            wait_on_cuda_event_record_corr_id=record,
        ),
    ]  # fmt: skip


def overlapped(first: int, at: float) -> list[Json]:
    """Return a collective behind compute, more compute beside it, and compute that awaits it; 100 µs in all."""
    names = [f"{name}{first}" for name in ("before", "ncclAllReduce", "beside", "behind")]
    calls = [
        launch(at, 1, first + 1),
        op("record_param_comms", at + 2, 8),
        runtime("cudaEventRecord", at + 3, 1, first + 2), runtime("cudaStreamWaitEvent", at + 5, 1, first + 3),
        launch(at + 7, 1, first + 4), runtime("cudaEventRecord", at + 9, 1, first + 5),
        launch(at + 12, 1, first + 6),
        runtime("cudaStreamWaitEvent", at + 15, 1, first + 7), launch(at + 18, 1, first + 8),
    ]  # fmt: skip
    work = [
        kernel(names[0], at + 10, 30, first + 1), kernel(names[1], at + 41, 40, first + 4, stream=20),
        kernel(names[2], at + 41, 10, first + 6), kernel(names[3], at + 82, 10, first + 8),
    ]  # fmt: skip
    return calls + work


def test_the_first_work_behind_a_wait_follows_the_last_work_before_the_record() -> None:
    events = [launch(0, 1, 1), launch(2, 1, 2), runtime("cudaEventRecord", 4, 1, 3), launch(6, 1, 4)]
    events += [*stream_wait(8, 5, waits=20, awaited=7, record=3), launch(10, 1, 6), launch(12, 1, 7)]
    events += [kernel("a", 5, 5, 1), kernel("b", 10, 9, 2), kernel("c", 19, 1, 4)]
    events += [kernel("x", 21, 5, 6, stream=20), kernel("y", 30, 5, 7, stream=20)]
    job = by_hand(events)
    edges = event_wait(job)
    assert named(job, edges) == [("b", "x")]
    assert edges.provenance.tolist() == [Provenance.OBSERVED]
    assert [(u, v) for u, v, _ in edges_by_name(load(events), EdgeKind.EVENT_WAIT)] == [("b.end", "x.start")]


def test_a_stream_passes_on_what_it_was_told_to_await() -> None:
    events = [launch(0, 1, 1), runtime("cudaEventRecord", 2, 1, 2), *stream_wait(4, 3, 20, 7, 2)]
    events += [runtime("cudaEventRecord", 6, 1, 4), *stream_wait(8, 5, 24, 20, 4), launch(10, 1, 6), launch(12, 1, 7)]
    events += [kernel("a", 5, 20, 1), kernel("x", 26, 5, 7, stream=20), kernel("y", 26, 5, 6, stream=24)]
    job = by_hand(events)
    assert named(job, event_wait(job)) == [("a", "x"), ("a", "y")]


def test_a_row_without_a_record_awaits_what_its_stream_had_enqueued_by_then() -> None:
    events = [launch(0, 1, 1), *stream_wait(8, 5, waits=20, awaited=7, record=-1), launch(10, 1, 6), launch(12, 1, 7)]
    events += [kernel("a", 5, 5, 1), kernel("late", 15, 5, 7), kernel("x", 21, 5, 6, stream=20)]
    job = by_hand(events)
    assert named(job, event_wait(job)) == [("a", "x")]


def test_without_rows_collectives_await_compute_and_compute_awaits_them() -> None:
    job = by_hand([event for i in range(4) for event in overlapped(20 * i, 100 * i)])
    edges = event_wait(job)
    expected = [(f"before{20 * i}", f"ncclAllReduce{20 * i}") for i in range(4)]
    expected += [(f"ncclAllReduce{20 * i}", f"behind{20 * i}") for i in range(4)]
    assert named(job, edges) == sorted(expected)
    assert set(edges.provenance.tolist()) == {Provenance.INFERRED}


def test_a_wait_that_no_stream_could_have_kept_is_refused() -> None:
    events = []
    for i in range(4):
        at, first = 100 * i, 10 * i
        events += [launch(at, 1, first + 1), launch(at + 2, 1, first + 2)]
        events += [runtime("cudaStreamWaitEvent", at + 4, 1, first + 3), launch(at + 6, 1, first + 4)]
        events += [kernel("a", at + 5, 100, first + 1), kernel("x", at + 50, 100, first + 2, stream=20)]
        events += [kernel("y", at + 10, 5, first + 4, stream=24)]
    job = by_hand(events)
    edges = event_wait(job)
    assert len(edges) == 0
    (issue,) = unresolved(job, event_wait)
    assert (issue.what, issue.count, issue.rank) == ("waits_unresolved", 4, 0)


def collective(at: float, first: int, name: str, start: float, duration: float) -> list[Json]:
    """Return a collective on stream 20 as PyTorch and NCCL make it: with records and waits of its own."""
    record, wait = "cudaEventRecord", "cudaStreamWaitEvent"
    return [
        op("record_param_comms", at, 10),
        runtime(record, at + 1, 0.5, first), runtime(wait, at + 2, 0.5, first + 1),
        op("nccl:all_reduce", at + 3, 6.5),
        runtime(record, at + 3.5, 0.4, first + 2), runtime(wait, at + 4, 0.4, first + 3), launch(at + 5, 1, first + 4),
        runtime(record, at + 6.5, 0.4, first + 5), runtime(wait, at + 7, 0.4, first + 6),
        runtime(record, at + 8, 0.4, first + 7),
        kernel(name, start, duration, first + 4, stream=20),
    ]  # fmt: skip


def test_waits_in_a_row_await_the_collectives_in_their_order() -> None:
    events = []
    for i in range(3):
        at, first = 1000 * i, 100 * i
        events += [launch(at, 1, first + 1), kernel(f"backward{i}", at + 6, 94, first + 1)]
        for k in range(3):
            events += collective(at + 20 * k + 5, first + 10 * k + 10, f"ncclAllReduce{i}{k}", at + 101 + 100 * k, 99)
            events += [runtime("cudaStreamWaitEvent", at + 100 + 10 * k, 1, first + 60 + k)]
            events += [launch(at + 103 + 10 * k, 1, first + 70 + k)]
            events += [kernel(f"copy{i}{k}", at + 202 + 100 * k, 5, first + 70 + k)]
    job = by_hand(events)
    found = event_wait(job)
    assert {(f"ncclAllReduce{i}{k}", f"copy{i}{k}") for i in range(3) for k in range(3)} <= set(named(job, found))
    assert {target for source, target in named(job, found) if source.startswith("backward")} == {
        f"ncclAllReduce{i}{k}" for i in range(3) for k in range(3)
    }
    assert len(found) == 18
    assert unresolved(job, event_wait) == ()


def test_the_stream_that_sent_a_collective_awaits_it() -> None:
    events = []
    for i in range(4):
        at, first = 100 * i, 100 * i
        events += [launch(at, 1, first + 1), kernel(f"compute{i}", at + 6, 90, first + 1)]
        events += [op("unshard", at + 5, 30), launch(at + 6, 1, first + 2)]
        events += [kernel(f"cast{i}", at + 25, 5, first + 2, stream=16)]
        events += collective(at + 10, first + 10, f"ncclAllGather{i}", at + 31, 92)
        events += [runtime("cudaStreamWaitEvent", at + 24, 1, first + 30)]
    job = by_hand(events)
    pairs = named(job, event_wait(job))
    assert {(f"ncclAllGather{i}", f"cast{i + 1}") for i in range(3)} <= set(pairs)
    assert not any(target.startswith("compute") for _, target in pairs)


def test_a_stream_awaits_nothing_behind_which_no_event_was_recorded() -> None:
    events = []
    for i in range(4):  # a prefetcher: compute awaits the copy of the iteration before, and then the next one is begun
        at, first = 1000 * i, 100 * i
        events += [runtime("cudaStreamWaitEvent", at, 1, first + 1), launch(at + 10, 1, first + 2)]
        events += [runtime("cudaEventRecord", at + 12, 1, first + 3), launch(at + 20, 1, first + 4)]
        events += [kernel(COPY, at + 30, 50, first + 2, stream=30), kernel(f"compute{i}", at + 40, 500, first + 4)]
    job = by_hand(events)
    found, start = event_wait(job), job.activities.start
    assert named(job, found) == [(COPY, f"compute{i + 1}") for i in range(3)]
    assert (start[found.target >> 1] - start[found.source >> 1] == 1_010_000).all(), "the copy of the iteration before"


@pytest.mark.parametrize("name", MADE)
def test_ids_give_the_true_waits(name: str) -> None:
    job, truth = simulated(MADE[name])
    result = verdict(job, event_wait(job), truth["event_wait"])
    assert result.lost == 0
    assert result.wrong <= 0.02 * result.truth, "a stream that records right behind a wait passes it on"


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2021", "2026"])
@pytest.mark.parametrize("name", MADE)
def test_inferred_waits_are_the_true_ones(name: str, era: str) -> None:
    job, truth = simulated(MADE[name].model_copy(update={"cuda_sync": False, "group_args": False, "era": era}))
    result = verdict(job, event_wait(job), truth["event_wait"])
    assert result.wrong <= 0.02 * result.truth
    assert result.lost <= (0.02 if era == "2026" else 0.2) * result.truth


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_calls_that_nccl_makes_for_itself_mislead_nobody(name: str) -> None:
    job, truth = simulated(MADE[name].model_copy(update={"cuda_sync": False, "group_args": False}), internal=True)
    result = verdict(job, event_wait(job), truth["event_wait"])
    assert result.wrong <= 0.02 * result.truth
    assert result.lost <= 0.02 * result.truth
    assert unresolved(job, event_wait) == ()


@pytest.mark.skipif(not NCCL.exists(), reason="no shared traces")
def test_real_waits_at_the_end_of_backward_await_the_buckets_in_their_order() -> None:
    job = read(NCCL)
    found, acts = event_wait(job), job.activities
    reduces = [i for i, code in enumerate(acts.name) if "AllReduce" in job.names[code] and acts.on_device[i]]
    pairs = [(u, v) for u, v in zip(found.source >> 1, found.target >> 1, strict=True) if u in reduces]
    assert sorted(u for u, _ in pairs) == reduces
    assert len({v for _, v in pairs}) == len(reduces) == 15
    assert {job.names[acts.name[v]] for _, v in pairs} == {"Memcpy DtoD (Device -> Device)"}
    assert unresolved(job, event_wait) == ()


@pytest.mark.skipif(not WITH_IDS, reason="no shared traces")
@pytest.mark.parametrize("path", WITH_IDS, ids=lambda path: path.stem)
def test_real_waits_are_obeyed_by_the_recorded_times(path: Path) -> None:
    job = read(path)
    for each in (job, hidden(job)):
        edges = event_wait(each)
        acts = job.activities
        assert (acts.end[edges.source >> 1] <= acts.start[edges.target >> 1] + 2000).all()


@pytest.mark.skipif(not WITH_IDS, reason="no shared traces")
def test_inferred_real_waits_agree_with_the_ids() -> None:
    job = read(SHARED / "hta" / "critical_path" / "alexnet.json.gz")
    given, inferred = (pairs_of(each) for each in (event_wait(job), event_wait(hidden(job))))
    assert len(given) == 6
    assert len(given & inferred) >= 4, "two of six, in cuDNN's first call, follow another stream's work"


def pairs_of(edges: Edges) -> set[Pair]:
    return set(zip(edges.source.tolist(), edges.target.tolist(), strict=True))


@pytest.mark.parametrize("recorded", [True, False])
def test_inside_an_operator_a_stream_on_which_it_launches_later_waits_not_the_one_that_goes_on(
    *, recorded: bool
) -> None:
    events = []
    for i in range(3):  # as cudnn forks: an event on the current stream, many streams wait, one of them is used
        at, first = 1000 * i, 20 * i
        events += [op("conv", at, 40), op("before", at - 8, 6), launch(at - 6, 2, first + 1)]
        events += [runtime("cudaEventRecord" if recorded else "cudaEventQuery", at + 2, 1, first + 2)]
        events += [runtime("cudaStreamWaitEvent", at + 4 + j, 1, first + 3 + j) for j in range(3)]
        events += [launch(at + 10, 2, first + 10), launch(at + 14, 2, first + 11)]
        events += [kernel("first", at + 50, 300, first + 1), kernel("goes on", at + 351, 100, first + 10)]
        events += [kernel("side", at + 400, 100, first + 11, stream=20)]
    job = by_hand(events)
    assert named(job, event_wait(job)) == [("first", "side")] * 3
