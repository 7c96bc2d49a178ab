"""The bound of the job cannot be said: a path was recorded, and the recording does not show which cause decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from htagraph.findings.bound import BOUND, untraced_host
from htagraph.findings.finding import PREDICTS, Claim, Finding
from htagraph.findings.phrases import CATEGORY_WORDS, cause_words, share_text
from htagraph.findings.results import Results
from htagraph.queries.path_segments import bound_of

__all__ = ["UNKNOWN_BOUND", "UnknownBoundClaim"]


@dataclass(frozen=True, kw_only=True)
class UnknownBoundClaim(Claim):
    """The bound of the job is unknown; the figure is the share of its most likely cause in the path, percent."""

    about: Literal["device", "communication"] = field(kw_only=False)
    """Why it is unknown: devices work all the time, while the path is something else; or the host may wait for
    communication."""
    cause: str = ""
    """The cause with most of the path, where devices work all the time."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Percent of the path by category, the largest first, where devices work all the time."""


def _when(results: Results) -> list[UnknownBoundClaim]:
    """Return the claim that the cause is unknown; none where `BOUND` names the cause."""
    length_ns = int(results.parts.length.sum())
    if not length_ns or results.claims(BOUND.when):
        return []
    shares = bound_of(results.warm_path, results.parts)
    percent = shares.causes.get(shares.cause, 0.0)
    if not results.bound.cause:
        claim = UnknownBoundClaim(
            "unknown_bound", "device", percent, "percent", cause=shares.cause, shares=shares.shares
        )
        return [claim]
    untraced_ns, beside_ns = untraced_host(results)
    if 2 * beside_ns > length_ns:
        untraced_percent = 100 * untraced_ns / length_ns
        return [UnknownBoundClaim("unknown_bound", "communication", untraced_percent, "percent")]
    return []


def _short(claim: UnknownBoundClaim) -> str:
    if claim.about == "communication":
        share = share_text(claim.figure)
        transfers = CATEGORY_WORDS["communication"]
        return (
            f"What bounds the job cannot be said: {share} of the critical path is host time without any event, most "
            f"of it beside {transfers}, so that the host may wait for other ranks or work by itself."
        )
    words = cause_words(claim.cause, claim.shares)
    return (
        f"What bounds the job cannot be said: its devices are at work nearly all the time, but the critical path is "
        f"{words} ({share_text(claim.figure)}): what their work depends on was not recorded."
    )


def _why(claim: UnknownBoundClaim) -> str:
    """Return that the bound is not known, and the reason."""
    share = share_text(claim.figure)
    if claim.about == "communication":
        return f"what bounds the job: {share} of the critical path is host time without any event"
    return f"what bounds the job: its devices work nearly always, but the critical path is {share} something else"


UNKNOWN_BOUND = Finding("unknown_bound", needs=PREDICTS, when=_when, short=_short, why=_why, is_unknown=True)
