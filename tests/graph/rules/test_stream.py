from __future__ import annotations

import pytest
from hypothesis import given, settings

from htagraph import EdgeKind, GapKind
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, Json, complete, kernel, launch, load, op, traces


def stream_edges(*events: Json) -> list[tuple[str, str, int]]:
    return edges_by_name(load(list(events)), EdgeKind.STREAM)


def test_work_waits_for_the_end_of_the_work_before_it() -> None:
    assert stream_edges(kernel("a", 0, 5), kernel("b", 7, 2)) == [("a.end", "b.start", 2)]


def test_streams_do_not_wait_for_one_another() -> None:
    assert stream_edges(kernel("a", 0, 5, stream=7), kernel("b", 7, 2, stream=20)) == []


def test_work_that_overlaps_its_neighbour_waits_for_the_start_of_it() -> None:
    assert stream_edges(kernel("a", 0, 5), kernel("b", 3, 9)) == [("a.start", "b.start", 3)]


def test_overlapping_work_also_waits_for_what_was_over_by_then() -> None:
    edges = stream_edges(kernel("a", 0, 2), kernel("b", 2, 9), kernel("c", 4, 5))
    assert edges == [("a.end", "b.start", 0), ("a.end", "c.start", 2), ("b.start", "c.start", 2)]


def test_work_waits_for_the_latest_end_even_if_its_neighbour_ended_earlier() -> None:
    edges = stream_edges(kernel("a", 0, 25), kernel("b", 10, 5), kernel("c", 30, 5))
    assert ("a.end", "c.start", 5) in edges


def test_a_short_pause_is_the_streams_and_a_long_one_a_gap() -> None:
    graph = load([kernel("a", 0, 5), kernel("b", 7, 2), kernel("c", 109, 2)])
    assert graph.gap.tolist() == [0, 0, 0, 0, 99_000, 0]
    assert GapKind(graph.gap_kind[4]) == GapKind.STREAM_IDLE


def test_queued_work_whose_launch_came_late_keeps_the_usual_pause_of_its_stream() -> None:
    events = [launch(i, 1, i + 1) for i in range(12)] + [launch(1000, 1, 13)]
    events += [kernel(COMPUTE, 100 + 52 * i, 50, i + 1) for i in range(12)] + [kernel(COMPUTE, 1006, 50, 13)]
    lags = [lag for *_, lag in edges_by_name(load(events), EdgeKind.STREAM)]
    assert lags == [2] * 12, "pauses of 2 µs before queued work; nobody saw another one before the late work"


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_each_piece_of_work_follows_all_that_started_before_it_on_its_stream(events: list[Json]) -> None:
    graph = load(events)
    acts = graph.activities
    offsets, sources = graph.in_offsets.tolist(), graph.edges.source[graph.in_edges].tolist()
    work = list(graph.select(kind="device"))
    for row in work:
        before = ancestors(offsets, sources, 2 * row)
        over = [int(acts.end[each]) for each in work if 2 * each + 1 in before and acts.lane[each] == acts.lane[row]]
        for other in work:
            if acts.lane[other] == acts.lane[row] and acts.start[other] < acts.start[row]:
                assert 2 * other in before
                assert acts.end[other] > acts.start[row] or acts.end[other] <= max(over)


def ancestors(offsets: list[int], sources: list[int], vertex: int) -> set[int]:
    seen, waiting = set(), [vertex]
    while waiting:
        at = waiting.pop()
        for source in sources[offsets[at] : offsets[at + 1]]:
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return seen


def test_work_that_overflows_is_cut_but_what_frames_work_is_not() -> None:
    def lasting(name: str) -> list[Json]:
        long = complete("mtia_ccp_events", name, 0, 300_000, stream=7)
        return [long, *(complete("mtia_ccp_events", "matmul", 10 * i, 5, stream=7) for i in (1, 2, 3))]

    cut, framed = load([*lasting("matmul"), op("a", 0, 1)]), load([*lasting("job_exe"), op("a", 0, 1)])
    assert cut.activities.duration[0] == 10_000
    assert framed.activities.duration[0] == 300_000_000
    assert [[issue.what for issue in graph.issues if "overflow" in issue.what] for graph in (cut, framed)] == [
        ["duration_overflow"], [],
    ]  # fmt: skip
