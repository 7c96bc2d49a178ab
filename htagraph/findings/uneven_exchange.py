"""Ranks have messages of different sizes in all-to-alls: experts, or tables, are not balanced."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.core.statistics import MOST
from htagraph.findings.finding import MEASURES, Bar, Chart, Claim, Evidence, Finding, of_activities
from htagraph.findings.limits import MAX_LISTED, MIN_PERCENT, MOST_ROWS
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results

__all__ = ["UNEVEN_EXCHANGE", "UnevenExchangeClaim"]


@dataclass(frozen=True, kw_only=True)
class UnevenExchangeClaim(Claim):
    """All-to-alls are uneven; the figure is how long they take on the rank where they take longest, µs."""

    ratio: float
    """How many times the mean of its group the largest message has, as a rule."""
    uneven: int
    """All-to-alls with a message of at least 1.5 times the mean."""
    count: int
    """All-to-alls whose sizes are known."""


def _when(results: Results) -> list[UnevenExchangeClaim]:
    matches = results.graph.matches
    if matches is None or "all_to_all" not in matches.op:
        return []
    from htagraph.queries.uneven_exchange import uneven_exchange  # most jobs do without

    exchange = uneven_exchange(results.graph)
    if exchange is None or exchange.uneven < MOST * exchange.count:
        return []
    if exchange.time_ns < MIN_PERCENT / 100 * results.path.makespan_ns:
        return []
    claim = UnevenExchangeClaim(
        "uneven_exchange",
        "all_to_all",
        exchange.time_ns / 1000,
        "us",
        rows=tuple(exchange.activity[:MOST_ROWS].tolist()),
        ranks=exchange.ranks[:MAX_LISTED],
        ratio=exchange.ratio,
        uneven=exchange.uneven,
        count=exchange.count,
    )
    return [claim]


def _short(claim: UnevenExchangeClaim) -> str:
    return (
        f"In {claim.uneven:,} of {claim.count:,} all-to-alls, one rank has {claim.ratio:.1f} times the mean message, "
        f"most often rank {claim.ranks[0]}; they take {time_text(claim.figure)} with waits."
    )


def _why(claim: UnevenExchangeClaim) -> str:
    """Return how uneven the messages are."""
    return f"In all-to-alls, the largest message has {claim.ratio:.1f} times the mean size."


def _advice(claim: UnevenExchangeClaim) -> str:
    return "Give each rank as much: balance the tokens of experts in the router, or place experts and tables by load."


def _evidence(results: Results, claim: UnevenExchangeClaim) -> Evidence:
    largest = of_activities(results, claim.rows, "The largest messages")
    from htagraph.queries.uneven_exchange import uneven_exchange  # most jobs do without

    bars = [Bar("all-to-alls", claim.figure, place=largest.first)]
    return Evidence(
        Chart("Time of all-to-alls, on the rank with most", bars, "communication"),
        largest,
        place=largest.first,
        look="the largest message",
        command=("collectives",),
        meaning=uneven_exchange,
    )


UNEVEN_EXCHANGE = Finding(
    "uneven_exchange",
    needs=MEASURES,
    when=_when,
    short=_short,
    why=_why,
    evidence=_evidence,
    advice=_advice,
)
