"""The usual step of one job is longer or shorter than that of the other, or as long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.words import longer
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import time_text

__all__ = ["CHANGED_STEP", "ChangedStepClaim", "Doubt"]

Doubt: TypeAlias = Literal["", "no difference", "same", "few steps", "chance"]
"""How sure the change is: it shows none, it is none, nobody can tell, it may be chance; empty for a sure change."""


@dataclass(frozen=True, kw_only=True)
class ChangedStepClaim(Claim):
    """The change of the usual step; the figure is in percent."""

    before_us: float
    """The usual step before, µs."""
    after_us: float
    """The usual step after, µs."""
    span: str
    """The span of the times: ``step`` or ``job``."""
    interval_text: str
    """The change and its interval, in words; empty where the time before is 0."""
    doubt: Doubt
    """How sure the change is."""


def _when(pair: JobPair) -> list[ChangedStepClaim]:
    diff = pair.diff
    change = diff.change
    if len(pair.empty) > 1 or (pair.comparison.lost and change.is_incomplete and not pair.empty):
        return []
    doubt: Doubt = ""
    if change.shows_none:
        doubt = "no difference"
    elif diff.is_same:
        doubt = "same"
    elif change.is_noise:  # from few steps, which all lie apart
        doubt = "chance"
    elif not change.is_known and diff.unit == "step":
        doubt = "few steps"
    return [
        ChangedStepClaim(
            "changed_step",
            diff.unit,
            change.percent,
            "percent",
            before_us=change.before_us,
            after_us=change.after_us,
            span=diff.unit,
            doubt=doubt,
            interval_text=change.interval() if diff.before_us or change.shows_none else "",
        )
    ]


def _short(claim: ChangedStepClaim) -> str:
    subject = "A usual step" if claim.span == "step" else "The job"
    before = time_text(claim.before_us)
    after = time_text(claim.after_us)
    if claim.doubt == "no difference":
        times = f"{after} in both jobs" if before == after else f"{after} instead of {before}"
        return f"No difference that these recordings show: a usual step takes {times} ({claim.interval_text})."
    if claim.doubt == "same":
        return f"{subject} takes as long as before: {after} ({before} before)."
    percent = f" ({claim.interval_text})" if claim.interval_text else ""
    unknown = "; too few steps were recorded to tell that from noise" if claim.doubt == "few steps" else ""
    if claim.doubt == "chance":
        percent = f" ({claim.figure:+.1f} %)"
        unknown = "; so few steps do not rule out chance"
    return (
        f"{subject} is {time_text(abs(claim.after_us - claim.before_us))} {longer(claim.figure)}{percent}: {after} "
        f"instead of {before}{unknown}."
    )


CHANGED_STEP = Finding("changed_step", when=_when, short=_short)
