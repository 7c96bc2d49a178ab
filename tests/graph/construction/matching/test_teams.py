"""The test of time: true members pass it, members of another run do not."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.construction.matching import teams as trial
from htagraph.graph.construction.matching.members import Members, members_of
from htagraph.graph.construction.matching.teams import Team, aligned, times
from htagraph.graph.dependency_graph import DependencyGraph
from tests.graph.construction.matching.test_match import made
from tests.host_jobs import host_job, tensor_args, transfer
from tests.reach import SHARED
from tests.strategies import OTHER, Json, annotation, op, step


def meetings(seed: int, ranks: int, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return (arrivals, ends) by (rank, meeting), ns, whole."""
    draw = np.random.default_rng(seed)
    arrival = np.zeros((ranks, count))
    end, now = arrival.copy(), np.zeros(ranks)
    for i in range(count):
        arrival[:, i] = now + draw.exponential(80_000, ranks) + 5_000
        end[:, i] = arrival[:, i].max() + draw.uniform(20_000, 60_000) + draw.uniform(0, 1_500, ranks)
        now = end[:, i] + draw.uniform(1_000, 300_000)
    return arrival.astype(np.int64), end.astype(np.int64)


def team_of(arrival: np.ndarray, end: np.ndarray) -> tuple[Members, Team]:
    """Return all-reduces at some times, and the team in which the i-th of each rank are one collective."""
    ranks, count = arrival.shape
    acts, names = made({r: [list(zip(arrival[r].tolist(), end[r].tolist(), strict=True))] for r in range(ranks)})
    return members_of(acts, names), Team(np.arange(ranks * count).reshape(ranks, count), "world", "pg+order", ranks)


@pytest.mark.parametrize("skew", [0, 4_000_000])
def test_those_who_met_pass_whatever_their_clocks(skew: int) -> None:
    arrival, end = meetings(1, 4)
    offset = skew * np.arange(4)[:, None]
    members, team = team_of(arrival + offset, end + offset)
    kept, complaints = trial.tested(members, [team])
    assert complaints == []
    assert kept[0].rows.tolist() == team.rows.tolist()


def test_the_rank_of_another_run_is_left_out_and_named() -> None:
    arrival, end = meetings(1, 4)
    other_arrival, other_end = meetings(9, 4)
    arrival[2], end[2] = other_arrival[2], other_end[2]
    members, team = team_of(arrival, end)
    kept, complaints = trial.tested(members, [team])
    assert members.rank[kept[0].rows[:, 0]].tolist() == [0, 1, 3]
    assert [(what, rank) for what, _, _, rank in complaints] == [("collectives_refused", 2)]


def test_two_that_never_met_are_refused_as_a_group() -> None:
    arrival, end = (np.stack([one[0], other[1]]) for one, other in zip(meetings(1, 2), meetings(9, 2), strict=True))
    members, team = team_of(arrival, end)
    kept, complaints = trial.tested(members, [team])
    assert kept == []
    assert [(what, count, rank) for what, _, count, rank in complaints] == [("collectives_refused", 60, -1)]


def test_offsets_and_drift_are_taken_off_the_times() -> None:
    arrival, end = meetings(1, 3)
    factor, offset = 1 + 1e-4 * np.arange(3)[:, None], 5_000_000 * np.arange(3)[:, None]
    members, team = team_of((arrival * factor + offset).astype(np.int64), (end * factor + offset).astype(np.int64))
    raw, _ = times(members, team.rows)
    assert np.ptp(raw, axis=0).min() > 5_000_000
    straight, _ = aligned(*times(members, team.rows), np.ones(60, np.bool_))
    assert np.median(np.ptp(straight, axis=0)) < 2_500


def test_groups_on_host_threads_are_kept_however_far_apart_they_end() -> None:
    """The last bytes reach one rank 18 ms after another, on a slow link, and whoever arrives late ends late."""
    arrival, end = meetings(1, 3)
    end = end + np.array([0, 18_000_000, 400_000])[:, None] + (arrival - arrival.min(axis=0)) // 2
    members, team = team_of(arrival, end)
    kept, complaints = trial.tested(replace(members, on_host=np.ones(len(members), np.bool_)), [team])
    assert complaints == []
    assert kept[0].rows.tolist() == team.rows.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_what_the_others_show_is_found_without_comparing_all_pairs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 50, (7, 40)).astype(np.float64)
    values[draw.random(values.shape) < 0.3] = np.nan
    middle = trial._median_of_others(values)
    known = np.where(np.isfinite(values), values, -np.inf)
    largest = trial._largest_of_others(known)
    for line in range(len(values)):
        others = np.delete(values, line, axis=0)
        some = np.isfinite(values[line]) & np.isfinite(others).any(axis=0)
        assert np.array_equal(np.isfinite(middle[line]), some)
        assert np.array_equal(middle[line, some], np.nanmedian(others[:, some], axis=0))
        assert np.array_equal(largest[line], np.delete(known, line, axis=0).max(axis=0))


_PAIRS = SHARED.parent / "real_pairs" / "data"


def pairs(graph: DependencyGraph) -> set[tuple[tuple[int, float], tuple[int, float]]]:
    """Return the matched pairs as ((rank, start of the one), (rank, start of the other)), µs since the origin."""
    matches, acts = graph.matches, graph.activities
    assert matches is not None
    out = set()
    for number in range(matches.count):
        rows = matches.activity[matches.collective == number]
        one, other = sorted(
            (int(acts.rank[row]), round(float(acts.start[row] - graph.origin_ns) / 1000, 1)) for row in rows
        )
        out.add((one, other))
    return out


def hop(source: int, target: int, at: float, ready: float, end: float, **more: Any) -> tuple[list[Json], list[Json]]:
    """Return what a send and its receive record: posted `at` and `ready`, the data is there at `end`."""
    return transfer("send", target, at, max(at, ready) + 2, **more), transfer("recv", source, ready, end, **more)


def test_the_nth_send_belongs_to_the_nth_receive_however_far_apart_they_end() -> None:
    first, second = hop(0, 1, 100, 20, 5_000), hop(0, 1, 200, 6_000, 12_000)
    graph = host_job({0: first[0] + second[0], 1: first[1] + second[1]})
    assert pairs(graph) == {((0, 80.1), (1, 0.1)), ((0, 180.1), (1, 5980.1))}
    assert {clock.offset_ns for clock in graph.clocks} == {0}, "ends that lie a transfer apart say nothing about clocks"
    assert hg.replay(graph).max_error_ns == 0


def test_tags_are_matched_apart() -> None:
    a, b = hop(0, 1, 100, 50, 300, tag=1), hop(0, 1, 150, 400, 900, tag=2)
    graph = host_job({0: a[0] + b[0], 1: a[1] + b[1]})
    assert graph.matches is not None
    assert set(graph.matches.group) == {"0→1 tag 1", "0→1 tag 2"}


def test_both_sides_wait_and_a_send_does_not_take_as_long_as_its_transfer() -> None:
    there = hop(0, 1, 100, 2_000, 9_000)
    graph = host_job({0: there[0], 1: there[1]})
    parts = hg.collectives(graph).set_index("rank")
    assert parts.loc[0, "wait_us"] == pytest.approx(1_900, abs=1)
    assert parts.loc[1, "wait_us"] == 0
    assert parts["transfer_us"].sum() + parts["excess_us"].sum() == pytest.approx(7_002, abs=1)


@pytest.mark.parametrize("lost", [1, 2])
def test_steps_align_a_recording_that_begins_later(lost: int) -> None:
    sends: list[Json] = []
    receives: list[Json] = []
    for number in range(4):
        a, b = hop(0, 1, 1_000 * number + 100, 1_000 * number + 50, 1_000 * number + 150)
        sends += [step(number, 1_000 * number, 900), *a]
        receives += [step(number, 1_000 * number, 900), *b] if number >= lost else []
    graph = host_job({0: sends, 1: receives})
    acts, matches = graph.activities, graph.matches
    assert matches is not None
    assert matches.count == 4 - lost
    for number in range(matches.count):
        assert len(set(acts.step[matches.activity[matches.collective == number]].tolist())) == 1


def test_pairs_that_end_before_they_begin_are_refused() -> None:
    """The counts agree, but the receives were over long before the sends: of another run."""
    sends = [each for i in range(8) for each in transfer("send", 1, 10_000 * (i + 1) ** 2, 10_000 * (i + 1) ** 2 + 5)]
    receives = [each for i in range(8) for each in transfer("recv", 0, 100 * i + 10, 100 * i + 20)]
    graph = host_job({0: sends, 1: receives})
    assert pairs(graph) == set()


def test_a_send_left_to_itself_is_no_work_and_takes_no_longer_than_its_receive() -> None:
    """Rank 0 sends, computes for 10 ms and only then waits for the send; a longer computation costs what it takes."""
    work = op("aten::mm", 200, 10_000)
    graph = host_job({0: [*transfer("send", 1, 100, 10_300), work], 1: transfer("recv", 0, 50, 150)})
    twice = hg.what_if(graph).scale(factor=2, name="aten::mm").run()
    assert twice.makespan_ns - twice.baseline_ns == pytest.approx(10_000_000, rel=1e-3)
    slow = hg.what_if(graph).scale_network(factor=10).run()
    assert slow.makespan_ns - slow.baseline_ns < 1_000_000, "the send was over long before anybody waited for it"


def test_a_receive_may_end_before_the_record_of_its_send_begins() -> None:
    """gloo hands the data over first; the thread was put aside before it wrote down that it does."""
    job = {0: transfer("send", 1, 1_500, 1_510, asked=1_000), 1: transfer("recv", 0, 50, 700)}
    graph = host_job(job)
    late = (
        hg.what_if(host_job({0: [op("aten::mm", 0, 400), *job[0]], 1: job[1]})).scale(factor=2, name="aten::mm").run()
    )
    assert pairs(graph)
    acts = late.graph.activities
    receive = next(i for i in range(len(acts)) if late.graph.names[acts.name[i]] == "gloo:recv")
    moved = late.time[2 * receive + 1] - late.baseline.time[2 * receive + 1]
    assert moved == pytest.approx(400_000, abs=20_000), "the receive waits for the operator that sent"


def gather(rank: int, at: float) -> list[Json]:
    """Return a gather to rank 0 and a broadcast from it; only the root waits, then only the others do."""
    calls = [op("c10d::gather_", at, 5), op("c10d::broadcast_", at + 100, 5, **tensor_args(8, 0, 0, "True", -1))]
    ends = (at + 90, at + 1_010) if rank else (at + 95, at + 1_005)
    begins = (at + 10 + rank, at + 110 if rank else at + 1_000)
    names = ("gloo:gather", "gloo:broadcast")
    return calls + [annotation(name, a, b - a, OTHER) for name, a, b in zip(names, begins, ends, strict=True)]


def test_collectives_without_common_ends_are_matched_by_their_place_in_the_step() -> None:
    job = {
        rank: [each for i in range(3) for each in (step(i, 5_000 * i, 4_000), *gather(rank, 5_000 * i + 50.0 + rank))]
        for rank in range(3)
    }
    job[2] = [each for each in job[2] if each["ts"] >= 5_000]  # its recording begins a step later
    graph = host_job(job)
    assert graph.matches is not None
    assert graph.matches.count == 6
    size = np.bincount(graph.matches.collective)
    assert sorted(size.tolist()) == [2, 2, 3, 3, 3, 3]
    parts = hg.collectives(graph)
    waited = parts[(parts["op"] == "broadcast") & (parts["rank"] > 0)]
    assert (waited["last_rank"] == 0).all(), "the others wait for the root of a broadcast"
    assert (waited["wait_us"] > 800).all()


def truth_of(folder: Path, ranks: int) -> set[frozenset[tuple[int, int]]]:
    """Return which events are a pair, as (rank, position in the file): by peer, tag and order in the raw JSON."""
    queue: dict[tuple[int, int, str, str], list[tuple[int, int]]] = defaultdict(list)
    for rank in range(ranks):
        events = json.loads(gzip.decompress((folder / f"rank-{rank}.json.gz").read_bytes()))["traceEvents"]
        chosen = [(each["ts"], i, each) for i, each in enumerate(events) if each.get("ph") == "X"]
        calls = [
            each
            for each in sorted(chosen, key=lambda each: each[0])
            if each[2]["name"] in ("c10d::send", "c10d::recv_")
        ]
        works = [
            each for each in sorted(chosen, key=lambda each: each[0]) if each[2]["name"] in ("gloo:send", "gloo:recv")
        ]
        for (_, _, call), (_, at, work) in zip(calls, works, strict=True):
            peer, tag = call["args"]["Concrete Inputs"][2:4]
            way = work["name"].removeprefix("gloo:")
            ends = (rank, int(peer)) if way == "send" else (int(peer), rank)
            queue[(*ends, tag, way)].append((rank, at))
    return {
        frozenset(pair)
        for (source, target, tag, way), sends in queue.items() if way == "send"
        for pair in zip(sends, queue[source, target, tag, "recv"], strict=True)
    }  # fmt: skip


@pytest.mark.skipif(not _PAIRS.exists(), reason="no shared recordings")
@pytest.mark.parametrize("name", ["pipe2_network_half", "pipe2_stage_half"])
def test_recorded_pipelines_are_matched_without_an_error(name: str) -> None:
    folder = _PAIRS / name / "A1"
    graph = hg.load(folder)
    matches, acts = graph.matches, graph.activities
    assert matches is not None
    got = set()
    for number in range(matches.count):
        rows = matches.activity[matches.collective == number]
        got.add(frozenset((int(acts.rank[row]), int(acts.event[row])) for row in rows))
    assert got == truth_of(folder, 2)
