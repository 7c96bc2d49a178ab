"""Something outside of the host's code interrupts it, and the job would be shorter if it did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from htagraph.analyses.interruptions import interruptions
from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.findings import finding
from htagraph.findings.change import PredictedChange, gain_of, less_text
from htagraph.findings.limits import MAX_NAMED, MIN_PERCENT, MIN_SHARE, MOST_ROWS
from htagraph.findings.phrases import plural, ranks_text, share_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.own_time import untraced_edges
from htagraph.queries.interruptions import Interruptions, Pattern, interrupted, interrupted_ranks, runs_no_python
from htagraph.whatif.scenario import what_if

__all__ = ["INTERRUPTED", "InterruptedClaim", "NativeShares", "affected_ranks"]

_CORES = "Give the processes more cores (taskset -cp PID, cpu.max of the cgroup), or end what else runs on them."
_Code: TypeAlias = Literal["native", "python", ""]
"""The code that interruptions hit: native code, where no Python runs, or Python; empty for both."""
_CHECK: dict[Pattern | _Code, str] = {
    "in turn": _CORES,
    "together": "Check the container's CPU limit (cpu.max of the cgroup), swapping and other jobs on the machine.",
    "native": (
        "Give the processes more cores (taskset -cp PID, cpu.max of the cgroup) or fewer threads (OMP_NUM_THREADS), or "
        "end what else runs on them."
    ),
    "python": (
        "Check Python's garbage collector (gc.freeze), the cores that the processes may use (taskset -cp PID, cpu.max "
        "of the cgroup) and what else runs on them."
    ),
    "": (
        "Check the cores that the processes may use (taskset -cp PID, cpu.max of the cgroup), what else runs on them, "
        "and Python's garbage collector (gc.freeze)."
    ),
}
"""What to check, by how the interruptions of ranks lie in time, and by the code in which they lie."""


class NativeShares(NamedTuple):
    """How much of some time lies where no Python runs, each from 0 to 1."""

    interrupted: float
    """Of the interrupted time."""
    usual: float
    """Of the time of all host code."""


@dataclass(frozen=True, kw_only=True)
class InterruptedClaim(finding.Claim):
    """Host code is interrupted; the figure is the gain without interruptions, µs."""

    counts: Mapping[int, int]
    """Interruptions by rank; every rank of the job is a key."""
    shares: Mapping[int, float]
    """Percent of its time in which a rank is interrupted, by rank."""
    pattern: Pattern
    """How the interruptions of ranks lie in time."""
    going: int
    """How many ranks most often go on at a time."""
    activities: frozenset[int]
    """The activities that are interrupted, and those that untraced time before is interrupted of."""
    native: NativeShares
    """How much of it lies where no Python runs."""


def affected_ranks(claim: InterruptedClaim) -> list[int]:
    """Return the ranks whose host code is interrupted for a share of its time that is worth naming, or for most.

    Example:
        >>> shares = {0: 0.5, 1: 40.0}
        >>> native = NativeShares(interrupted=1.0, usual=0.5)
        >>> claim = InterruptedClaim(
        ...     "interrupted", "", 900.0, "us", counts={0: 1, 1: 30}, shares=shares, pattern="", going=0,
        ...     activities=frozenset(), native=native,
        ... )
        >>> affected_ranks(claim)
        [1]
    """
    shares, most = claim.shares, max(claim.shares.values())
    least = max(MIN_SHARE * most, min(MIN_PERCENT, most))
    return [rank for rank, share in shares.items() if share >= least]


def _when(results: Results) -> list[InterruptedClaim]:
    graph, makespan, found = results.graph, results.makespan_ns, interrupted(results.graph)
    if not len(found) or int(found.length.sum()) < MIN_SHARE * makespan or not results.bound.cause:
        return []
    outcome = what_if(results.warm_graph).no_interruptions().run()
    if outcome.saved_ns < MIN_SHARE * makespan:
        return []
    acts, ranks = graph.activities, interrupted_ranks(graph, found)
    rank = acts.rank[found.vertex >> 1]
    activity = np.where(found.activity >= 0, found.activity, found.vertex >> 1)
    longest = np.argsort(-found.length, kind="stable")[:MAX_NAMED]
    gain = gain_of(outcome, results.whole)
    change = PredictedChange("host code that nothing interrupts", ("--no-interruptions",), gain)
    claim = InterruptedClaim(
        "interrupted",
        "",
        gain.value_us,
        "us",
        rows=tuple(activity[longest].tolist()),
        change=change,
        counts={one: int((rank == one).sum()) for one in graph.ranks},
        shares={one: 100 * share for one, share in ranks.shares.items()},
        pattern=ranks.pattern,
        going=ranks.going,
        activities=frozenset(activity.tolist()),
        native=_native_shares(graph, found),
    )
    return [finding.saved_claim(claim)]


def _native_shares(graph: DependencyGraph, found: Interruptions) -> NativeShares:
    """Return how much of the interrupted time, and of all host code, lies where no Python runs.

    What stops threads without regard to what they run hits this code as often as other code; Python's garbage collector
    never does.
    """
    is_native = runs_no_python(graph)
    is_inside = found.activity >= 0
    activity = found.activity[is_inside]
    length_ns = found.length[is_inside]
    stopped_ns = length_ns[is_native[activity]].sum()
    untraced_ns = graph.gap[graph.edges.target[untraced_edges(graph)]].sum()
    host_ns = graph.own_time[~graph.activities.on_device].sum() + untraced_ns
    native_ns = graph.own_time[is_native].sum()
    return NativeShares(float(stopped_ns / found.length.sum()), float(native_ns / max(host_ns, 1)))


def _code(claim: InterruptedClaim) -> _Code:
    """Return the code that the interruptions hit; empty for both kinds of code."""
    native = claim.native
    if native.interrupted > MOST:
        return "native"
    return "python" if native.interrupted < MOST * native.usual else ""


def _short(claim: InterruptedClaim) -> str:
    pattern = {
        "in turn": f": mostly, the host code of only {claim.going} of {len(claim.counts)} ranks runs at a time, "
        f"as if all shared {plural(claim.going, 'core')}",
        "together": ", on all ranks at the same moments",
    }.get(claim.pattern, "")
    if not pattern and _code(claim) == "native":
        inside = share_text(100 * claim.native.interrupted)
        pattern = claim.recorder.of_pytorch(f" ({inside} of that inside operators of PyTorch, where no Python runs)")
    ranks, every = affected_ranks(claim), len(claim.counts)
    counts = [claim.counts[rank] for rank in ranks]
    shares = [claim.shares[rank] for rank in ranks]
    on = "" if every == 1 else f" on {'all ranks' if len(ranks) == every else ranks_text(ranks)},"
    often = f"{on} {_from_to(counts, '')} times{' each' * (len(ranks) > 1)}, for {_from_to(shares, ' %')} of its time"
    text = f"Host code is interrupted{often}, by something outside of it{pattern}"
    if claim.gain is None:  # another claim has it
        return f"{text}."
    return f"{text}. Without that, {less_text(finding.gain_in(claim))}."


def _why(claim: InterruptedClaim) -> str:
    """Return how much of the time of host code something else takes."""
    shares = [claim.shares[rank] for rank in affected_ranks(claim)]
    pattern = {
        "in turn": ", as if ranks took turns on shared cores",
        "together": ", on all ranks at the same moments",
    }.get(claim.pattern, "")
    return f"Something outside of host code interrupts it for {_from_to(shares, ' %')} of its time{pattern}."


def _from_to(values: Sequence[float], unit: str) -> str:
    least, most = (f"{value:,.0f}" for value in (min(values), max(values)))
    return f"{least}{unit}" if least == most else f"{least} to {most}{unit}"


def _evidence(results: Results, claim: InterruptedClaim) -> finding.Evidence:
    table = results.interruptions
    by_rank = table.groupby("rank")["interrupted_us"].sum()
    chart = finding.Chart(
        "Interrupted in all", [finding.Bar(f"rank {rank}", float(us)) for rank, us in by_rank.items()], "host"
    )
    longest = table.nlargest(MOST_ROWS, "interrupted_us")
    places = finding.Place.of_rows(longest, "start_us", "interrupted_us", "activity")
    shown = longest[["rank", "name", "start_us", "interrupted_us", "usual_us"]]
    shown = shown.assign(name=[short_name(name) or "untraced time" for name in shown["name"]])
    return finding.Evidence(
        chart, finding.Rows(shown, "The longest interruptions", places), meaning=interruptions, look="the longest",
        place=finding.Place(claim.rows[0]),
    )  # fmt: skip


def _advice(claim: InterruptedClaim) -> str:
    """Return what to check; what takes most of every rank's time is no garbage collector, but a lack of cores."""
    if claim.is_beside:
        return ""
    takes_most = min(claim.shares.values()) > 100 * MOST
    where: Pattern | _Code = "in turn" if takes_most else _code(claim)
    return _CHECK[claim.pattern or where]


INTERRUPTED = finding.Finding(
    "interrupted", needs=frozenset({Part.MEANING, Part.HOST, Part.PEERS}), when=_when, short=_short, why=_why,
    evidence=_evidence, advice=_advice,
)  # fmt: skip
