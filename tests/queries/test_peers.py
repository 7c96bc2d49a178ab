"""Which ranks are compared: replicas and shards with each other, stages of a pipeline with the same stage elsewhere."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.peers import alike, lane_roles, peers, rank_roles
from htagraph.simulate import Job
from tests.analyses.test_stragglers import run
from tests.host_jobs import host_job, transfer
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, op, step

NO_EDGES = pd.DataFrame({"source": [], "target": []})


def _frames(rows: list[tuple[int, str, str, int, int]]) -> DependencyGraph:
    """Return the graph of (rank, lane, name, step, start) rows."""
    frame = pd.DataFrame(rows, columns=["rank", "lane", "name", "step", "start_ns"]).assign(duration_ns=1)
    return DependencyGraph.from_frames(frame, NO_EDGES)


def _groups(group: np.ndarray) -> set[frozenset[int]]:
    found = defaultdict(set)
    for activity, number in enumerate(group.tolist()):
        if number >= 0:
            found[number].add(activity)
    return {frozenset(members) for members in found.values()}


@pytest.mark.slow
@pytest.mark.parametrize("across", ["rank", "step"])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from(("x", "y")), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 99)
        ),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=80)
def test_peers_are_the_kth_of_a_name_within_step_and_lane(
    across: str, rows: list[tuple[int, str, str, int, int]]
) -> None:
    # lanes told apart by what runs on them, so that roles are plain
    marks = [(rank, lane, lane, 0, 0) for rank in range(3) for lane in "xy"]
    graph = _frames([*marks, *((rank, lane, lane + name, number, start) for rank, lane, name, number, start in rows)])
    acts = graph.activities
    place: dict[tuple[int, ...], int] = defaultdict(int)
    wanted = defaultdict(set)
    for i in sorted(range(len(acts)), key=lambda i: (acts.start[i], i)):
        rank, number, name = int(acts.rank[i]), int(acts.step[i]), int(acts.name[i])
        key = (number, name) if across == "rank" else (rank, name)
        wanted[(*key, place[rank, number, name])].add(i)
        place[rank, number, name] += 1
    expected = {frozenset(members) for members in wanted.values() if len(members) > 1}
    assert _groups(peers(graph, across)) == expected  # type: ignore[arg-type]


def test_every_activity_of_a_job_without_missing_events_has_one_peer_per_rank() -> None:
    graph = graph_of(DATA / "demo")
    acts, group = graph.activities, peers(graph)
    left = ~np.isin(acts.kind, (ActivityKind.BOUNDARY, ActivityKind.JOIN))
    assert (group[left] >= 0).all()
    for column in (acts.name, acts.kind, acts.step):
        pairs = np.unique(np.stack([group[left], column[left].astype(np.int64)]), axis=1)
        assert pairs.shape[1] == len(np.unique(group[left]))
    pairs, counts = np.unique(np.stack([group[left], acts.rank[left].astype(np.int64)]), axis=1, return_counts=True)
    assert (counts == 1).all()
    assert pairs.shape[1] == len(graph.ranks) * len(np.unique(group[left]))


@pytest.mark.slow
def test_the_same_work_has_the_same_number_on_all_ranks_and_in_all_steps() -> None:
    graph = graph_of(DATA / "demo")
    acts, role = graph.activities, lane_roles(graph)
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    names, places, both = defaultdict(set), defaultdict(set), alike(graph)
    for i in np.lexsort((acts.start, acts.rank)).tolist():
        if acts.step[i] < 0 or acts.kind[i] in (ActivityKind.BOUNDARY, ActivityKind.JOIN):
            continue
        name = -1 if acts.kind[i] == ActivityKind.STEP else int(acts.name[i])
        what = name, int(acts.kind[i]), int(role[acts.lane[i]])
        key = (int(acts.rank[i]), int(acts.step[i]), what)
        names[what].add(int(both[0][i]))
        places[what, seen[key]].add(int(both[1][i]))
        seen[key] += 1
    for found in (names, places):
        assert all(len(numbers) == 1 for numbers in found.values())
        assert len(set.union(*found.values())) == len(found)


def test_what_the_graph_added_has_no_peers() -> None:
    graph = graph_of(DATA / "demo")
    for number in (peers(graph), *alike(graph)):
        assert (number[graph.activities.kind == ActivityKind.BOUNDARY] == -1).all()


def test_an_instance_that_is_missing_leaves_those_of_other_names_and_steps_alone() -> None:
    whole = [(0, "s", name, number, 10 * number + i) for number in (1, 2) for i, name in enumerate("abab")]
    broken = [(1, *row[1:]) for row in whole if row[4] != 12]  # the second "a" of step 1
    graph = _frames(whole + broken)
    acts, group = graph.activities, peers(graph)
    alone = np.flatnonzero(group < 0)
    assert [(graph.names[acts.name[i]], acts.start[i]) for i in alone] == [("a", 12)]


def test_before_the_first_step_instances_are_counted_from_its_end() -> None:
    def rank(missing: int) -> list[Json]:
        ops = [op("init", 10 * i, 5) for i in range(missing, 4)]
        return [*ops, step(1, 100, 50), op("work", 110, 5)]

    graph = load({0: rank(0), 1: rank(1)})
    acts, group = graph.activities, peers(graph)
    first = graph.select(name="init", rank=0).activities
    assert (group[first] >= 0).tolist() == [False, True, True, True]
    for one in first[1:]:
        members = np.flatnonzero(group == group[one])
        assert len(set((acts.start[members] - acts.start[members[0]]).tolist())) == 1


def test_streams_of_other_numbers_and_threads_of_other_ids_have_the_same_role() -> None:
    def rank(compute: int, talk: int, thread: int) -> list[Json]:
        return [
            op("aten::mm", 0, 20, tid=thread), launch(2, 3, 1, tid=thread), launch(6, 3, 2, tid=thread),
            kernel(COMPUTE, 10, 5, stream=compute, correlation=1),
            kernel(COMMUNICATE, 12, 5, stream=talk, correlation=2),
        ]  # fmt: skip

    graph = load({0: rank(7, 20, 1), 1: rank(20, 31, 5)})
    assert (peers(graph)[: graph.activities.ranked] >= 0).all()
    role = lane_roles(graph)
    by_rank = [sorted(role[i] for i, lane in enumerate(graph.lanes) if lane.rank == rank) for rank in (0, 1)]
    assert by_rank[0] == by_rank[1] == [0, 1, 2]


def test_lanes_that_do_something_else_have_another_role() -> None:
    graph = _frames([(0, "x", "a", 0, 0), (1, "x", "b", 0, 0)])
    assert len(set(lane_roles(graph).tolist())) == 2
    assert (peers(graph) == -1).all()


def test_a_graph_of_nothing_has_no_peers() -> None:
    assert len(peers(hg.DependencyGraph.from_frames(pd.DataFrame({"duration_ns": []}, dtype=int), NO_EDGES))) == 0


def test_an_unknown_direction_is_an_error() -> None:
    with pytest.raises(ValueError, match="choose 'rank' or 'step'"):
        peers(graph_of(DATA / "demo"), across="time")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "roles"),
    [
        (Job(ranks=4, steps=2, layers=2), [0, 0, 0, 0]),
        (Job(ranks=4, steps=2, layers=2, tp=2), [0, 0, 0, 0]),
        (Job(ranks=4, steps=2, layers=2, pp=2), [0, 0, 1, 1]),
        (Job(ranks=2, steps=2, layers=2, pp=2), [0, 1]),
    ],
)
def test_ranks_of_one_stage_have_one_role(job: Job, roles: list[int]) -> None:
    graph = run(job)
    found, _ = rank_roles(graph)
    sent = [(a, b) for a in range(job.ranks) for b in range(job.ranks) if roles[a] == roles[b]]
    assert sent == [(a, b) for a in range(job.ranks) for b in range(job.ranks) if found[a] == found[b]]


def test_more_work_of_the_same_is_no_other_role_but_another_program_is() -> None:
    train = [op(name, 10 * i, 5) for i, name in enumerate(["aten::mm", "aten::relu"] * 10)]
    extra = [op("aten::mm", 1000 + 10 * i, 5) for i in range(40)]
    serve = [op(f"serve::{i}", 10 * i, 5) for i in range(20)]
    found, _ = rank_roles(load({0: train, 1: train + extra, 2: train, 3: serve}))
    assert found[0] == found[1] == found[2] != found[3]
    found, _ = rank_roles(load({0: train, 1: train + extra}))
    assert found[0] == found[1]


def passed_on(ranks: int, *, round_trip: bool, lost: int = 0) -> dict[int, list[Json]]:
    """Return a job of three steps in which each rank sends to the next one, the last one to the first in a round trip.

    Args:
        ranks: how many.
        round_trip: True for a ring, False for the stages of a pipeline.
        lost: how many steps the recording of rank 1 begins late.
    """
    events: dict[int, list[Json]] = {rank: [] for rank in range(ranks)}
    for number in range(3):
        begin = 1_000 * number
        for rank, each in events.items():
            if rank == 1 and number < lost:
                continue
            each += [step(number, begin, 900), op("aten::mm", begin + 10, 50)]
            if round_trip or rank:
                each += transfer("recv", (rank - 1) % ranks, begin + 300, begin + 400)
            if round_trip or rank < ranks - 1:
                each += transfer("send", (rank + 1) % ranks, begin + 100, begin + 110)
    return events


@pytest.mark.parametrize("lost", [0, 1])
def test_ranks_that_send_in_a_ring_do_the_same_work(lost: int) -> None:
    found, _ = rank_roles(host_job(passed_on(4, round_trip=True, lost=lost)))
    assert len(set(found.tolist())) == 1


def test_ranks_that_send_in_a_row_are_stages() -> None:
    found, pipeline = rank_roles(host_job(passed_on(4, round_trip=False)))
    assert len(set(found.tolist())) == 4
    assert len(set(pipeline.tolist())) == 1


@pytest.mark.slow
def test_what_is_in_a_region_of_one_rank_alone_is_no_peer_of_what_others_do() -> None:
    """Rank 2 of a recorded job computes products in `extra_work`, before those that all ranks have."""
    graph = graph_of(DATA / "gloo_ddp")
    names = np.array(graph.names)[graph.activities.name]
    group, extra = peers(graph), graph.tree.inside(names == "extra_work")
    assert extra.any()
    assert (group[extra] == -1).all()
    assert (group[(names == "aten::mm") & ~extra] >= 0).all()
