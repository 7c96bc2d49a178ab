from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind, GapKind
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, Json, complete, kernel, launch, load, op, traces


def stream_edges(*events: Json) -> list[tuple[str, str, int]]:
    return edges_by_name(load(list(events)), EdgeKind.STREAM)


def test_work_waits_for_the_end_of_the_work_before_it() -> None:
    assert stream_edges(kernel("a", 0, 5), kernel("b", 7, 2)) == [("a.end", "b.start", 2)]


def test_streams_do_not_wait_for_one_another() -> None:
    assert stream_edges(kernel("a", 0, 5, stream=7), kernel("b", 7, 2, stream=20)) == []


def test_work_that_starts_shortly_before_an_end_waits_for_this_end() -> None:
    assert stream_edges(kernel("a", 0, 5), kernel("b", 4, 9)) == [("a.end", "b.start", -1), ("a.start", "b.start", 0)]


def test_work_waits_for_the_end_of_the_branch_that_ends_as_it_starts() -> None:
    edges = stream_edges(kernel("a", 0, 25), kernel("b", 10, 5), kernel("c", 24, 5))
    assert ("a.end", "c.start", -1) in edges


def test_work_beside_its_neighbour_waits_for_the_start_of_it() -> None:
    assert stream_edges(kernel("a", 0, 5), kernel("b", 1, 9)) == [("a.start", "b.start", 1)]


def test_overlapping_work_also_waits_for_what_was_over_by_then() -> None:
    edges = stream_edges(kernel("a", 0, 2), kernel("b", 2, 9), kernel("c", 4, 5))
    assert edges == [("a.end", "b.start", 0), ("a.end", "c.start", 2), ("b.start", "c.start", 2)]


def test_time_until_work_starts_beside_other_work_is_that_works_own() -> None:
    graph = load([kernel("a", 0, 100), kernel("b", 40, 200)])
    (edge,) = np.flatnonzero(graph.edges.kind == EdgeKind.STREAM)
    assert (graph.edges.activity[edge], graph.edges.lag[edge]) == (0, 40_000)
    assert graph.gap[2] == 0
    assert hg.what_if(graph).scale(name="a", factor=0.5).run().time[2] - graph.time[0] == 20_000


def overlapping(count: int, lasts_us: float, overlap_us: float) -> DependencyGraph:
    """Return a busy stream on which each kernel starts shortly before the one before it ends."""
    calls = [launch(2 * i, 1, i + 1) for i in range(count)]
    starts = [500 + i * (lasts_us - overlap_us) for i in range(count)]
    return load([*calls, *(kernel("k", start, lasts_us, i + 1) for i, start in enumerate(starts))])


@pytest.mark.parametrize("overlap_us", [0.001, 0.032, 0.064, 0.6, 3.0, 20.0])
@pytest.mark.parametrize("lasts_us", [1.3, 17.0, 1000.0])
def test_a_stream_of_slight_overlaps_is_busy_and_gains_what_its_kernels_gain(
    lasts_us: float, overlap_us: float
) -> None:
    if overlap_us > lasts_us / 3:
        return
    graph = overlapping(40, lasts_us, overlap_us)
    graph.check()
    assert hg.replay(graph).max_error_ns == 0
    assert graph.gap[graph.activities.on_device.repeat(2)][1:].sum() == 0
    busy_ns = 1000 * (40 * lasts_us - 39 * overlap_us)
    assert hg.what_if(graph).scale(kind="computation", factor=0.5).run().saved_ns >= 0.97 * busy_ns / 2


@pytest.mark.parametrize("factor", [0.0, 0.0001, 0.01, 0.5, 1.0, 3.0])
def test_no_work_starts_before_the_work_ahead_of_it_however_short_that_becomes(factor: float) -> None:
    graph = overlapping(20, 10.0, 0.6)
    time = hg.what_if(graph).scale(kind="computation", factor=factor).run().time
    starts = time[2 * np.flatnonzero(graph.activities.on_device)]
    assert (np.diff(starts) >= 0).all()


def test_branches_of_a_graph_that_run_side_by_side_stay_concurrent() -> None:
    """Two chains on one stream: the second kernel of each starts when the first one of its chain ends."""
    chains = [kernel("a", 0, 40), kernel("b", 0, 70), kernel("c", 41, 90), kernel("d", 71, 20)]
    edges = stream_edges(*chains)
    assert ("a.end", "c.start", 1) in edges
    assert ("b.end", "d.start", 1) in edges
    assert not any(lag < 0 for *_, lag in edges)


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
