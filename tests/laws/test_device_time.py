"""While a device runs recorded work, nothing calls its time idle or unexplained: against unions of raw intervals."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind, GapKind
from htagraph.core.errors import TraceError
from htagraph.core.kinds import ABSENT_IN_COMPLETE_TRACES
from htagraph.findings.changes import changes_of
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of, sentences
from htagraph.graph.measures.earlier_work import ends_of_earlier_work
from htagraph.queries.path_segments import bound_of
from htagraph.simulate import REGIMES, simulate
from tests.reach import JOBS, SHARED, graph_of, label
from tests.strategies import Json, load, traces

Interval: TypeAlias = tuple[int, int]

WORK = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
"""Categories of work on a device, in lower case."""
CASES = sorted((SHARED.parent / "cases").rglob("*.json*"))
"""Small jobs and recordings with known faults; none where the folder is absent."""
NEXT = sorted((SHARED.parent / "next_profiler").glob("*/*.json.gz"))
TRACES = [*JOBS, *(path for path in (*CASES, *NEXT) if ".pickle" not in path.name)]
OTHER_FORMATS = [
    *sorted((SHARED.parent / "nsys").glob("*.sqlite.gz")),
    *sorted(path.parent for path in (SHARED.parent / "next_profiler").glob("*/rank-0.pftrace")),
]
"""Exports of Nsight Systems, and folders of Perfetto's native format."""
CPU_PAIRS = sorted((SHARED.parent / "real_pairs").glob("data*/*/[AB]1"))
"""Folders of jobs without a device."""
LONG_PAUSE_NS = 20_000
"""A device pauses for less between two kernels of a stream (0.5 to 3 µs; 15 µs where a profiler serializes)."""


def union(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the stretches that some intervals cover, in the order of time."""
    covered: list[Interval] = []
    for begin, end in sorted(intervals):
        if covered and begin <= covered[-1][1]:
            covered[-1] = (covered[-1][0], max(covered[-1][1], end))
        else:
            covered.append((begin, end))
    return covered


def common(stretches: Sequence[Interval], begin: int, end: int) -> int:
    """Return for how long the stretches cover a window."""
    first = max(0, bisect_right(stretches, (begin, begin)) - 1)
    covered = 0
    for start, stop in islice(stretches, first, None):
        if start >= end:
            break
        covered += max(0, min(end, stop) - max(begin, start))
    return covered


@cache
def busy(graph: DependencyGraph) -> dict[int, list[Interval]]:
    """Return when the devices of each rank ran work, ns on the common clock, from the activities one by one."""
    by_rank: dict[int, list[Interval]] = defaultdict(list)
    for row in graph.select(kind=["computation", "communication", "memory"]).activities.tolist():
        if graph.activities.on_device[row]:
            by_rank[int(graph.activities.rank[row])].append((int(graph.time[2 * row]), int(graph.time[2 * row + 1])))
    return {rank: union(intervals) for rank, intervals in by_rank.items()}


def raw_busy_ns(path: Path) -> list[int]:
    """Return how long each device of a file was at work, ns, from its JSON alone, ascending."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    root = json.loads(data, parse_float=Decimal, strict=False)
    events: list[dict[str, Any]] = root if isinstance(root, list) else root["traceEvents"]
    intervals = [
        (int(event["ts"] * 1000), int(event["ts"] * 1000) + int(event["dur"] * 1000))
        for event in events
        if event.get("ph") == "X" and str(event.get("cat", "")).lower() in WORK
    ]
    return [last - first for first, last in union(intervals)]


def blamed_while_busy(graph: DependencyGraph) -> int:
    """Return how much unexplained time of the path exceeds the time in which its device ran nothing, ns.

    That is counted for each moment on the path by itself, from the moment that it waited for.
    """
    path = hg.critical_path(graph)
    rank_of = graph.activities.rank
    excess = 0
    for before, vertex in zip(path.vertices[:-1].tolist(), path.vertices[1:].tolist(), strict=True):
        gap = int(graph.gap[vertex])
        works = busy(graph).get(int(rank_of[vertex >> 1]))
        if not gap or works is None or graph.gap_kind[vertex] not in ABSENT_IN_COMPLETE_TRACES:
            continue
        begin = int(graph.time[before])
        end = int(graph.time[vertex])
        idle = end - begin - common(works, begin, end)
        excess += max(0, gap - max(0, idle))
    return excess


def longest_pause(graph: DependencyGraph) -> int:
    """Return the longest pause of a stream on the path, ns, of the part in which the rank's devices were at work."""
    path = hg.critical_path(graph).segments
    waiting = hg.critical_path(graph).to_frame()["category"].eq("waiting").to_numpy()
    longest = 0
    for row in range(len(path)):
        of_stream = path.edge[row] in (EdgeKind.STREAM, EdgeKind.EVENT_WAIT) and path.gap[row] == GapKind.NONE
        works = busy(graph).get(int(graph.activities.rank[path.place[row]]))
        if of_stream and works and waiting[row]:
            begin = int(path.start[row])
            longest = max(longest, common(works, begin, begin + int(path.length[row])))
    return longest


def opened(path: Path) -> DependencyGraph:
    """Return the graph of a job; the test is skipped where no such thing is in the file."""
    try:
        return hg.load(path) if path in OTHER_FORMATS else graph_of(path)
    except TraceError as error:
        pytest.skip(str(error)[:80])


def hold(graph: DependencyGraph) -> None:
    """Assert the law on a job: no unexplained time, and no long pause, while its device works."""
    assert blamed_while_busy(graph) <= 2 * len(hg.critical_path(graph).vertices)  # 1 ns of rounding at each end
    assert longest_pause(graph) <= LONG_PAUSE_NS
    graph.check()
    assert hg.replay(graph).max_error_ns == 0


every_job = pytest.mark.parametrize(
    "path", [*TRACES, *OTHER_FORMATS], ids=lambda path: label(path) if path in JOBS else path.stem
)


@pytest.mark.slow
@every_job
def test_no_time_of_a_working_device_is_unexplained(path: Path) -> None:
    hold(opened(path))


@pytest.mark.slow
@given(traces(device=True))
@settings(max_examples=30)
def test_no_time_of_a_working_device_is_unexplained_in_drawn_jobs(events: list[Json]) -> None:
    graph = load(events)
    assert blamed_while_busy(graph) == 0


@pytest.mark.slow
@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_no_time_of_a_working_device_is_unexplained_in_simulated_jobs(regime: str, tmp_path: Path) -> None:
    simulate(REGIMES[regime]()).write(tmp_path, truth=False)
    hold(hg.load(tmp_path))


def paused_while_busy(graph: DependencyGraph) -> int:
    """Return for how long pauses of whole devices cover recorded work of the same device, ns."""
    work: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    for row in graph.select(kind=["computation", "communication", "memory"]).activities.tolist():
        lane = graph.lanes[graph.activities.lane[row]]
        if graph.activities.on_device[row]:
            work[lane.rank, lane.device].append((int(graph.time[2 * row]), int(graph.time[2 * row + 1])))
    stretches = {place: union(intervals) for place, intervals in work.items()}
    pauses = graph.device_pauses
    covered = 0
    for row in range(len(pauses)):
        rank, device = pauses.places[pauses.place[row]].tolist()
        begin = int(pauses.begin[row])
        covered += common(stretches.get((rank, device), []), begin, begin + int(pauses.length[row]))
    return covered


@pytest.mark.slow
@every_job
def test_no_time_of_a_working_device_is_a_pause(path: Path) -> None:
    graph = opened(path)
    assert paused_while_busy(graph) <= 2 * len(graph.device_pauses)


@pytest.mark.slow
@pytest.mark.parametrize("path", CPU_PAIRS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_no_time_of_a_working_thread_is_unexplained(path: Path) -> None:
    graph = hg.load(path)
    vertices = hg.critical_path(graph).vertices
    unexplained = vertices[(graph.gap[vertices] > 0) & np.isin(graph.gap_kind[vertices], ABSENT_IN_COMPLETE_TRACES)]
    at_work = graph.edges.activity[graph.binding[unexplained]]
    assert (at_work < 0).all(), "an operator ran meanwhile"


def alone_at_work(graph: DependencyGraph, since: int = 0) -> int:
    """Return for how long the only device of a job ran no communication but other work, ns; 0 for other jobs.

    It is 0 also for a device that this does not keep busy for 90 % of its window, which begins at `since` (ns).
    """
    if len(graph.ranks) != 1 or len(busy(graph)) != 1:
        return 0
    (works,) = busy(graph).values()
    works = [(begin, end) for begin, end in works if end > since]
    kernels = graph.select(kind="communication").activities.tolist()
    talks = union([(int(graph.time[2 * row]), int(graph.time[2 * row + 1])) for row in kernels])
    alone = sum(end - begin - common(talks, begin, end) for begin, end in works)
    return alone if alone >= 0.9 * (works[-1][1] - works[0][0]) else 0


@pytest.mark.slow
@every_job
def test_kernels_halved_on_a_busy_device_save_half_of_their_time(path: Path) -> None:
    graph = opened(path)
    if not (alone := alone_at_work(graph)):
        pytest.skip("no device that is busy for 90 % of its window")
    recorded = int(graph.time.max() - graph.time.min())
    job = hg.what_if(graph)
    others = job.scale(kind=["computation", "memory"], factor=0.0).run().makespan_ns
    if others > recorded / 2:
        pytest.skip("the host alone needs more than half of the time, so it would set the pace")
    halved = job.scale(kind=["computation", "memory"], factor=0.5).run()
    assert halved.saved_ns >= 0.97 * alone / 2
    assert bound_of(hg.critical_path(graph)).cause in ("computation", "memory")


@pytest.mark.slow
@every_job
def test_a_device_that_is_busy_for_its_own_window_bounds_the_job(path: Path) -> None:
    graph = opened(path)
    ends = ends_of_earlier_work(graph)
    since = max((int(graph.time[vertex]) for vertex in ends.values()), default=int(graph.time.min()))
    if alone_at_work(graph, since) < (int(graph.time.max()) - since) / 2:
        pytest.skip("no device that is busy for 90 % of its window, or the host works before and after for longer")
    if Results(graph).graph.ledger.lacks:
        pytest.skip("the recording lacks a part")
    assert bound_of(hg.critical_path(graph)).cause in ("computation", "memory")


@pytest.mark.parametrize("path", [path for path in CASES if path.parent.name.startswith("K09")], ids=lambda _: "K09")
def test_a_device_shared_with_another_process_is_not_the_hosts_fault(path: Path) -> None:
    results = Results(graph_of(path))
    claims = claims_of(results)
    assert results.bound.cause == "other_work"
    assert results.bound.causes["other_work"] == pytest.approx(95, abs=1)
    assert results.free["host"] < 0.06 * results.makespan_ns
    first = changes_of(results).first
    assert first is not None
    assert "nvidia-smi" in first.action
    assert not any("earlier" in sentence for sentence in sentences(claims))


@pytest.mark.parametrize("path", [path for path in TRACES if path.suffix == ".gz"][:12], ids=lambda path: path.stem)
def test_busy_time_is_that_of_the_raw_json(path: Path) -> None:
    graph = opened(path)
    ours = sorted(end - begin for works in busy(graph).values() for begin, end in works)
    assert sum(ours) == pytest.approx(sum(raw_busy_ns(path)), abs=len(ours) + 1)
