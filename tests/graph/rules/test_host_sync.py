from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from htagraph import EdgeKind, Provenance
from htagraph.graph import accept
from htagraph.graph.evidence import waits
from htagraph.graph.rules.host_sync import host_sync
from tests.oracles import edges_by_name
from tests.reach import SHARED
from tests.strategies import OTHER, Json, annotation, complete, kernel, launch, load, op, runtime
from tests.waiting import MADE, by_hand, hidden, named, read, simulated, sync_row, unresolved, verdict

WITH_IDS = sorted((SHARED / "hta" / "critical_path").glob("*.json.gz"))


def two_streams() -> list[Json]:
    return [launch(0, 1, 1), launch(2, 1, 2), kernel("a", 10, 30, 1), kernel("x", 10, 60, 2, stream=20)]


def test_a_device_sync_returns_after_the_last_work_of_every_stream() -> None:
    events = [*two_streams(), runtime("cudaDeviceSynchronize", 5, 70, 3), launch(80, 1, 4), kernel("late", 90, 1, 4)]
    job = by_hand(events)
    assert named(job, host_sync(job)) == [("a", "cudaDeviceSynchronize"), ("x", "cudaDeviceSynchronize")]
    ends = [(u, v) for u, v, _ in edges_by_name(load(events), EdgeKind.HOST_SYNC)]
    assert ends == [("a.end", "cudaDeviceSynchronize.end"), ("x.end", "cudaDeviceSynchronize.end")]


def test_a_stream_sync_waits_for_the_stream_that_its_row_names() -> None:
    row = sync_row("Stream Sync", 5, 3, stream=7, device=0)
    job = by_hand([*two_streams(), runtime("cudaStreamSynchronize", 5, 40, 3), row])
    edges = host_sync(job)
    assert named(job, edges) == [("a", "cudaStreamSynchronize")]
    assert edges.provenance.tolist() == [Provenance.OBSERVED]


def test_an_event_sync_waits_for_the_record_that_its_row_names() -> None:
    events = [launch(0, 1, 1), runtime("cudaEventRecord", 2, 1, 2), launch(4, 1, 3), kernel("a", 10, 30, 1)]
    row = sync_row("Event Sync", 6, 4, stream=-1, device=0, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2)
    job = by_hand([*events, kernel("b", 40, 30, 3), runtime("cudaEventSynchronize", 6, 38, 4), row])
    assert named(job, host_sync(job)) == [("a", "cudaEventSynchronize")]


def test_a_sync_whose_row_names_no_record_waits_for_nothing_that_was_recorded() -> None:
    events = [launch(0, 1, 1), runtime("cudaEventRecord", 2, 1, 2), kernel("a", 5, 10, 1)]
    row = sync_row("Event Sync", 9, 4, stream=-1, device=0, wait_on_stream=-1, wait_on_cuda_event_record_corr_id=-1)
    job = by_hand([*events, runtime("cudaEventSynchronize", 9, 9, 4), row])
    assert named(job, host_sync(job)) == []
    assert named(job, host_sync(hidden(job))) == [("a", "cudaEventSynchronize")]


def test_what_blocks_on_one_thread_shows_what_another_waits_for() -> None:
    """Threads of a backend wait for a copy that another thread enqueued; on one it is always over in time."""
    events: list[Json] = []
    for number in range(12):
        at, thread, lasts, call = 1000 * number, 2 + number % 2, 300 if number % 2 else 10, 10 * number + 1
        blocks = runtime("cudaStreamSynchronize", at + 60, max(3, lasts - 45), call + 1, thread)
        events += [
            launch(at, 1, call), kernel(f"own{number}", at + 3, lasts, call),
            annotation("reduce", at + 50, 900, thread), blocks,
            launch(at + 500, 1, call + 2, thread), kernel("back", at + 505, 5, call + 2, stream=20 + thread),
        ]  # fmt: skip
    job = by_hand(events)
    pairs = named(job, host_sync(job))
    assert sorted(pairs) == sorted((f"own{number}", "cudaStreamSynchronize") for number in range(12))


@pytest.mark.parametrize(("launched", "percent"), [("gpu_memcpy", 95), ("kernel", 60)])
def test_a_wait_behind_an_operators_own_copy_is_sure_even_if_it_never_blocked(launched: str, percent: int) -> None:
    """`.item()` copies and then waits for the stream: for that copy, however soon it was over."""
    own = kernel("own", 8, 10, 1) | {"cat": launched}
    events = [op("aten::_local_scalar_dense", 0, 90), launch(5, 20, 1), own, runtime("cudaStreamSynchronize", 40, 5, 2)]
    job = by_hand(events)
    edges = host_sync(job)
    assert named(job, edges) == [("own", "cudaStreamSynchronize")]
    assert edges.confidence.tolist() == [percent]


def test_a_backend_waits_for_what_the_operator_enqueued_that_asked_for_its_communication() -> None:
    """Each time on another stream of a pool, while the asking thread has gone on to launch other work."""
    events: list[Json] = []
    for number in range(6):
        at, call, stream = 1000 * number, 10 * number + 1, 60 + number
        shapes: Json = {"Input type": ["float"], "Input Dims": [[64]]}
        events += [op("c10d::allreduce_", at, 30, **shapes), launch(at + 5, 1, call)]
        events += [kernel(f"copy {number}", at + 10, 300, call, stream=stream), launch(at + 40, 1, call + 1)]
        events += [kernel("work", at + 45, 100 + 50 * number, call + 1)]
        events += [annotation("gloo:all_reduce", at + 50, 500, OTHER)]
        events += [runtime("cudaStreamSynchronize", at + 60, 255, call + 2, OTHER)]
    job = by_hand(events)
    assert named(job, host_sync(job)) == [(f"copy {number}", "cudaStreamSynchronize") for number in range(6)]


def test_a_sync_may_name_its_stream_itself() -> None:
    call = complete("mtia_runtime", "synchronizeStream", 5, 70, correlation=3, device=0, stream_id=7)
    job = by_hand([*two_streams(), call])
    edges = host_sync(job)
    assert named(job, edges) == [("a", "synchronizeStream")]
    assert edges.provenance.tolist() == [Provenance.OBSERVED]


def test_without_a_row_a_stream_sync_waits_for_the_stream_that_ended_before_it_returned() -> None:
    events = []
    for i in range(4):
        at, first = 200 * i, 10 * i
        events += [launch(at, 1, first + 1), launch(at + 2, 1, first + 2)]
        events += [kernel("a", at + 10, 30, first + 1), kernel("x", at + 10, 60, first + 2, stream=20)]
        events += [runtime("cudaStreamSynchronize", at + 5, 39, first + 3)]
    job = by_hand(events)
    edges = host_sync(job)
    assert named(job, edges) == [("a", "cudaStreamSynchronize")] * 4, "x, launched last, ended only later"
    assert set(edges.provenance.tolist()) == {Provenance.INFERRED}


def test_without_a_row_an_event_sync_waits_for_the_record_that_explains_it() -> None:
    events, name = [], "cudaEventSynchronize"
    for i in range(5):  # the host runs one iteration ahead, as prefetchers do
        at, first = 100 * i, 10 * i
        events += [launch(at, 1, first + 1), runtime("cudaEventRecord", at + 2, 1, first + 2)]
        events += [kernel(f"k{i}", at + 50, 95, first + 1)]
        if i:
            events.append(runtime(name, at + 5, 50 - 5 + 4 - 1, first + 3))
    job = by_hand(events)
    assert named(job, host_sync(job)) == [(f"k{i}", name) for i in range(4)]


def test_no_call_waits_for_work_that_ended_after_it() -> None:
    job = by_hand([launch(0, 1, 1), runtime("cudaStreamSynchronize", 2, 5, 2), kernel("a", 10, 90, 1)])
    assert len(host_sync(job)) == 0
    (issue,) = unresolved(job, host_sync)
    assert (issue.what, issue.count, issue.rank) == ("waits_unresolved", 1, 0)


def unexplained(streams: int) -> list[Json]:
    """Return waits for streams, each in an operator of its own, none of which any work on any stream explains."""
    events: list[Json] = []
    for number in range(2 * streams):
        at, name = 1000 * number, f"op{number % streams}"
        events += [op(name, at, 900), launch(at + 1, 2, number + 1)]
        events += [kernel("k", at + 10, 5, number + 1, stream=7 + number % streams)]
        events += [runtime("cudaStreamSynchronize", at + 20, 700)]
    return events


def test_hypotheses_tested_are_in_proportion_to_the_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[int] = []
    real = accept.of_recorded

    def counted(*given: Any) -> Any:
        tested.append(len(given[0]))
        return real(*given)

    monkeypatch.setattr(waits, "of_recorded", counted)
    work = []
    for streams in (80, 160):
        tested.clear()
        load(unexplained(streams))
        work.append(sum(tested))
    assert work[0] > 80
    assert work[1] <= 2**1.1 * work[0]


def test_before_any_work_there_is_nothing_to_wait_for_and_nothing_to_report() -> None:
    job = by_hand([runtime("cudaStreamSynchronize", 2, 5, 2), launch(10, 1, 1), kernel("a", 12, 90, 1)])
    assert len(host_sync(job)) == 0
    assert unresolved(job, host_sync) == ()


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2021", "2026"])
@pytest.mark.parametrize("name", MADE)
def test_simulated_syncs_are_the_true_ones(name: str, era: str) -> None:
    job, truth = simulated(MADE[name].model_copy(update={"era": era}))
    for each in (job, hidden(job)):
        result = verdict(job, host_sync(each), truth["host_sync"])
        assert (result.wrong, result.lost) == (0, 0)


@pytest.mark.skipif(not WITH_IDS, reason="no shared traces")
@pytest.mark.parametrize("path", WITH_IDS, ids=lambda path: path.stem)
def test_inferred_real_syncs_agree_with_the_ids(path: Path) -> None:
    job = read(path)
    given, inferred = host_sync(job), host_sync(hidden(job))
    assert len(given) > 0
    assert named(job, given) == named(job, inferred)
    assert sorted(given.source.tolist()) == sorted(inferred.source.tolist())
