"""Arrivals, JOINs and the ends behind them, of a job of two ranks whose answer is obvious."""

from __future__ import annotations

import htagraph as hg
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.evidence.arrivals import meetings
from htagraph.graph.matches import Matches
from tests.host_jobs import host_job, transfer
from tests.strategies import COMMUNICATE, Json, kernel, launch, load, op
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
