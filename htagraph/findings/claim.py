"""A claim: one conclusion about a job as a value, which the words of its finding tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

__all__ = ["LARGE_SHARE", "MAX_NAMED", "MIN_PERCENT", "MIN_SHARE", "Claim", "RestsOn", "contradictions"]

MIN_PERCENT = 2.0
"""Percent of the critical path, or of the makespan, from which something is named. Chosen: less is not worth naming.
Doubled, what takes 2 to 4 % is not named."""
MIN_SHARE = 0.05
"""Share of the whole (of the job's time, of a change, of waiting) from which something has a sentence. Chosen: less is
not worth one; without one of several ranks that do the same work, jobs were 0 to 4 % shorter, without a straggler 9 %
and more. Doubled, waits, idle time, gains and causes of 5 to 10 % are not named."""


LARGE_SHARE = 0.2
"""Share of a whole (of launch calls, of memory, of the path, of recorded time) from which it is named though something
else is larger, and which nearly all of a whole lacks. Chosen: worth knowing then. Doubled, what is a fifth to two
fifths is not named."""
MAX_NAMED = 3
"""Activities that prove a claim, pauses and causes that are named. Chosen: more do not fit on a screen. Doubled, six
are."""


class RestsOn(Enum):
    """What has to be right for a claim to hold, beyond the recording itself."""

    CLOCKS = "the clocks of different ranks"
    MATCHES = "which calls of different ranks are one collective"
    UNEXPLAINED = "pauses that nothing explains staying as they are"
    OTHER_RANKS = "ranks that were not read"


@dataclass(frozen=True)
class Claim:
    """One conclusion, with its figure and what proves it.

    Example:
        >>> claim = Claim("bound", "computation", 67.2, "percent")
        >>> claim.about, claim.figure
        ('computation', 67.2)
    """

    says: str
    """The name of its finding, one of `htagraph.findings.verdict.FINDINGS`."""
    about: str
    """The category, name, rank or cause that it is about."""
    figure: float
    unit: Literal["percent", "us", "count"]
    interval: tuple[float, float] | None = None
    """The figure's least and largest value, where it is a prediction."""
    rows: tuple[int, ...] = ()
    """Activities that prove it, some of them."""
    rests_on: frozenset[RestsOn] = frozenset()
    """What makes it uncertain."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further figures and names that its sentence gives."""


def contradictions(claims: Iterable[Claim]) -> list[str]:
    """Return what contradicts itself or each other among the claims of one report; empty where nothing does.

    A share is between 0 and 100 %, and shares of one whole sum to at most 100 %. A gain is within its interval, no
    larger than the job, and at least what half of the change gains, unless transfers share links. A job is bound by one
    thing and has at most one straggler; waits that a slow stage causes are not nobody's. Where a loader's workers set
    the pace, nothing but the loader gains. What is unexplained is one figure.

    Example:
        >>> bound = Claim("bound", "host", 120.0, "percent")
        >>> contradictions([bound])
        ['bound by host: 120 % is no share']
    """
    every = list(claims)
    of: dict[str, list[Claim]] = defaultdict(list)
    for claim in every:
        of[claim.says].append(claim)
    wrong = [f"{_label(one)}: {one.figure:g} % is no share" for one in every if _is_no_share(one)]
    wrong += [f"bound by {' and by '.join(one.about for one in of['bound'])}"] if len(of["bound"]) > 1 else []
    wrong += ["several stragglers"] if len(of["straggler"]) > 1 else []
    wrong += ["a slow stage, and nobody"] if of["slow_stage"] and of["waiting"] else []
    wrong += ["a straggler, and none"] if of["straggler"] and of["waiting"] else []
    wrong += [f"{_label(one)}: {problem}" for one in [*of["gain"], *of["interrupted"]] for problem in _of_gain(one)]
    for bound in of["bound"]:
        wrong += _against_bound(bound, of)
    return wrong


def _is_no_share(claim: Claim) -> bool:
    return claim.unit == "percent" and not 0 <= claim.figure <= 100 + 1e-6


def _label(claim: Claim) -> str:
    return f"{claim.says.replace('_', ' ')}{' by' if claim.says == 'bound' else ''} {claim.about}"


def _of_gain(claim: Claim) -> list[str]:
    low, high = claim.interval or (claim.figure, claim.figure)
    wrong = [] if low <= claim.figure <= high else [f"{claim.figure:g} is not between {low:g} and {high:g}"]
    whole, half = claim.facts.get("makespan_us"), claim.facts.get("half_us", 0.0)
    wrong += ["more than the job takes"] if whole is not None and claim.figure > whole else []
    less = half > claim.figure + 1e-6 and not claim.facts.get("shared", False)
    return wrong + (["half of it gains more"] if less else [])


def _against_bound(bound: Claim, of: Mapping[str, list[Claim]]) -> list[str]:
    wrong = [
        f"unexplained {one.figure:.0f} % and {bound.facts.get('unexplained_percent', one.figure):.0f} %"
        for one in of["unexplained"]
        if abs(one.figure - bound.facts.get("unexplained_percent", one.figure)) > 1e-6
    ]
    if bound.facts.get("by_workers"):
        wrong += [
            f"{_label(one)}, where the loader's workers set the pace"
            for one in of["gain"]
            if not one.facts.get("loader")
        ]
    return wrong
