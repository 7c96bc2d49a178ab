"""COLLECTIVE edges against the simulator's truth, and the JOINs that they lead through."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.core.kinds import ActivityKind
from htagraph.graph.clocks import Clock
from htagraph.graph.construction.matching.match import match
from htagraph.graph.matches import with_joins
from htagraph.simulate import Job, Simulated, simulate
from tests.graph.construction.matching.test_match import OFFSETS, loaded, made
from tests.host_jobs import host_job
from tests.reach import SHARED
from tests.strategies import Json, complete, kernel, launch, op, runtime

JOBS = {
    "data": Job(ranks=4, steps=2, clock_offsets_us=OFFSETS[:4]),
    "fsdp": Job(ranks=4, steps=2, data_strategy="fsdp"),
    "rooted": Job(ranks=4, steps=4, broadcast_buffers=True, jitter=0.1),
    "loose": Job(ranks=4, steps=4, all_to_all=True, jitter=0.1),
}


def awaited(graph: DependencyGraph) -> dict[int, set[int]]:
    """Return for each member (activity) whose arrivals (activities) its end waits for, along the edges of meetings."""
    edges = graph.edges
    into = defaultdict(list)
    meets = np.isin(edges.kind, (EdgeKind.COLLECTIVE, EdgeKind.P2P))
    for source, target in zip(edges.source[meets].tolist(), edges.target[meets].tolist(), strict=True):
        into[target].append(source)
    join = graph.activities.kind == ActivityKind.JOIN

    def arrivals(vertex: int) -> set[int]:
        return {each for source in into[vertex] for each in (arrivals(source) if join[source // 2] else {source // 2})}

    return {vertex // 2: arrivals(vertex) for vertex in list(into) if vertex % 2 and not join[vertex // 2]}


def truly_awaited(done: Simulated, graph: DependencyGraph) -> dict[int, set[int]]:
    """Return the same as the simulator knows it."""
    acts = graph.activities
    row = {(int(acts.rank[i]), int(acts.event[i])): i for i in range(acts.ranked) if acts.event[i] >= 0}
    found: dict[int, set[int]] = defaultdict(set)
    for one in done.truth.dependencies:
        if one.kind in ("collective", "p2p"):
            found[row[one.rank_v, one.event_v]].add(row[one.rank_u, one.event_u])
    return found


def assert_waits_are_true(done: Simulated, graph: DependencyGraph) -> None:
    truth, mine = truly_awaited(done, graph), awaited(graph)
    assert set(mine) == set(truth)
    for member, arrivals in truth.items():
        assert arrivals <= mine[member] <= arrivals | {member}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data", "fsdp"])
def test_ends_wait_for_all_arrivals_of_a_barrier(name: str, tmp_path: Path) -> None:
    done = simulate(JOBS[name])
    assert_waits_are_true(done, loaded(done, tmp_path))


@pytest.mark.slow
def test_a_broadcast_waits_for_its_root_only(tmp_path: Path) -> None:
    done = simulate(JOBS["rooted"])
    graph = loaded(done, tmp_path)
    truth, mine = truly_awaited(done, graph), awaited(graph)
    for member, arrivals in truth.items():
        assert mine[member] - {member} == arrivals - {member}


@pytest.mark.slow
def test_an_all_to_all_waits_for_nobody_who_comes_too_late(tmp_path: Path) -> None:
    done = simulate(JOBS["loose"])
    graph = loaded(done, tmp_path)
    truth, mine, time = truly_awaited(done, graph), awaited(graph), graph.time
    loose = {each.id for each in done.truth.collectives if each.kind == "all_to_all"}
    assert loose
    ends_early = 0
    for member, arrivals in mine.items():
        assert truth[member] - {member} <= arrivals  # what it did wait for is never missed
        assert all(time[2 * each] <= time[2 * member + 1] for each in arrivals)
        ends_early += len(arrivals) < 4
    assert ends_early > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_joins_lie_at_the_last_arrival_and_edges_are_tight(name: str, tmp_path: Path) -> None:
    graph = loaded(simulate(JOBS[name]), tmp_path)
    acts, matches, time = graph.activities, graph.matches, graph.time
    assert matches is not None
    assert acts.ranked + len(np.unique(matches.join)) == len(acts)
    assert (acts.duration[acts.ranked :] == 0).all()
    for join in np.unique(matches.join):
        fed = matches.activity[
            (matches.feeds <= join) & (matches.collective == matches.collective[matches.join == join][0])
        ]
        fed = fed[matches.feeds[np.isin(matches.activity, fed)] >= 0]
        assert time[2 * join] == time[2 * fed].max()
    edges = graph.edges
    leaving = (edges.kind == EdgeKind.COLLECTIVE) & (edges.target % 2 == 1)
    assert (edges.lag[leaving] >= 0).all()
    assert (time[edges.source] + edges.lag <= time[edges.target]).all()
    assert (np.isin(edges.activity[leaving], matches.activity)).all()
    graph.check()


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="no shared traces")
@pytest.mark.parametrize(
    "folder", ["megatron_tp8_a100", "torchrec_v100_equal", "torchrec_v100_leading_missing", "gloo4_cpu"]
)
def test_no_edge_of_real_traces_is_refused(folder: str) -> None:
    graph = hg.load(SHARED / folder)
    assert graph.matches is not None
    of_meetings = [issue for issue in graph.issues if issue.what == "edge_refused" and "collective" in issue.detail]
    assert not of_meetings
    arriving = (graph.edges.kind == EdgeKind.COLLECTIVE) & (graph.edges.target % 2 == 0)
    assert arriving.sum() >= len(graph.matches.activity)
    graph.check()


def test_a_short_transfer_is_no_reason_to_miss_an_arrival() -> None:
    """Uneven all-to-alls: how long the largest take says nothing about the smallest, which came once only."""
    draw = np.random.default_rng(1)
    streams: dict[int, list[list[tuple[int, int]]]] = {rank: [[]] for rank in range(3)}
    transfers = np.full((20, 3), 100_000)
    transfers[10] = 20_000
    sizes = transfers // 10
    for i in range(20):
        arrivals = 3_000_000 * i + draw.permutation([0, 300_000, 700_000])
        for rank in range(3):
            streams[rank][0].append((int(arrivals[rank]), int(arrivals.max() + transfers[i, rank])))
    acts, _ = made(streams)
    names = ("ncclDevKernel_AllToAll(ncclDevComm*)",)
    found = match(acts, names, {})
    assert set(found.op) == {"all_to_all"}
    told = replace(found, members=replace(found.members, bytes=sizes.T.ravel()))
    _, matches = with_joins(acts, told, [Clock(rank) for rank in range(3)])
    assert len(matches.activity) == 60
    for one in range(20):
        last = matches.join[matches.collective == one]
        assert (last == last[-1]).all()  # all waited for the last to arrive


def test_a_backend_that_waits_for_its_device_transfers_after_that() -> None:
    """gloo waits for the copy of a device's tensor inside its record; a longer kernel before it delays the transfer."""

    def rank(lasts: int) -> list[Json]:
        tid = 77
        return [
            launch(0, 1, 1), kernel("work", 2, lasts, 1), op("c10d::allreduce_", 100, 20),
            complete("user_annotation", "gloo:all_reduce", 130, 270, tid),
            runtime("cudaDeviceSynchronize", 135, 5, 2, tid), op("aten::copy_", 390, 5, tid), op("after", 410, 10),
        ]  # fmt: skip

    graph = host_job({0: rank(20), 1: rank(20)})
    before = hg.what_if(graph).run().makespan_ns
    for kernels in (5, 10):  # 100 and 200 µs: over in time, and 62 µs longer than the wait began
        outcome = hg.what_if(graph).scale(factor=kernels, name="work").run()
        assert outcome.makespan_ns - before == max(0, 2_000 + 20_000 * kernels - 140_000)
