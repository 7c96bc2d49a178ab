"""Transfers that overlap share a link if asked to."""

from __future__ import annotations

import htagraph as hg
from htagraph.queries.weights import initial
from htagraph.whatif.changes.shared_link import shared_link
from tests.whatif.changes.made import CALL_NS, LATENCY_NS, Piece, made

PIECES = [
    Piece("nccl", stream, 1000, collective=number, rank=rank, call_ns=CALL_NS if number == 0 else 3000)
    for rank in (0, 1) for number, stream in ((0, 7), (1, 8), (2, 9))
]  # fmt: skip
"""Per rank: a collective, and after 10 ns another one beside it; a third one 3 µs later."""


def test_the_state_says_so() -> None:
    graph = made(PIECES)
    assert initial(graph).shared_link is None
    assert shared_link(initial(graph), on=False).shared_link is False
    assert shared_link(initial(graph)).shared_link is True


def test_transfers_that_overlap_more_than_recorded_take_longer() -> None:
    graph = made(PIECES)  # the second begins 10 ns after the first: each took 500 ns of work, the third 1000
    assert hg.what_if(graph).shared_link().run().saved_ns == 0
    scenario = hg.what_if(graph).scale(kind="launch", factor=0)  # now all three begin at once
    apart = scenario.shared_link(on=False).run()
    together = scenario.shared_link().run()
    assert apart.makespan_ns == LATENCY_NS + 1000
    assert LATENCY_NS + 1900 < together.makespan_ns < LATENCY_NS + 2100
    assert any("share a link" in note for note in together.notes)
