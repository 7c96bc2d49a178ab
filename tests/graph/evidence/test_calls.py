"""Call sites: numbers for rows, groups of rows, and what encloses a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.arrays import spread
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.evidence import calls as module
from htagraph.graph.evidence.calls import Calls, grouped, last_ends, mixed, owners, work_before
from htagraph.graph.rules.host_sync import host_sync
from htagraph.graph.tolerances import LIMITS
from tests.strategies import COMPUTE, OTHER, Json, annotation, complete, kernel, launch, op, runtime, step, traces
from tests.waiting import by_hand


def calls_of(events: Sequence[Json]) -> Calls:
    return Calls.of(by_hand(events))


def test_calls_of_equal_times_keep_the_order_of_their_correlations() -> None:
    calls = calls_of([launch(3, 0, 2), launch(3, 0, 1), kernel("b", 9, 1, 2), kernel("a", 5, 1, 1)])
    assert calls.job.activities.arg("correlation")[calls.row].tolist() == [1, 2]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 2, 1), (3, 2, 0, 1)])
def test_work_on_several_streams_was_launched_on_the_first_to_start_wherever_it_is_in_the_file(
    order: tuple[int, ...],
) -> None:
    events = [launch(0, 1, 1), *(kernel(name, at, 1, 1, stream=at) for name, at in (("b", 9), ("a", 7), ("c", 20)))]
    calls = calls_of([events[i] for i in order])
    assert [calls.job.lanes[lane].stream for lane in calls.launched] == [7]


def test_of_work_that_starts_at_once_the_first_stream_counts() -> None:
    events = [launch(0, 1, 1), *(kernel("a", 9, 1, 1, stream=stream) for stream in (20, 7, 8))]
    calls = calls_of(events)
    assert [calls.job.lanes[lane].stream for lane in calls.launched] == [7]


def test_streams_come_by_computation_and_then_by_their_first_work_wherever_it_is_in_the_file() -> None:
    events = [
        kernel("late", 9, 1, 1, stream=8),
        kernel("early", 5, 1, 2, stream=20),
        kernel("early", 5, 1, 3, stream=7),
    ]
    events += [kernel(COMPUTE, at, 1, 4 + at, stream=9) for at in (20, 22)]
    for order in (events, events[::-1]):
        calls = calls_of(order)
        assert [calls.job.lanes[lane].stream for lane in calls.lanes[0]] == [9, 7, 20, 8]


def test_the_neighbours_of_a_call_are_launches_of_its_thread() -> None:
    events = [launch(0, 1, 1), launch(2, 1, 2, OTHER), runtime("cudaEventRecord", 4, 1, 3), launch(6, 1, 4)]
    work = [kernel("a", 5, 1, 1), kernel("x", 5, 1, 2, stream=20), kernel("b", 8, 1, 4)]
    calls = calls_of(events + work)
    assert calls.before.tolist() == [-1, -1, 0, 0]
    assert calls.after.tolist() == [3, -1, 3, -1]


def test_the_stream_used_elsewhere_is_that_of_the_launch_before_the_last_run() -> None:
    work = [kernel("a", 5, 1, 1), kernel("x", 5, 1, 2, stream=20), kernel("y", 8, 1, 3, stream=20)]
    calls = calls_of([launch(0, 1, 1), launch(2, 1, 2), launch(4, 1, 3), runtime("cudaEventRecord", 6, 1, 4), *work])
    compute, side = calls.launched[0], calls.launched[1]
    at = np.array([3, 3])
    assert calls.elsewhere(at, np.array([side, compute])).tolist() == [compute, side]


def test_two_instances_of_one_place_share_their_site_and_two_places_do_not() -> None:
    events = []
    for i in range(2):
        at = 20 * i
        events += [op("aten::item", at, 8), runtime("cudaEventRecord", at + 1, 1, 4 * i + 1)]
        events += [launch(at + 3, 1, 4 * i + 2), runtime("cudaEventRecord", at + 5, 1, 4 * i + 3)]
        events += [runtime("cudaEventRecord", at + 10, 1, 4 * i + 4), kernel("k", at + 6, 1, 4 * i + 2)]
    calls = calls_of(events)
    site = calls.site[calls.of_kind(ActivityKind.RECORD)].tolist()
    assert site[:3] == site[3:]
    assert len(set(site)) == 3, "before the launch, after it, and outside the operator"


def test_ranges_are_spread() -> None:
    owner, number = spread(np.array([3, 9, 5]), np.array([5, 9, 6]))
    assert (owner.tolist(), number.tolist()) == ([0, 0, 2], [3, 4, 5])


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_last_and_first_work_around_a_call_are_what_a_search_finds(events: list[Json]) -> None:
    calls = calls_of(events)
    acts = calls.job.activities
    position = {int(row): i for i, row in enumerate(calls.row)}
    queue = calls.enqueued
    lanes = [int(lane) for lanes in calls.lanes.values() for lane in lanes]
    if not all(cause >= 0 for cause in acts.cause[queue.work]):
        return  # where a launch is missing its place is a guess
    for lane in lanes:
        work = [int(row) for row in queue.work if acts.lane[row] == lane]
        for at in range(len(calls.row) + 1):
            before = [row for row in work if position[int(acts.cause[row])] < at]
            behind = [row for row in work if position[int(acts.cause[row])] >= at]
            last, first = (find(np.array([lane]), np.array([at]))[0] for find in (queue.last_before, queue.first_from))
            assert (acts.end[last] if last >= 0 else None) == max((acts.end[row] for row in before), default=None)
            soonest = min((position[int(acts.cause[row])] for row in behind), default=None)
            assert (position[int(acts.cause[first])] if first >= 0 else None) == soonest


PLACES = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.HOST_COMMUNICATION)


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-1, 2**40)), min_size=1, max_size=20))
def test_numbers_are_equal_exactly_where_all_columns_are(rows: list[tuple[int, int]]) -> None:
    number = mixed(*np.array(rows, np.int64).T).tolist()
    assert [[a == b for b in number] for a in number] == [[a == b for b in rows] for a in rows]


def test_the_order_of_columns_matters() -> None:
    assert mixed(np.array([1]), np.array([2])) != mixed(np.array([2]), np.array([1]))


@given(st.lists(st.integers(0, 4), max_size=20))
def test_groups_are_the_rows_of_each_value(key: list[int]) -> None:
    groups = sorted(rows.tolist() for rows in grouped(np.array(key, np.int64)))
    assert groups == sorted([i for i, each in enumerate(key) if each == value] for value in set(key))


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_owner_is_the_first_place_on_the_way_up(events: list[Json]) -> None:
    acts = by_hand(events).activities
    rows = np.flatnonzero(~acts.on_device)
    owner, _ = owners(acts, rows)
    for row, innermost in zip(rows.tolist(), owner.tolist(), strict=True):
        at = int(acts.parent[row])
        while at >= 0 and acts.kind[at] not in PLACES:
            at = int(acts.parent[at])
        assert innermost == at


def test_python_frames_and_steps_do_not_tell_places_apart() -> None:
    def nested(at: float, number: int) -> list[Json]:
        return [
            step(number, at, 20), annotation("forward", at + 1, 18),
            complete("python_function", f"model.py({number}): forward", at + 2, 16), op("aten::mm", at + 3, 9),
            launch(at + 4, 1, number),
        ]  # fmt: skip

    acts = by_hand([*nested(0, 1), *nested(100, 2), launch(130, 1, 3)]).activities
    calls = np.flatnonzero(acts.kind == ActivityKind.RUNTIME) if not (acts.kind == ActivityKind.LAUNCH).any() else None
    rows = np.flatnonzero(acts.arg("correlation") > 0) if calls is None else calls
    _, path = owners(acts, rows)
    assert path[0] == path[1] != path[2]


def streams_and_syncs(count: int) -> list[Json]:
    """Return work on so many streams, with a wait for the device after each, and as many more at the end."""
    events = []
    for i in range(2 * count):
        if i < count:
            events += [launch(10 * i, 1, 2 * i + 1), kernel(f"k{i}", 10 * i + 2, 3, 2 * i + 1, stream=i)]
        events.append(runtime("cudaDeviceSynchronize", 10 * i + 6, 2, 2 * i + 2))
    return events


def test_of_few_streams_the_last_work_of_each_counts() -> None:
    calls = by_hand(streams_and_syncs(5)).calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    source, number = work_before(calls, calls.rank[syncs], syncs, calls.thread[syncs])
    pairs = {(int(call), int(work)) for call, work in zip(number, source, strict=True)}
    rows = np.flatnonzero(calls.job.activities.on_device)
    assert pairs == {(call, int(work)) for call in range(10) for work in rows[: call + 1]}


def test_the_last_end_is_that_of_all_work_before_a_call() -> None:
    calls = by_hand(streams_and_syncs(5)).calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    acts = calls.job.activities
    ends = np.sort(acts.end[acts.on_device])
    assert last_ends(calls, calls.rank[syncs], syncs).tolist() == [*ends.tolist(), *[int(ends[-1])] * 5]
    assert last_ends(calls, np.zeros(1, np.int64), np.zeros(1, np.int64)).tolist() == [np.iinfo(np.int64).min]


def test_of_many_streams_only_new_work_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, tried=1))
    calls = by_hand(streams_and_syncs(5)).calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    source, number = work_before(calls, calls.rank[syncs], syncs, calls.thread[syncs])
    rows = np.flatnonzero(calls.job.activities.on_device)
    assert sorted(zip(number.tolist(), source.tolist(), strict=True)) == list(enumerate(rows.tolist()))


def test_edges_of_many_streams_and_waits_grow_with_their_number() -> None:
    edges = [host_sync(by_hand(streams_and_syncs(count))) for count in (140, 280)]
    count = [int((each.kind == EdgeKind.HOST_SYNC).sum()) for each in edges]
    assert count[1] == 2 * count[0]
