"""Gains of changes in words, as several findings share them: per step, and how sure they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.findings.claim import Claim
from htagraph.findings.phrases import time_text

if TYPE_CHECKING:
    from htagraph.whatif.outcome import Outcome

__all__ = ["gain_text", "interval_us", "is_sure", "less_text", "likely", "per_step", "saved_claim", "saves_text"]

_MIN_SPREAD = 0.25
"""Width of a gain's interval, relative to the gain; chosen: less does not change what to do, and every prediction has
about half of it. Doubled, intervals of a fourth to half of the gain are not shown."""


def interval_us(outcome: Outcome) -> tuple[float, float]:
    """Return the least and the largest time that a change saves in the recorded run, µs."""
    low, high = outcome.saved_range_ns
    return low / 1000, high / 1000


def saved_claim(
    says: str, about: str, outcome: Outcome, makespan_ns: int, facts: dict[str, Any], rows: tuple[int, ...] = ()
) -> Claim:
    """Return the claim that a change saves what its replay saves; to the facts come its percent of the makespan."""
    facts |= {"percent": 100 * outcome.saved_ns / makespan_ns, "makespan_us": makespan_ns / 1000}
    return Claim(says, about, outcome.saved_ns / 1000, "us", interval=interval_us(outcome), rows=rows, facts=facts)


def per_step(us: float, steps: int) -> float:
    """Return a time per step, µs, or in all where there are no steps."""
    return us / max(steps, 1)


def gain_text(claim: Claim, us: float | None = None) -> str:
    """Return the time that a change saves, with the words "per step" where there are several steps."""
    steps = claim.facts["steps"]
    return f"{time_text(per_step(claim.figure if us is None else us, steps))}{' per step' if steps > 1 else ''}"


def likely(claim: Claim) -> str:
    """Return the interval of a gain in words, empty where it is narrow.

    Example:
        >>> likely(Claim("gain", "gemm", 3000.0, "us", interval=(2000.0, 4000.0), facts={"steps": 2}))
        '; likely 1.00 ms to 2.00 ms'
    """
    low, high = claim.interval or (claim.figure, claim.figure)
    if high - low <= _MIN_SPREAD * claim.figure:
        return ""
    least, most = (per_step(max(end, 0.0), claim.facts["steps"]) for end in (low, high))
    return f"; likely {time_text(least) if least else '0'} to {time_text(most)}"


def is_sure(claim: Claim) -> bool:
    """Return whether at least a part of a gain that is worth naming is sure; of others it is said "up to"."""
    return claim.interval is None or claim.interval[0] >= _MIN_SPREAD * claim.figure


def saves_text(claim: Claim, us: float | None = None) -> str:
    """Return that a change saves a time; the arguments are those of `gain_text`."""
    return f"saves {'' if is_sure(claim) else 'up to '}{gain_text(claim, us)}"


def less_text(claim: Claim, more: str = "") -> str:
    """Return how much less time the job would take, or a step where there are several."""
    steps = claim.facts["steps"]
    what = "a step" if steps > 1 else "the job"
    less = f"{time_text(per_step(claim.figure, steps))} less"
    return f"{what} would take {less} ({claim.facts['percent']:.0f} %{likely(claim)}{more})"
