"""Relations of findings: a special claim stands in the place of a general claim, or has its gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from htagraph.core.kinds import ActivityKind
from htagraph.findings.bound import BOUND, BoundClaim
from htagraph.findings.finding import Claim
from htagraph.findings.gain import GAIN, GainClaim
from htagraph.findings.interrupted import INTERRUPTED, InterruptedClaim, affected_ranks
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.slow_beside import SLOW_BESIDE, SlowBesideClaim
from htagraph.findings.slow_stage import SLOW_STAGE
from htagraph.findings.straggler import STRAGGLER, StragglerClaim
from htagraph.findings.waiting import WAITING

__all__ = ["TAKES_GAIN", "TAKES_PLACE", "Relation", "gain_us", "related"]


class Relation(NamedTuple):
    """A claim of one finding changes the words of a claim of another finding."""

    special: str
    """The finding that says more."""
    general: str
    """The finding that says less."""
    holds: Callable[[Claim, Claim], bool]
    """Returns whether two claims, of the special and of the general finding, are related like this."""
    why: str


_WAYS_TO_SEND_LESS: Final = ("accumulation", "wide gradients", "whole reductions")
"""The remedies by which a job sends less: advice to send less says nothing beside them."""
TAKES_PLACE = (
    Relation(
        STRAGGLER.name,
        GAIN.name,
        lambda _, gain: isinstance(gain, GainClaim) and gain.what == "straggler",
        "both say what is gained if the rank is as fast as its peers",
    ),
    Relation(
        SLOW_STAGE.name,
        WAITING.name,
        lambda _stage, _waiting: True,
        "ranks of a pipeline wait for the slow stage",
    ),
    Relation(
        SLOW_BESIDE.name,
        GAIN.name,
        lambda slow, gain: isinstance(slow, SlowBesideClaim) and gain.about == slow.companion,
        "the gain without the companion holds that the work beside it is fast",
    ),
)
"""The special claim stands, the general claim is left out."""

TAKES_GAIN = (
    Relation(
        REMEDY.name,
        BOUND.name,
        lambda remedy, bound: (
            isinstance(remedy, RemedyClaim)
            and remedy.is_of_transfers
            and isinstance(bound, BoundClaim)
            and bound.about == "communication"
            and (gain_us(remedy) > gain_us(bound) or remedy.about in _WAYS_TO_SEND_LESS)
        ),
        "fewer transfers gain more than transfers that take no time, or are the way to send less",
    ),
    Relation(
        SLOW_BESIDE.name,
        BOUND.name,
        lambda slow, bound: (
            isinstance(slow, SlowBesideClaim)
            and slow.companion_kind == ActivityKind.MEMORY
            and bound.about == ActivityKind.MEMORY.label
            and gain_us(slow) > gain_us(bound)
        ),
        "the gain without copies holds that the work beside them is fast",
    ),
    Relation(
        STRAGGLER.name,
        INTERRUPTED.name,
        lambda straggler, interrupted: (
            isinstance(straggler, StragglerClaim)
            and isinstance(interrupted, InterruptedClaim)
            and straggler.cause == "interrupted"
            and straggler.change is not None
            and affected_ranks(interrupted) == list(straggler.ranks)
        ),
        "the rank is late because it is interrupted, so that both free the same time in the same way",
    ),
)
"""The special claim has the gain and the advice, the general claim is said without gain and advice."""


def gain_us(claim: Claim) -> float:
    """Return the gain of a claim, µs: of its change, or without its subject; 0 for none."""
    gain = claim.change.gain if claim.change else claim.gain
    return gain.value_us if gain else 0.0


def related(claims: Sequence[Claim]) -> list[Claim]:
    """Return claims as they are said beside each other."""
    kept = [claim for claim in claims if not _is_special(TAKES_PLACE, claims, claim)]
    kept = [_without_gain(claim) if _is_special(TAKES_GAIN, kept, claim) else claim for claim in kept]
    most_us = max((claim.figure for claim in kept if claim.says == GAIN.name), default=0.0)
    if any(gain_us(claim) > most_us for claim in kept if claim.says not in (BOUND.name, GAIN.name)):
        kept = [_beside(claim) if claim.says == GAIN.name else claim for claim in kept]
    return kept


def _is_special(relations: Sequence[Relation], claims: Sequence[Claim], general: Claim) -> bool:
    """Return whether some claim is related to a general one."""
    return any(
        relation.holds(claim, general)
        for relation in relations
        if relation.general == general.says
        for claim in claims
        if claim.says == relation.special
    )


def _without_gain(claim: Claim) -> Claim:
    """Return a claim without its gain."""
    return replace(_beside(claim), gain=None, change=None)


def _beside(claim: Claim) -> Claim:
    """Return a claim that is said beside a claim that gains more."""
    return replace(claim, is_beside=True)
