"""The usual step of one job is longer or shorter than that of the other, or as long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from htagraph.findings.differences.causes import CAUSES, CauseClaim
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.rest import REST, Reason, RestClaim
from htagraph.findings.differences.words import few, longer, more_or_less
from htagraph.findings.finding import Claim, Finding, claims_that_are
from htagraph.findings.limits import LARGE_SHARE
from htagraph.findings.phrases import and_list, share_text, time_text

__all__ = ["CHANGED_STEP", "ChangedStepClaim", "Doubt", "MainCause"]

Doubt: TypeAlias = Literal["", "no difference", "same", "few steps", "chance"]
"""How sure the change is: it shows none, it is none, nobody can tell, it may be chance; empty for a sure change."""


_ALL = 100
"""Percent, rounded, of a change that is called all of the change. Chosen: a smaller difference is noise. Doubled, no
share would be called so."""


class MainCause(NamedTuple):
    """The cause of the largest part of the change of the usual step."""

    share: float
    """Its part of the change."""
    names: tuple[str, ...] = ()
    """The work that changed; none where waits or overlap did."""
    change_us: float = 0.0
    """The change of the time of that work, µs, or of communication that nothing hides."""
    reason: Reason | None = None
    """Why a part without changed work remains; None for changed work."""


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
    cause: MainCause | None = None
    """The cause of the largest part of a sure change; None for none."""


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
            cause=_main_cause(pair) if not doubt else None,
            interval_text=change.interval() if diff.before_us or change.shows_none else "",
        )
    ]


def _main_cause(pair: JobPair) -> MainCause | None:
    """Return the cause of the largest part of the change, changed work before a remainder; None for small parts."""
    step_us = pair.diff.change_us
    if not step_us or pair.empty or pair.comparison.lost or pair.is_other_work:
        return None
    causes = _causes_of_change(pair, step_us)
    large = [cause for cause in causes if cause.share >= LARGE_SHARE]
    named = [cause for cause in large if cause.names or cause.reason == "visible"]
    candidates = named or large
    return max(candidates, key=lambda cause: cause.share, default=None)


def _causes_of_change(pair: JobPair, step_us: float) -> list[MainCause]:
    """Return the causes of a change of the usual step: changed work first, then the remainder."""
    causes = list[MainCause]()
    for claim in claims_that_are(CauseClaim, pair.claims(CAUSES.when)):
        names = tuple(work.name for work in claim.work)
        changes_us = [claim.origin.change_us(work) for work in claim.work]
        share = claim.figure / step_us
        cause = MainCause(share, names, sum(changes_us))
        causes.append(cause)
    for remainder in claims_that_are(RestClaim, pair.claims(REST.when)):
        for left in remainder.parts:
            share = left.us / step_us
            cause = MainCause(share, (), left.us, left.reason)
            causes.append(cause)
    return causes


def _why(cause: MainCause | None) -> str:
    """Return the main cause as the end of a sentence; empty for none."""
    if cause is None:
        return ""
    percent = min(100 * cause.share, 100.0)
    amount = share_text(percent)
    if round(percent) == _ALL:
        amount = "all"
    if cause.reason == "visible":
        runs = "now runs"
        if cause.change_us > 0:
            runs = "no longer runs"
        return f"; {amount} of that because communication {runs} beside computation"
    if cause.reason == "work":
        return f"; {amount} of that by several smaller changes of work"
    if cause.reason is not None:
        return f"; {amount} of that by what waits for what"
    takes = "takes" if len(cause.names) == 1 else "take"
    named = few([*cause.names])
    work = and_list(named)
    return f"; {amount} of that because {work} {takes} {more_or_less(cause.change_us)}"


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
        f"instead of {before}{unknown}{_why(claim.cause)}."
    )


CHANGED_STEP = Finding("changed_step", when=_when, short=_short)
