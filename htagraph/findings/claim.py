"""A claim: one conclusion about a job as a value, before it is put into words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

__all__ = ["Claim", "RestsOn", "Says", "contradictions"]


class Says(Enum):
    """What a claim says. The order is that in which a report states them."""

    NOTHING_RECORDED = "nothing was recorded"
    BOUND = "this is what most of the critical path is"
    INTERRUPTED = "something outside of the host's code interrupts it, and the job would be shorter if it did not"
    HOST_PAUSE = "on the critical path, the host spends this time on one thing"
    START_UP = "on the critical path are first calls that take far longer than later ones"
    GAIN = "the job is shorter by this if something takes no time"
    BLOCKING = "the host waits for its device, and the job would be shorter if it did not"
    STRAGGLER = "this rank makes the others wait"
    SLOW_STAGE = "one stage of a pipeline takes longer than the others, and the job would be shorter if it did not"
    WAITING = "ranks wait for each other, and no single rank causes it"
    DEVICE_IDLE = "devices are idle for one cause"
    SHORT_LAUNCHES = "launch calls take longer than the work they start"
    UNEXPLAINED = "no dependency explains this part of the critical path"
    CUT_SHORT = "files of ranks end before their events do"
    NO_DEVICE_WORK = "nothing that a device did was recorded, though the job may use one"
    UNEVEN_STEPS = "some steps take far longer or shorter than the others"
    PARTLY_DEVICE = "device work covers only a part of the recording"
    RECORDED = "recording slows the host, which bounds the job"
    UNKNOWN_CLOCKS = "the clocks of ranks are not known well enough to compare them"
    UNMATCHED = "communication has no known partner on another rank"
    ONE_RANK = "only one of several ranks was read"
    RANKS_MISSING = "some ranks of the job were not read"


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
        >>> claim = Claim(Says.BOUND, "computation", 67.2, "percent")
        >>> claim.is_certain
        True
    """

    says: Says
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

    @property
    def is_certain(self) -> bool:
        """Return whether it rests on nothing but the recording."""
        return not self.rests_on


def contradictions(claims: Iterable[Claim]) -> list[str]:
    """Return what contradicts itself or each other among the claims of one report; empty where nothing does.

    A share is between 0 and 100 %, and shares of one whole sum to at most 100 %. A gain is within its interval, no
    larger than the job, and at least what half of the change gains, unless transfers share links. A job is bound by one
    thing and has at most one straggler; waits that a slow stage causes are not nobody's. Where a loader's workers set
    the pace, nothing but the loader gains. What is unexplained is one figure.

    Example:
        >>> bound = Claim(Says.BOUND, "host", 120.0, "percent")
        >>> contradictions([bound])
        ['bound by host: 120 % is no share']
    """
    every = list(claims)
    of: dict[Says, list[Claim]] = {says: [one for one in every if one.says is says] for says in Says}
    wrong = [f"{_label(one)}: {one.figure:g} % is no share" for one in every if _is_no_share(one)]
    wrong += [f"bound by {' and by '.join(one.about for one in of[Says.BOUND])}"] if len(of[Says.BOUND]) > 1 else []
    wrong += ["several stragglers"] if len(of[Says.STRAGGLER]) > 1 else []
    wrong += ["a slow stage, and nobody"] if of[Says.SLOW_STAGE] and of[Says.WAITING] else []
    wrong += ["a straggler, and none"] if of[Says.STRAGGLER] and of[Says.WAITING] else []
    wrong += [
        f"{_label(one)}: {problem}" for one in [*of[Says.GAIN], *of[Says.INTERRUPTED]] for problem in _of_gain(one)
    ]
    for bound in of[Says.BOUND]:
        wrong += _against_bound(bound, of)
    return wrong


def _is_no_share(claim: Claim) -> bool:
    return claim.unit == "percent" and not 0 <= claim.figure <= 100 + 1e-6


def _label(claim: Claim) -> str:
    return f"{claim.says.name.lower().replace('_', ' ')}{' by' if claim.says is Says.BOUND else ''} {claim.about}"


def _of_gain(claim: Claim) -> list[str]:
    low, high = claim.interval or (claim.figure, claim.figure)
    wrong = [] if low <= claim.figure <= high else [f"{claim.figure:g} is not between {low:g} and {high:g}"]
    whole, half = claim.facts.get("makespan_us"), claim.facts.get("half_us", 0.0)
    wrong += ["more than the job takes"] if whole is not None and claim.figure > whole else []
    less = half > claim.figure + 1e-6 and not claim.facts.get("shared", False)
    return wrong + (["half of it gains more"] if less else [])


def _against_bound(bound: Claim, of: Mapping[Says, list[Claim]]) -> list[str]:
    wrong = [
        f"unexplained {one.figure:.0f} % and {bound.facts.get('unexplained_percent', one.figure):.0f} %"
        for one in of[Says.UNEXPLAINED]
        if abs(one.figure - bound.facts.get("unexplained_percent", one.figure)) > 1e-6
    ]
    if bound.facts.get("by_workers"):
        wrong += [
            f"{_label(one)}, where the loader's workers set the pace"
            for one in of[Says.GAIN]
            if not one.facts.get("loader")
        ]
    return wrong
