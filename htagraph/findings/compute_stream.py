"""Collectives run on the stream of computation, and not beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from htagraph.core.statistics import MOST
from htagraph.findings.change import PredictedChange, gain_of, less_text
from htagraph.findings.finding import MEASURES, Bar, Chart, Claim, Evidence, Finding, of_activities
from htagraph.findings.limits import MIN_PERCENT, MOST_ROWS
from htagraph.findings.phrases import plural, time_text
from htagraph.findings.results import Results
from htagraph.graph.measures.ledger import Part
from htagraph.queries.compute_stream import OnComputeStream, collectives_on_compute_streams
from htagraph.whatif.scenario import what_if

__all__ = ["COMPUTE_STREAM", "ComputeStreamClaim"]


@dataclass(frozen=True, kw_only=True)
class ComputeStreamClaim(Claim):
    """Collectives run on the stream of computation; the figure is how long, on the rank where it is longest, µs."""

    count: int
    """Members of collectives on these streams, on all ranks."""


def _when(results: Results) -> list[ComputeStreamClaim]:
    graph = results.graph
    collectives = collectives_on_compute_streams(graph)
    if collectives is None or collectives.share < MOST:
        return []
    if collectives.time_ns < MIN_PERCENT / 100 * results.path.makespan_ns:
        return []
    claim = ComputeStreamClaim(
        "compute_stream",
        "communication",
        collectives.time_ns / 1000,
        "us",
        rows=tuple(collectives.activity[:MOST_ROWS].tolist()),
        count=len(collectives.activity),
    )
    return [_with_gain(results, claim, collectives)]


def _with_gain(results: Results, claim: ComputeStreamClaim, collectives: OnComputeStream) -> ComputeStreamClaim:
    """Return a claim with the gain of perfect overlap, where all ranks are known; no part of this gain is sure."""
    if not collectives.is_whole or Part.PEERS in results.graph.ledger.lacks:
        return claim
    outcome = what_if(results.warm_graph).perfect_overlap().run()
    gain = gain_of(outcome, results.whole)
    if gain.percent < MIN_PERCENT:
        return claim
    ceiling = replace(gain, low_us=min(gain.low_us, 0.0))
    change = PredictedChange("collectives that run beside computation", ("--perfect-overlap",), ceiling)
    return replace(claim, gain=ceiling, change=change)


def _short(claim: ComputeStreamClaim) -> str:
    collectives = plural(claim.count, "collective")
    gain = f" Beside it, {less_text(claim.gain)} at most." if claim.gain else ""
    return f"{collectives} run on the stream of computation, for {time_text(claim.figure)} on a rank.{gain}"


def _why(claim: ComputeStreamClaim) -> str:
    """Return how many collectives run on the stream of computation."""
    return f"{plural(claim.count, 'collective')} run on the stream of computation: neither overlaps."


def _advice(claim: ComputeStreamClaim) -> str:
    """Return how collectives may overlap; empty where no gain says that anything could."""
    if claim.gain is None:
        return ""
    return (
        "Start collectives whose result is not needed at once with async_op=True, and wait for them where it is used."
    )


def _evidence(results: Results, claim: ComputeStreamClaim) -> Evidence:
    longest = of_activities(results, claim.rows, "The longest of these collectives")
    bars = [Bar("on streams of computation", claim.figure, place=longest.first)]
    return Evidence(
        Chart("Time of collectives, on the rank with most", bars, "communication"),
        longest,
        place=longest.first,
        look="the longest",
        command=("collectives",),
        meaning=collectives_on_compute_streams,
    )


COMPUTE_STREAM = Finding(
    "compute_stream",
    needs=MEASURES,
    when=_when,
    short=_short,
    why=_why,
    evidence=_evidence,
    advice=_advice,
)
