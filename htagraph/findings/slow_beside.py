"""Work of a device is slow beside other work of it: a collective beside a copy, a kernel beside a collective."""

from __future__ import annotations

from dataclasses import dataclass, replace

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import exact_glob
from htagraph.findings.change import Gain, PredictedChange, gain_of, less_text, scenario_of
from htagraph.findings.finding import (
    PREDICTS,
    Bar,
    Chart,
    Claim,
    Evidence,
    Finding,
    gain_in,
    in_short,
    of_activities,
    saved_claim,
)
from htagraph.findings.limits import MAX_LISTED, MIN_PERCENT, MOST_ROWS
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.graph.measures.beside import runs_beside
from htagraph.queries.slow_beside import SlowBeside, slow_beside
from htagraph.whatif.options import criteria_text

__all__ = ["SLOW_BESIDE", "SlowBesideClaim"]


@dataclass(frozen=True, kw_only=True)
class SlowBesideClaim(Claim):
    """Work takes longer beside a companion; the figure is the gain without the companion, µs."""

    op: str
    """The operation of a collective; empty for other work."""
    companion: str
    """The name of the work that runs beside the slow executions and not beside the fast executions."""
    companion_kind: ActivityKind
    """The kind of this work."""
    ratio: float
    """How many times as long the work takes beside the companion."""
    slow_us: float
    """The median time beside the companion, without waits for other ranks, µs."""
    fast_us: float
    """The median time without the companion, µs."""
    slow_count: int
    """Executions beside the companion."""
    count: int
    """All executions."""


def _when(results: Results) -> list[SlowBesideClaim]:
    least_ns = MIN_PERCENT / 100 * results.makespan_ns
    claims = [_claim(results, work) for work in slow_beside(results.graph, least_ns)[:MAX_LISTED]]
    return [claim for claim in claims if claim.gain and claim.gain.percent >= MIN_PERCENT]


def _claim(results: Results, work: SlowBeside) -> SlowBesideClaim:
    """Return the claim that work is slow beside a companion, with the gain by replay."""
    names = results.graph.names
    name = names[work.name]
    companion = names[work.companion]
    options = _options(work, exact_glob(name), exact_glob(companion))
    gain = gain_of(scenario_of(results.warm_graph, options).run(), results.makespan_ns, results.steps)
    is_copy = work.kind == ActivityKind.MEMORY
    gain = gain if is_copy else _at_most(gain)
    title = f"no {in_short(companion)} beside {work.op or in_short(name)}"
    claim = SlowBesideClaim(
        "slow_beside",
        name,
        gain.value_us,
        "us",
        rows=tuple(work.slow[:MOST_ROWS].tolist()),
        change=PredictedChange(title, options, gain),
        op=work.op,
        companion=companion,
        companion_kind=work.kind,
        ratio=work.ratio,
        slow_us=work.slow_ns / 1000,
        fast_us=work.fast_ns / 1000,
        slow_count=len(work.slow),
        count=work.count,
    )
    return saved_claim(claim)


def _options(work: SlowBeside, name: str, companion: str) -> tuple[str, ...]:
    """Return the options by which the slow work is as fast as the fast work; copies beside it take no time."""
    slow = criteria_text({"name": name, "beside": companion})
    as_fast = ("--scale", f"{slow}:{1 / work.ratio:.3g}")
    if work.kind != ActivityKind.MEMORY:
        return as_fast
    return ("--scale", f"{criteria_text({'name': companion})}:0", *as_fast)


def _at_most(gain: Gain) -> Gain:
    """Return a gain without a sure part: a kernel that no longer runs beside has to run at another time."""
    return replace(gain, low_us=min(gain.low_us, 0.0))


def _work(claim: SlowBesideClaim) -> str:
    """Return the name of the slow work."""
    return claim.op or in_short(claim.about, [claim.companion])


def _short(claim: SlowBesideClaim) -> str:
    companion = in_short(claim.companion, [claim.about])
    return (
        f"{_work(claim)} takes {claim.ratio:.1f} times as long beside {companion}: {time_text(claim.slow_us)}, not "
        f"{time_text(claim.fast_us)}, {claim.slow_count:,} of {claim.count:,} times. Without that, "
        f"{less_text(gain_in(claim))}."
    )


def _why(claim: SlowBesideClaim) -> str:
    """Return the companion, and how slow the work is beside it."""
    companion = in_short(claim.companion, [claim.about])
    return f"{_work(claim)} takes {claim.ratio:.1f} times as long beside {companion} ({time_text(claim.slow_us)})."


def _advice(claim: SlowBesideClaim) -> str:
    """Return how to keep the companion away from the work, by the kinds of both."""
    if claim.companion_kind == ActivityKind.MEMORY:
        return f"Move the copy to when no {_work(claim)} runs, or make it smaller."
    if claim.companion_kind == ActivityKind.COMMUNICATION:
        return "Let collectives take fewer multiprocessors (NCCL_MAX_CTAS), or start them where less is computed."
    if claim.op:
        variable = claim.recorder.of_pytorch(" (TORCH_NCCL_HIGH_PRIORITY=1)")
        return f"Give collectives a stream of high priority{variable}, or start them earlier."
    work = _work(claim)
    return f"Run {in_short(claim.companion, [claim.about])} behind {work} on one stream: both share the device."


def _evidence(results: Results, claim: SlowBesideClaim) -> Evidence:
    slow = of_activities(results, claim.rows, "The longest of these")
    bars = [
        Bar(f"beside {in_short(claim.companion)}", claim.slow_us, place=slow.first),
        Bar("else", claim.fast_us),
    ]
    chart = Chart("Median time, without waits for other ranks", bars, "communication" if claim.op else "computation")
    return Evidence(chart, slow, place=slow.first, look="the longest", meaning=runs_beside)


SLOW_BESIDE = Finding(
    "slow_beside",
    needs=PREDICTS,
    when=_when,
    short=_short,
    why=_why,
    evidence=_evidence,
    advice=_advice,
)
