"""The claim about interruptions of host code in words, at length and in a line or two."""

from __future__ import annotations

from collections.abc import Sequence

from htagraph.findings.claim import Claim
from htagraph.findings.phrases import plural, time_text

__all__ = ["interrupted_finding", "interrupted_sentence"]


def interrupted_finding(claim: Claim, less: str) -> str:
    """Return the claim in a line or two.

    Args:
        claim: that host code is interrupted.
        less: result of `gain_words.less_text`.
    """
    facts = claim.facts
    pattern = {
        "in turn": f": mostly, the host code of only {facts['going']} of {len(facts['counts'])} ranks runs at a time, "
        f"as if all shared {plural(facts['going'], 'core')}",
        "together": ", on all ranks at the same moments",
    }.get(facts["pattern"], "")
    return f"{_how_often(claim)}. Something outside of these stops it{pattern}. Without that, {less}."


def interrupted_sentence(claim: Claim, less: str) -> str:
    """Return the claim with what is known of the cause, and what to check.

    Args:
        claim: that host code is interrupted.
        less: result of `gain_words.less_text`.
    """
    facts = claim.facts
    pattern = {
        "in turn": (
            f" {facts['together_percent']:.0f} % of the time, the host code of exactly {facts['going']} of "
            f"{len(facts['counts'])} ranks runs (expected by chance: {facts['chance_percent']:.0f} %), as if all "
            f"shared {plural(facts['going'], 'core')}."
        ),
        "together": (
            f" In {facts['together_percent']:.0f} % of the time in which any rank is interrupted, all are "
            f"(expected by chance: {facts['chance_percent']:.0f} %)."
        ),
    }.get(facts["pattern"], "")
    return (
        f"{_how_often(claim)}: something outside of these stops it, for {time_text(facts['least_us'])} to "
        f"{time_text(facts['most_us'])} where the same code usually takes less than a tenth.{pattern} Without "
        f"interruptions {less}. {_CHECK[facts['pattern']]}"
    )


_CHECK = {
    "in turn": (
        "Check how many cores the processes may use (taskset -cp PID, cpu.max of the cgroup, cores per task of the "
        "scheduler) and what else runs on them."
    ),
    "together": (
        "Check what stops all processes at once: CPU limits of the container (cpu.max of the cgroup), swapping, other "
        "jobs on the machine."
    ),
    "": (
        "The trace does not show what: check Python's garbage collector (gc.freeze, gc.disable), the cores that the "
        "processes may use (taskset -cp PID, cpu.max of the cgroup), and what else runs on them."
    ),
}
"""What to check, by how the interruptions of ranks lie in time."""


def _how_often(claim: Claim) -> str:
    """Return how often host code is interrupted, for how long and in how many places."""
    facts = claim.facts
    counts, shares = [n for n in facts["counts"].values() if n], [s for s in facts["shares"].values() if s]
    ranks = "" if len(facts["counts"]) == 1 else " on each rank"
    if len(counts) < len(facts["counts"]):
        ranks = f" on {len(counts)} of {len(facts['counts'])} ranks"
    return (
        f"Host code is interrupted {_from_to(counts, '')} times{ranks}, for {_from_to(shares, ' %')} of its time, in "
        f"{facts['places']} different places (operators, functions, calls, or between them)"
    )


def _from_to(values: Sequence[float], unit: str) -> str:
    least, most = (f"{value:,.0f}" for value in (min(values), max(values)))
    return f"{least}{unit}" if least == most else f"{least} to {most}{unit}"
