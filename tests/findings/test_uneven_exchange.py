"""Whether all-to-alls whose messages differ by rank are named, and balanced ones are not."""

from __future__ import annotations

import pytest

from htagraph.findings.finding import claims_that_are
from htagraph.findings.results import Results
from htagraph.findings.uneven_exchange import UNEVEN_EXCHANGE, UnevenExchangeClaim
from htagraph.queries.uneven_exchange import uneven_exchange
from tests.reach import DATA, graph_of
from tests.strategies import Json, complete, launch, load, op

RANKS = 4


def rank_of(rank: int, received: list[list[int]]) -> list[Json]:
    """Return all-to-alls in which a rank sends 1,000 elements, and receives as many as the list says, by rank."""
    events: list[Json] = []
    for place, elements in enumerate(received):
        at = 300 * place
        sizes = {
            "Collective name": "all_to_allv",
            "Process Group Name": "0",
            "Process Group Ranks": "[0, 1, 2, 3]",
            "In msg nelems": 1000,
            "Out msg nelems": elements[rank],
            "Group size": RANKS,
            "dtype": "BFloat16",
        }
        events += [op("c10d::alltoall_base_", at, 20), launch(at + 5, 5, place + 1)]
        exchange = complete(
            "kernel", "ncclDevKernel_SendRecv", at + 30, 200, 20, stream=20, device=0, correlation=place + 1
        )
        exchange["args"] |= sizes
        events.append(exchange | {"pid": 0})
    return events


def results_of(received: list[list[int]]) -> Results:
    return Results(load({rank: rank_of(rank, received) for rank in range(RANKS)}))


def test_the_rank_with_the_largest_message_is_named() -> None:
    received = [[500, 500, 2500, 500], [400, 600, 2600, 400], [1000, 1000, 1000, 1000]]
    results = results_of(received)
    (claim,) = claims_that_are(UnevenExchangeClaim, UNEVEN_EXCHANGE.when(results))
    assert (claim.uneven, claim.count, claim.ranks) == (2, 3, (2,))
    largest = [max(max(1000, size) for size in sizes) for sizes in received[:2]]
    means = [sum(max(1000, size) for size in sizes) / RANKS for sizes in received[:2]]
    ratios = [size / mean for size, mean in zip(largest, means, strict=True)]
    assert claim.ratio == pytest.approx(sum(ratios) / 2)
    assert set(results.graph.activities.rank[list(claim.rows)].tolist()) == {2}


def test_balanced_exchanges_are_not_named() -> None:
    assert UNEVEN_EXCHANGE.when(results_of([[1000, 1100, 900, 1000]] * 3)) == []
    mostly = [[1000] * 4] * 3 + [[500, 500, 2500, 500]]
    assert UNEVEN_EXCHANGE.when(results_of(mostly)) == []


def test_unknown_sizes_say_nothing() -> None:
    assert uneven_exchange(graph_of(DATA / "demo")) is None
    assert uneven_exchange(load({rank: rank_of(rank, [[1, 1, 9000, 1]] * 2) for rank in range(2)})) is None


def test_the_sentence_says_how_uneven() -> None:
    claim = UnevenExchangeClaim("uneven_exchange", "all_to_all", 400.0, "us", ranks=(2,), ratio=1.8, uneven=2, count=3)
    assert UNEVEN_EXCHANGE.whole(claim) == (
        "In 2 of 3 all-to-alls, one rank has 1.8 times the mean message, most often rank 2; they take 400.0 µs with "
        "waits."
    )
    assert UNEVEN_EXCHANGE.why(claim) == "In all-to-alls, the largest message has 1.8 times the mean size."
    assert "balance" in UNEVEN_EXCHANGE.advice(claim)
