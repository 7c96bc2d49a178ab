"""Arrivals, JOINs and the ends behind them, of a job of two ranks whose answer is obvious."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.arrivals import blocked_since, meetings, worked_until
from htagraph.graph.matches import Matches
from tests.host_jobs import host_job, transfer
from tests.strategies import COMMUNICATE, Json, annotation, kernel, launch, load, op
from tests.waiting import by_hand


def rank_of(late: int) -> list[Json]:
    """Return eight all-reduces that a rank enters `late` µs after the other, and leaves at the same time."""
    events: list[Json] = []
    for i in range(8):
        at = 1000 * i + 37 * i * i
        arrival = at + 10 + late * (1 + i % 3)
        events += [launch(at, 2, i + 1), kernel(COMMUNICATE, arrival, at + 200 - arrival, i + 1, stream=20)]
    return events


def test_every_arrival_leads_to_the_join_and_the_join_to_every_end() -> None:
    graph = load({0: rank_of(0), 1: rank_of(40)})
    acts, edges, matches = graph.activities, graph.edges, graph.matches
    assert matches is not None
    assert matches.count == 8
    joins = (acts.kind == ActivityKind.JOIN).nonzero()[0].tolist()
    assert len(joins) == 8
    of_kind = edges.kind == EdgeKind.COLLECTIVE
    pairs = set(zip(edges.source[of_kind].tolist(), edges.target[of_kind].tolist(), strict=True))
    for number, join in enumerate(joins):
        members = matches.activity[matches.collective == number].tolist()
        assert {(2 * member, 2 * join) for member in members} <= pairs
        assert {(2 * join, 2 * member + 1) for member in members} <= pairs
        assert graph.time[2 * join] == max(graph.time[2 * member] for member in members), "the last to arrive"
    assert len(pairs) == 8 * 4
    leaving = of_kind & (edges.target % 2 == 1)
    assert (graph.time[edges.source[leaving]] + edges.lag[leaving] == graph.time[edges.target[leaving]]).all()
    assert set(edges.provenance[of_kind].tolist()) == {Provenance.INFERRED}, "by order, not by ids"


def test_without_matches_there_are_no_edges() -> None:
    job = by_hand([op("a", 0, 1)])
    assert len(meetings(job, EdgeKind.COLLECTIVE, pairs=False)) == 0
    graph = load({0: rank_of(0), 1: rank_of(40)})
    assert graph.matches is not None
    assert not (graph.edges.kind == EdgeKind.P2P).any(), "all-reduces are no sends and receives"
    assert Matches.none().count == 0


def test_the_wait_of_a_collective_on_a_host_ends_where_it_copies_what_it_received() -> None:
    """Rank 1 comes 500 µs later; both prepare, communicate until 700, copy for 20 µs and end."""

    def rank(late: int) -> list[Json]:
        events: list[Json] = []
        for i in range(6):
            at = 2000 * i + 41 * i * i
            events += [op("gloo:all_gather", at + late, 730 - late), op("aten::view", at + late + 2, 3)]
            events += [op("aten::copy_", at + 700, 20)]
        return events

    graph = load({0: rank(0), 1: rank(500)})
    acts, edges = graph.activities, graph.edges
    leaving = (edges.kind == EdgeKind.COLLECTIVE) & (edges.activity >= 0)
    assert leaving.sum() == 12
    assert {graph.names[acts.name[vertex // 2]] for vertex in edges.target[leaving].tolist()} == {"aten::copy_"}
    assert (edges.target[leaving] % 2 == 0).all(), "the start of the copy"
    assert graph.gap[edges.target[leaving]].max() == 0, "the wait and the transfer explain all of it"


def test_a_hidden_transfer_takes_as_long_as_those_of_its_size_that_were_waited_for() -> None:
    """Rank 1 waits 1000 µs for rank 0; ranks 2 and 3 multiply until 9000 while their data goes over."""

    def rank(word: str, peer: int, until: int, *, busy: bool) -> list[Json]:
        events: list[Json] = []
        for i in range(4):
            at = 20_000 * i + 10
            events += transfer(word, peer, at, at + until)
            events += [op("aten::mm", at + 20, until - 40)] * busy
        return events

    graph = host_job({
        0: rank("send", 1, 50, busy=False), 1: rank("recv", 0, 1_000, busy=False),
        2: rank("send", 3, 9_000, busy=True), 3: rank("recv", 2, 9_000, busy=True),
    })  # fmt: skip
    edges = graph.edges
    hidden = (edges.kind == EdgeKind.P2P) & (edges.activity >= 0) & (edges.lag > 0)
    hidden &= graph.activities.rank[edges.activity] >= 2
    assert hidden.sum() == 8
    assert (edges.lag[hidden] <= 1_000_000).all(), "not the 9 ms of the operator beside them"
    assert hg.replay(graph).max_error_ns == 0


def test_a_receive_that_was_waited_for_lasts_longer_than_its_send() -> None:
    """A message of some KiB is sent when it is buffered: the sender goes on long before the receiver has it."""

    def rank(word: str, peer: int, until: int) -> list[Json]:
        starts = [20_000 * i + 10 for i in range(4)]
        beside = [op("aten::mm", at + 20, 4_960) for at in starts]
        return [event for at in starts for event in transfer(word, peer, at, at + until)] + beside

    graph = host_job({0: rank("send", 1, 5_000), 1: rank("recv", 0, 7_000)})
    edges = graph.edges
    received = (edges.kind == EdgeKind.P2P) & (edges.activity >= 0) & (graph.activities.rank[edges.activity] == 1)
    assert (edges.lag[received] > 6_000_000).any(), "not the 5 ms of the send"
    assert hg.what_if(graph).scale_network(factor=0.5).run().saved_ns > 1_500_000
    assert hg.replay(graph).max_error_ns == 0


BESIDE = [
    annotation("ProfilerStep#1", 0, 100), *transfer("send", 1, 10, 80), op("first", 12, 30), op("second", 50, 20),
    op("inner", 52, 3), op("last", 85, 5),
]  # fmt: skip


def communication(graph: DependencyGraph) -> np.ndarray:
    return np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)


def since(graph: DependencyGraph) -> list[float]:
    acts = graph.activities
    return ((blocked_since(acts, communication(graph)) - acts.start.min()) / 1000).tolist()


def test_operators_beside_a_send_are_not_inside_it() -> None:
    graph = host_job({0: BESIDE})
    names = [graph.names[name] for name in graph.activities.name]
    around = {name: graph.tree.parent[row] for row, name in enumerate(names)}
    step = names.index("ProfilerStep#1")
    assert (around["first"], around["second"], around["gloo:send"]) == (step, step, step)
    assert names[around["inner"]] == "second"


def test_a_thread_waits_for_a_send_only_after_what_it_ran_beside_it() -> None:
    graph = host_job({0: BESIDE})
    assert since(graph) == [70]
    (row,) = hg.temporal_breakdown(graph).itertuples()
    assert row.exposed_communication_us == pytest.approx(10, abs=1e-6)
    assert row.computation_us == pytest.approx(30 + 20 + 5 + 0.15, abs=1e-6)
    assert hg.overlap(graph)["beside_us"].tolist() == [pytest.approx(60, abs=1e-6)]


def test_of_several_that_are_waited_for_in_turn_each_has_its_own_wait() -> None:
    events = [*transfer("recv", 1, 10, 80), *transfer("recv", 2, 20, 95), op("work", 30, 20)]
    graph = host_job({0: events})
    first, second = since(graph)
    assert second - first == pytest.approx(30)


def test_what_ends_while_an_operator_runs_was_not_waited_for() -> None:
    graph = host_job({0: [*transfer("recv", 1, 10, 80), op("work", 30, 100)]})
    assert since(graph) == [80 - 9.9]


def test_what_a_thread_of_the_backend_runs_is_part_of_its_collective() -> None:
    graph = host_job({0: [op("c10d::allreduce_", 0, 2), *(
        {**each, "tid": 7} for each in (op("gloo:all_reduce", 5, 50), op("aten::copy_", 10, 5))
    )]})  # fmt: skip
    assert worked_until(graph.activities, communication(graph)).tolist() == [
        graph.activities.start[communication(graph)[0]]
    ]


@st.composite
def threads(draw: st.DrawFn) -> list[Json]:
    """Return operators one after another, and receives that began between them and end at any moment."""
    at, events = 1, []
    for _ in range(draw(st.integers(1, 6))):
        lasts = draw(st.integers(1, 9))
        if draw(st.booleans()):
            events += transfer("recv", 1, at + 1, at + 2 + draw(st.integers(1, 30)))
        else:
            events.append(op("work", at + 2, lasts))
        at += lasts + 5
    return events


@given(threads())
@settings(max_examples=25)
def test_the_time_in_communication_is_what_a_search_through_all_moments_finds(events: list[Json]) -> None:
    graph = host_job({0: events})
    acts = graph.activities
    rows = communication(graph)
    begin = blocked_since(acts, rows) - acts.origin
    of_op = [(each["ts"], each["ts"] + each["dur"]) for each in events if each["cat"] == "cpu_op"]
    base = min(each["ts"] for each in events)
    for row, found in zip(rows, begin.tolist(), strict=True):
        start, end = (acts.start[row] - acts.origin) / 1000 + base, (acts.end[row] - acts.origin) / 1000 + base
        others = [(acts.end[each] - acts.origin) / 1000 + base for each in rows]
        begun = [stop for first, stop in of_op if start < first < end]
        expected = min(end, max([start, *begun, *(each for each in others if start < each < end)]))
        assert found / 1000 == pytest.approx(expected - base, abs=2e-3)
