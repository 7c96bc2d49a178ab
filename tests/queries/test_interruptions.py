"""Whether interruptions of host code are found where they were planted, and nothing where code is long by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import EdgeKind
from htagraph.queries.interruptions import (
    InterruptedRanks,
    Interruptions,
    interrupted,
    interrupted_ranks,
    rare_pauses,
)  # fmt: skip
from tests.reach import DATASETS, SHARED, graph_of, raw_events
from tests.strategies import Json, kernel, launch, load, op, step

NAMES = 8
CALLS = 10
"""How often each name is called in a step."""
USUAL = 20
"""µs that each call takes."""
PAUSE = 5
"""µs between two calls."""
Where: TypeAlias = tuple[int, int, int]
NOWHERE: Mapping[Where, int] = MappingProxyType({})


def host_job(
    stops: Mapping[Where, int], ranks: int = 2, steps: int = 2, calls: int = CALLS, late: Mapping[Where, int] = NOWHERE
) -> dict[int, list[Json]]:
    """Return a job in which each call that is the n-th of a step, on a rank, is stopped for some µs.

    Args:
        stops: µs by (rank, step, call).
        ranks: how many.
        steps: how many.
        calls: how often each name is called in a step.
        late: µs by which code between operators is stopped, by (rank, step, call that comes next).
    """
    job = {}
    for rank in range(ranks):
        now, events = 0, []
        for number in range(steps):
            begin = now
            for call in range(NAMES * calls):
                now += late.get((rank, number, call), 0)
                lasts = USUAL + stops.get((rank, number, call), 0)
                events.append(op(f"aten::op{call % NAMES}", now, lasts))
                events += [
                    launch(now + 2, 5, 1 + len(events)),
                    kernel(f"k{call % NAMES}", now + 12, 2, 1 + len(events)),
                ]
                now += lasts + PAUSE
            events.append(step(number, begin, now - begin))
        job[rank] = events
    return job


def found(graph: DependencyGraph) -> list[tuple[int, str, float]]:
    """Return (rank, name, µs) of each interruption."""
    table = hg.interruptions(graph)
    return list(zip(table["rank"], table["name"], table["interrupted_us"].round(), strict=True))


PLACES = st.dictionaries(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(NAMES, NAMES * CALLS - 1)),
    st.integers(1_000, 40_000), min_size=5, max_size=12,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25)
@given(PLACES)
def test_what_was_planted_in_many_names_is_found_and_nothing_else(stops: dict[Where, int]) -> None:
    names = np.array([call % NAMES for _, _, call in stops])
    time = np.bincount(names, list(stops.values()), NAMES)
    places = [(number, call) for _, number, call in stops]
    alone = {call for _, call in places if sum(call == other for _, other in places) == 1}
    if (time > 0).sum() < 5 or time.max() > 0.45 * time.sum() or len(alone) < len(stops):
        return
    every = {(rank, f"aten::op{call % NAMES}") for rank, _, call in stops}
    told = found(load(host_job(stops)))
    assert {(rank, name) for rank, name, _ in told} == every
    assert len(told) == len(stops)


MANY = {
    (0, 0, 17): 9_000,
    (0, 1, 26): 5_000,
    (1, 0, 35): 7_000,
    (1, 1, 44): 4_000,
    (0, 1, 61): 8_000,
    (1, 0, 70): 6_000,
}


def test_each_has_its_usual_time_and_the_job_without_them_is_predicted() -> None:
    graph = load(host_job(MANY))
    table = hg.interruptions(graph)
    assert table["interrupted_us"].sum() == pytest.approx(sum(MANY.values()), rel=0.01)
    assert (table["usual_us"] <= USUAL).all()
    outcome = hg.what_if(graph).no_interruptions().run()
    alone = hg.what_if(load(host_job({}))).run()
    assert outcome.makespan_ns == pytest.approx(alone.makespan_ns, rel=0.01)


@pytest.mark.parametrize(
    ("why", "stops", "ranks", "steps"),
    [
        ("one name", {(0, 0, 8 * n + 3): 5_000 for n in range(1, 9)}, 2, 2),
        ("too few names", {(0, 0, 8 * n + n % 3): 5_000 for n in range(1, 9)}, 2, 2),
        ("same calls in all steps", {(r, s, 9 * n): 5_000 for n in range(1, 8) for r in (0, 1) for s in (0, 1)}, 2, 2),
        ("on all ranks of one step", {(r, 0, 9 * n): 5_000 for n in range(1, 8) for r in (0, 1)}, 2, 1),
        ("first calls", {(0, 0, n): 5_000 for n in range(8)}, 1, 2),
        ("too short", {where: 900 for where in MANY}, 2, 2),
    ],
)  # fmt: skip
def test_code_that_is_long_by_itself_is_not_interrupted(
    why: str, stops: dict[Where, int], ranks: int, steps: int
) -> None:
    assert found(load(host_job(stops, ranks, steps))) == [], why


def test_of_one_step_of_one_rank_only_frequent_operators_count() -> None:
    stops = {(0, 0, call): 5_000 for _, _, call in MANY}
    assert found(load(host_job(stops, 1, 1))) == []  # ten calls of each say too little
    assert len(found(load(host_job(stops, 1, 1, calls=30)))) == len(stops)


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_no_job_of_the_repository_is_interrupted(path: Path) -> None:
    assert not len(interrupted(graph_of(path)))


MEGATRON = SHARED / "megatron_tp8_a100"


@pytest.mark.slow
@pytest.mark.skipif(not MEGATRON.exists(), reason="no shared traces")
def test_those_of_a_real_job_are_long_gaps_in_its_files_too() -> None:
    graph = graph_of(MEGATRON)
    table = hg.interruptions(graph)
    assert table.groupby("rank").size().between(15, 45).all()
    events = raw_events(MEGATRON / "megatron_kineto_0.json.gz")
    host = [one for one in events if one.get("cat") in ("cpu_op", "cuda_runtime") and one.get("ph") == "X"]
    marks = np.sort([moment for one in host for moment in (one["ts"], one["ts"] + one["dur"])])
    gaps = np.diff(marks)
    gaps = gaps[gaps >= 1_000]
    mine = table.loc[table["rank"] == 0, "interrupted_us"].to_numpy()
    assert np.abs(mine[:, None] - gaps).min(axis=1).max() < 60  # µs: annotations and Python have moments of their own
    assert 0.85 < mine.sum() / gaps.sum() < 1  # those in first calls, and in waits, are left out


CALLS_INTERRUPTION_TIME = 80
STOPS = {17: 9_000, 26: 5_000, 35: 7_000, 44: 4_000, 61: 8_000, 70: 6_000}
"""µs by which operators of rank 0 are stopped after their launch."""
LAUNCHES = {22: 3_000, 54: 4_000}
"""µs by which launch calls of rank 0 are stopped."""


def job(stops: dict[int, int], launches: dict[int, int], early: int = 0, late: int = 0) -> DependencyGraph:
    """Return a job whose host is stopped in the second of two steps of rank 0.

    Args:
        stops: µs by the number of the operator's call.
        launches: µs by the number of the operator's call, in the launch inside.
        early: µs by which a kernel starts before the stop in its launch ends.
        late: µs by which it starts later than it could.
    """
    events: dict[int, list[Json]] = {}
    for rank in (0, 1):
        now, free = 0, 0
        mine: list[Json] = []
        for number in (0, 1):
            begin = now
            for call in range(CALLS_INTERRUPTION_TIME):
                here = rank == 0 and number == 1
                held = launches.get(call, 0) if here else 0
                lasts = 20 + held + (stops.get(call, 0) if here else 0)
                start = max(now + 12 + held - (early if held else 0) + (late if held else 0), free + 1)
                works = 30 if call + 1 in LAUNCHES else 2  # the stream is busy as the next call begins
                mine += [
                    op(f"aten::op{call % NAMES}", now, lasts), launch(now + 2, 5 + held, 1 + len(mine)),
                    kernel(f"k{call % NAMES}", start, works, 1 + len(mine)),
                ]  # fmt: skip
                now, free = now + lasts + 5, start + works
            mine.append(step(number, begin, now - begin))
        # the device has the last word, so that its pauses are on the path
        mine += [launch(now, 5, 9_001), kernel("last", max(now + 10, free + 1), 50_000, 9_001)]
        events[rank] = mine
    return load(events)


def gaps(graph: DependencyGraph) -> list[float]:
    """Return the pauses of streams that interruptions are, ms."""
    from htagraph.queries.interruptions import interruption_time

    acts, found = graph.activities, interruption_time(graph).gaps
    return [round(graph.gap[vertex] / 1e6, 1) for vertex in found if acts.on_device[vertex >> 1]]


def handed_over_late(graph: DependencyGraph) -> list[float]:
    """Return the latencies of launches that interruptions are, ms."""
    from htagraph.queries.interruptions import interruption_time

    edges, found = graph.edges, interruption_time(graph).edges
    latencies = found[edges.kind[found] == EdgeKind.LAUNCH]
    return [round(lag / 1e6, 1) for lag in edges.lag[latencies].tolist()]


def test_a_stream_that_waited_for_an_interrupted_launch_does_not_wait_without_it() -> None:
    graph = job(STOPS, LAUNCHES)
    assert handed_over_late(graph) == [3.0, 4.0]
    without = hg.what_if(graph).no_interruptions().run().makespan_ns
    assert without == pytest.approx(hg.what_if(job({}, {})).run().makespan_ns, abs=50_000)
    table = hg.opportunities(graph).set_index("name")["gain_us"]
    assert table["all host work"] >= table["interruptions of host code"]  # no part gains more than the whole
    assert hg.what_if(graph).infinite_host().run().makespan_ns <= without


@pytest.mark.parametrize(("early", "late"), [(1_000, 0), (0, 1_000)])
def test_a_kernel_that_does_not_start_as_the_interruption_ends_was_held_up_by_something_else(
    early: int, late: int
) -> None:
    graph = job(STOPS, LAUNCHES, early, late)
    assert len(hg.interruptions(graph)) == len(STOPS) + len(LAUNCHES)
    assert gaps(graph) == []


SLOTS = 60


def ranks_that_stop(stops: Callable[[int, int], bool], ranks: int = 4) -> InterruptedRanks:
    """Return the pattern of ranks of which each is stopped in some of sixty slots of 10 µs, by rank and slot."""
    graph = load({rank: [op(f"op{slot}", 10 * slot, 10) for slot in range(SLOTS)] for rank in range(ranks)})
    graph = graph.replace(clocks=())  # of ranks whose clocks are known
    return interrupted_ranks(graph, _stopped(graph, stops))


def _stopped(graph: DependencyGraph, stops: Callable[[int, int], bool]) -> Interruptions:
    acts = graph.activities
    slot = (acts.start - acts.start.min()) // 10_000
    rows = np.array([i for i in range(len(acts)) if stops(int(acts.rank[i]), int(slot[i]))], np.int64)
    lasts = np.full(len(rows), 10_000)
    return Interruptions(np.full(len(rows), -1), 2 * rows + 1, rows, lasts, lasts // 100)


def test_ranks_that_go_on_two_at_a_time_do_so_in_turn() -> None:
    found = ranks_that_stop(lambda rank, slot: (rank + slot) % 4 < 2)
    assert (found.pattern, found.going) == ("in turn", 2)
    assert found.shares == dict.fromkeys(range(4), 0.5)


def test_ranks_that_stop_at_the_same_moments_do_so_together() -> None:
    found = ranks_that_stop(lambda rank, slot: slot % 5 == 0 or (rank, slot) == (1, 7))
    assert found.pattern == "together"


def test_of_ranks_that_stop_at_any_time_nothing_is_told() -> None:
    chosen = np.random.default_rng(1).random((4, SLOTS)) < 0.3
    assert ranks_that_stop(lambda rank, slot: bool(chosen[rank, slot])).pattern == ""
    assert ranks_that_stop(lambda rank, slot: slot % 2 == 0, ranks=1).pattern == ""
    assert ranks_that_stop(lambda rank, slot: False).pattern == ""


@pytest.mark.slow
@pytest.mark.skipif(not MEGATRON.exists(), reason="no shared traces")
def test_eight_ranks_of_a_real_job_go_on_two_by_two() -> None:
    graph = graph_of(MEGATRON)
    ranks = interrupted_ranks(graph, interrupted(graph))
    assert (ranks.pattern, ranks.going) == ("in turn", 2)


def test_a_single_pause_is_rare_where_the_same_code_hardly_ever_pauses(tmp_path: Path) -> None:
    """One pause of 50 ms in four steps counts; a pause that each step has is the code's own."""
    once = load(host_job({}, ranks=1, steps=4, late={(0, 2, 5): 50_000})[0], tmp_path)
    (found,) = rare_pauses(once).tolist()
    assert once.gap[found] >= 50_000_000
    always = load(host_job({}, ranks=1, steps=4, late={(0, at, 5): 50_000 for at in range(4)})[0], tmp_path)
    assert not len(rare_pauses(always))
