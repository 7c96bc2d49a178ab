"""Which changes of work have one origin, and how much of a step's change each origin causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from htagraph.analyses.differences.effects import PYTHON_BETWEEN, Key
from htagraph.core.kinds import COMMUNICATION, FRAMES, ActivityKind
from htagraph.findings.differences.pair import ChangedWork, JobPair
from htagraph.findings.limits import LARGE_SHARE, MAX_NAMED, MIN_SHARE

__all__ = [
    "HOST_KINDS",
    "LargeChanges",
    "NamedCause",
    "Origin",
    "Sort",
    "changes_beyond_chance",
    "large_changes",
    "named_causes",
    "origin_of",
]

Sort: TypeAlias = Literal["work", "whole", "transfers", "rank", "new", "gone", "replaced"]
"""The common trait of the work of a cause."""
HOST_KINDS: Final = frozenset((PYTHON_BETWEEN[1], *(kind.label for kind in (*FRAMES, ActivityKind.RUNTIME))))
"""Kinds of work whose own time is time of the host."""
_TRANSFERS = frozenset(kind.label for kind in COMMUNICATION)
_MAX_FACTOR_DIFFERENCE = 0.1
"""How much relative changes of own time that have one cause differ, as a share of the larger. Chosen: operators that
one change halves are recorded as 49.5 to 50.5 % shorter. Doubled, -20 % and -24 % are called one cause."""


class Origin(NamedTuple):
    """The common trait of the work of a cause, with its name."""

    sort: Sort
    kind: str = ""
    """The kind of the work, where the work has one name."""
    name: str = ""
    """The name of the work."""
    rank: int = -1
    """The rank whose work it is."""

    def change_us(self, work: ChangedWork) -> float:
        """Return the change of work: on the rank of the cause, or per rank, µs."""
        return work.rank_change_us if self.sort == "rank" else work.change_us


class NamedCause(NamedTuple):
    """A cause that has a sentence."""

    origin: Origin
    work: tuple[ChangedWork, ...]
    alone_us: float
    """Effect on the step by itself, µs."""
    effect_us: float
    """Its addition to the effect of causes named before it, so that nothing counts twice, µs."""


class LargeChanges(NamedTuple):
    """The changes of work that matter for a step."""

    by_origin: Mapping[Origin, Sequence[ChangedWork]]
    """The work that may have caused the change of the step."""
    against: Sequence[ChangedWork]
    """The work whose change takes a part of that back."""


def changes_beyond_chance(pair: JobPair) -> list[ChangedWork]:
    """Return the work that changed by more than chance, without host code where only one job has Python functions."""
    before, after = pair.records_python
    return [work for work in pair.work if work.is_beyond_chance and not (before != after and work.kind in HOST_KINDS)]


def large_changes(pair: JobPair) -> LargeChanges:
    """Return the changes that matter, by origin."""
    step_us = pair.diff.change_us
    large = [
        (work, work.effect_us / step_us)
        for work in changes_beyond_chance(pair)
        if abs(work.effect_us / step_us) >= MIN_SHARE
    ]
    replaced = {work.side for work, _ in large} >= {"new", "gone"}
    by_origin: dict[Origin, list[ChangedWork]] = {}
    against = []
    for work, share in large:
        if replaced and work.side:
            by_origin.setdefault(Origin("replaced"), []).append(work)
        elif share > 0:
            by_origin.setdefault(_origin_among(by_origin, work, pair), []).append(work)
        else:
            against.append(work)
    return LargeChanges(by_origin, against)


def _origin_among(origins: Mapping[Origin, Sequence[ChangedWork]], work: ChangedWork, pair: JobPair) -> Origin:
    """Return the origin of work: a known one whose work changed by the same factor, or its own."""
    origin = origin_of(work, pair)
    if origin.sort != "work":
        return origin
    alike = [like for like, of_origin in origins.items() if like.kind == origin.kind and _in_step(of_origin[0], work)]
    return alike[0] if alike else origin


def origin_of(work: ChangedWork, pair: JobPair) -> Origin:
    """Return the common trait of work that makes it one cause: transfers, work of one rank, being new or gone."""
    side = work.side
    if work.is_whole and not side:
        return Origin("whole", name=work.name)
    if work.kind in _TRANSFERS:
        return Origin("transfers")
    ranks = pair.ranks_count
    alike = ranks > 1 and work.rank >= 0 and work.rank_change_us * work.change_us > 0
    if alike and abs(work.rank_change_us) >= (1 - LARGE_SHARE) * ranks * abs(work.change_us):
        return Origin("rank", rank=work.rank)
    return Origin(side) if side else Origin("work", work.kind, work.name)


def _in_step(first: ChangedWork, work: ChangedWork) -> bool:
    """Return whether two own times changed by the same factor, as by another clock rate or input size."""
    factors = [work_of.change_us / work_of.before_us if work_of.before_us else 0.0 for work_of in (first, work)]
    return abs(factors[0] - factors[1]) <= _MAX_FACTOR_DIFFERENCE * max(map(abs, factors))


def named_causes(pair: JobPair) -> list[NamedCause]:
    """Return the causes that are named, the largest first, with their effects, which add up."""
    effects = pair.effects
    step_us = pair.diff.change_us
    if not effects.change_us:
        return []
    origins = [*large_changes(pair).by_origin.items()]
    sums = [effects.replayed([work.key for work in of_origin]) for _, of_origin in origins]
    named: list[NamedCause] = []
    keys: list[Key] = []
    before_us = 0.0
    for number in sorted(range(len(sums)), key=lambda number: -sums[number] / step_us):
        origin, of_origin = origins[number]
        if sums[number] / step_us < MIN_SHARE or len(named) == MAX_NAMED:
            break
        work_keys = [work.key for work in of_origin]
        together_us = effects.replayed([*keys, *work_keys]) if keys else sums[number]
        keys += work_keys
        named.append(NamedCause(origin, tuple(of_origin), sums[number], together_us - before_us))
        before_us = together_us
    return named
