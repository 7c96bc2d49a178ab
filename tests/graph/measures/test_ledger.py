"""What a recording holds and lacks, counted apart from the events themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.incomplete import missing_parts
from htagraph.graph.measures.ledger import Part, RankLedger
from tests.reach import DATASETS, graph_of, label
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime, step


def _steps(count: int, launches: int = 4) -> list[Json]:
    """Return steps of 1 ms, each with operators that launch kernels."""
    events: list[Json] = []
    for number in range(count):
        at = 1000 * number
        events.append(step(number, at, 990))
        for call in range(launches):
            begin = at + 100 * call
            correlation = 1 + number * launches + call
            events += [op("aten::mm", begin, 50), launch(begin + 5, 10, correlation)]
            events.append(kernel(COMPUTE, begin + 30, 60, correlation))
    return events


def _is_kernel(event: Json) -> bool:
    return event["cat"] == "kernel"


def _ledger(events: list[Json]) -> RankLedger:
    (rank,) = load(events).ledger.ranks
    return rank


def test_a_complete_recording_lacks_nothing() -> None:
    ledger = _ledger(_steps(5))
    assert (ledger.launches, ledger.launches_without_work, ledger.device_work, ledger.operators) == (20, 0, 20, 20)
    assert (ledger.steps, ledger.steps_without_work, ledger.device_ns) == (5, 0, 20 * 60_000)
    assert ledger.lacks == frozenset()


@pytest.mark.parametrize(("dropped", "lacks"), [(20, True), (11, True), (2, True), (1, False), (0, False)])
def test_launches_without_work_are_missing_device_work(dropped: int, lacks: bool) -> None:  # noqa: FBT001
    events = _steps(5)
    kernels = [event for event in events if _is_kernel(event)]
    ledger = _ledger([event for event in events if event not in kernels[:dropped]])
    assert ledger.launches_without_work == dropped
    assert (Part.DEVICE in ledger.lacks) is lacks


def test_graph_launches_count_by_themselves() -> None:
    events = _steps(5)
    for number in range(20):
        events.append(runtime("cudaGraphLaunch", 6000 + 100 * number, 10, correlation=900 + number))
    ledger = _ledger(events)
    assert (ledger.graph_launches, ledger.graph_launches_without_work) == (20, 20)
    assert Part.DEVICE in ledger.lacks


def _replays(dropped: dict[int, int], *, graph_of: Callable[[int], int] = lambda _: 7) -> list[Json]:
    """Return 20 replays of graphs of 10 kernels, 12 of other graphs than 7; some lose their last kernels."""
    events: list[Json] = []
    for number in range(20):
        at = 1000 * number
        graph = graph_of(number)
        events += [op("replay", at, 50), runtime("cudaGraphLaunch", at + 5, 10, correlation=1 + number)]
        kept = (10 if graph == 7 else 12) - dropped.get(number, 0)
        for each in range(kept):
            work = kernel(COMPUTE, at + 30 + 20 * each, 15, 1 + number)
            events.append(work | {"args": work["args"] | {"graph id": graph}})
    return events


def test_replays_that_lack_kernels_of_their_graph_are_counted() -> None:
    ledger = _ledger(_replays({3: 2, 8: 5, 12: 1}))
    assert (ledger.graph_launches_without_work, ledger.partial_replays, ledger.missing_in_replays) == (0, 3, 8)
    assert Part.DEVICE in ledger.lacks
    (missing,) = missing_parts(load(_replays({3: 2, 8: 5, 12: 1})))
    assert missing.why.startswith("3 of 20 launches of CUDA graphs lack 8 kernels and copies that most launches")


def test_graphs_of_unlike_sizes_and_the_last_replay_lack_nothing() -> None:
    for events in (_replays({}), _replays({19: 6}), _replays({}, graph_of=lambda number: 7 + number % 2)):
        ledger = _ledger(events)
        assert (ledger.partial_replays, ledger.missing_in_replays) == (0, 0)
        assert ledger.lacks == frozenset()


def test_launches_inside_a_capture_enqueue_nothing_and_miss_nothing() -> None:
    events = _steps(3)
    events.append(runtime("cudaStreamBeginCapture", 5000, 5, correlation=500))
    events += [launch(5010 + 10 * number, 5, 600 + number) for number in range(50)]
    events.append(runtime("cudaStreamEndCapture", 5600, 5, correlation=501))
    ledger = _ledger(events)
    assert (ledger.launches, ledger.launches_without_work) == (12, 0)
    assert ledger.lacks == frozenset()


def test_steps_in_which_a_device_did_nothing_count_where_it_worked_in_others() -> None:
    later = [event for event in _steps(20) if event["ts"] >= 3000]
    host_only = [event for event in later if event["cat"] in ("user_annotation", "cpu_op")]
    ledger = _ledger(_steps(3) + host_only)
    assert (ledger.steps, ledger.steps_without_work) == (20, 17)
    assert Part.DEVICE in ledger.lacks
    assert (
        _ledger([event for event in _steps(20) if event["cat"] in ("user_annotation", "cpu_op")]).lacks == frozenset()
    )


def test_device_work_without_operators_lacks_the_host() -> None:
    events = [event for event in _steps(5) if event["cat"] != "cpu_op"]
    assert _ledger(events).lacks == frozenset({Part.HOST})


@pytest.mark.parametrize(("compute_us", "meet_us", "lacks"), [(20, 75, True), (70, 25, False), (20, 40, False)])
def test_the_other_ranks_are_missing_where_a_busy_device_mostly_meets_them(
    compute_us: int,
    meet_us: int,
    lacks: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    events: list[Json] = []
    for number in range(20):
        at = 100 * number
        compute, meet = 1 + 2 * number, 2 + 2 * number
        events += [op("aten::mm", at, 4), launch(at + 1, 1, compute), kernel(COMPUTE, at + 3, compute_us, compute)]
        events += [launch(at + 5, 1, meet), kernel("ncclDevKernel_AllReduce", at + 3 + compute_us, meet_us, meet)]
    path = tmp_path / "rank-0.json"
    document = {"distributedInfo": {"rank": 0, "world_size": 4}, "traceEvents": events}
    path.write_text(json.dumps(document), encoding="utf-8")
    (ledger,) = hg.load(path).ledger.ranks
    assert ledger.meeting_ns == 20_000 * meet_us
    assert (Part.PEERS in ledger.lacks) is lacks


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_recordings_of_the_repository_are_complete(path: object) -> None:
    graph = graph_of(path)
    assert graph.ledger.lacks == frozenset()
    assert isinstance(graph, hg.DependencyGraph)


def test_an_operator_around_device_work_is_no_launch_call() -> None:
    """Kernels that are known by their operator alone: when they were launched is not in the file."""
    events = []
    for number in range(40):
        inside = kernel("gemm", 100 * number + 30, 20, number + 1)
        inside["args"]["External id"] = number + 1
        events += [op("aten::mm", 100 * number, 20, **{"External id": number + 1}), inside]
    assert load(events).ledger.lacks == {Part.CALLS}
