"""Work of one origin takes another time, and makes the step longer or shorter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htagraph.findings.differences.origins import NamedCause, Origin, changes_beyond_chance, named_causes, origin_of
from htagraph.findings.differences.pair import ChangedWork, JobPair
from htagraph.findings.differences.words import calls_text, effect_text, few, longer, more_or_less
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MIN_SHARE
from htagraph.findings.phrases import and_list, time_text

__all__ = ["CAUSES", "WITH_ALL_INSIDE", "CauseClaim"]

WITH_ALL_INSIDE = "with all inside"
"""How times of calls with all inside them are told."""
_MIN_WAITING = 2.0
"""How many times its own time on all ranks a call that only one job has must change the step time, for it to be said to
make the host wait. Chosen: its own time alone cannot do that. Doubled, waits as long as the call are not named."""


@dataclass(frozen=True, kw_only=True)
class CauseClaim(Claim):
    """Work of one origin changed; the figure is the effect on the step beyond the causes before it, µs."""

    origin: Origin
    """The common trait of the work."""
    work: tuple[ChangedWork, ...]
    """The work that changed."""
    alone_us: float
    """The effect on the step by itself, µs."""
    step_change_us: float
    """The change of the step, µs; 0 where the step did not change beyond chance."""
    span: str
    """The span of the times: ``step`` or ``job``."""
    ranks_count: int
    """How many ranks are compared."""


def _when(pair: JobPair) -> list[CauseClaim]:
    if pair.effects.change_us:
        return [_claim(pair, cause, pair.diff.change_us) for cause in named_causes(pair)]
    first = changes_beyond_chance(pair)[:1]
    beside = [NamedCause(origin_of(work, pair), (work,), 0.0, 0.0) for work in first]
    least_us = MIN_SHARE * pair.diff.before_us
    return [_claim(pair, cause, 0.0) for cause in beside if abs(cause.origin.change_us(cause.work[0])) >= least_us]


def _claim(pair: JobPair, cause: NamedCause, step_change_us: float) -> CauseClaim:
    about = and_list(work.name for work in cause.work)
    return CauseClaim(
        "causes",
        about,
        cause.effect_us,
        "us",
        origin=cause.origin,
        work=cause.work,
        alone_us=cause.alone_us,
        step_change_us=step_change_us,
        span=pair.diff.unit,
        ranks_count=pair.ranks_count,
    )


def _short(claim: CauseClaim) -> str:
    """Return how much the work of one origin changed, and the effect on the step."""
    changed = _changed(claim)
    span = claim.span
    step_us = claim.step_change_us
    effect_us = claim.figure
    if not step_us:
        return f"{changed}, which does not show in how long the {span} takes."
    if effect_us / step_us < MIN_SHARE <= claim.alone_us / step_us:
        return (
            f"{changed}, which alone would make the {span} {effect_text(claim.alone_us, step_us)}, but adds nothing to "
            "the above."
        )
    change_us = sum(map(claim.origin.change_us, claim.work))
    if change_us * effect_us < 0:
        return f"{changed} on average, but where the {span} waits for it, it {_makes(claim)}."
    there = "in it" if len(claim.work) == 1 else "in them"
    words = {"gone": f" and nothing waits {there} any more,", "new": f" and the host waits {there},"}
    waits = abs(effect_us) > _MIN_WAITING * claim.ranks_count * abs(change_us)  # ranks may take turns
    return f"{changed}{words.get(claim.origin.sort, ',') if waits else ','} which {_makes(claim)}."


def _makes(claim: CauseClaim) -> str:
    """Return the effect of a cause on the step: by itself, as in the table, and beyond the causes named before."""
    beyond = effect_text(claim.figure, claim.step_change_us)
    if abs(claim.alone_us - claim.figure) < MIN_SHARE * abs(claim.step_change_us):
        return f"makes the {claim.span} {beyond}"
    alone = f"{time_text(abs(claim.alone_us))} {longer(claim.alone_us)}"
    return f"makes the {claim.span} {alone}, or {beyond} beyond the above"


def _changed(claim: CauseClaim) -> str:
    """Return by how much the own time of work changed, or the time of all in it."""
    origin = claim.origin
    change_us = sum(map(origin.change_us, claim.work))
    of_rank = origin.sort == "rank"
    per_what = f"per {claim.span} on rank {origin.rank}" if of_rank else f"per rank and {claim.span}"
    if origin.sort in ("new", "gone", "replaced"):
        sides = [(side, [work for work in claim.work if work.side == side]) for side in ("gone", "new")]
        return and_list(_one_sided(side, work, per_what) for side, work in sides if work)
    if origin.sort == "whole":
        name = claim.work[0].name
        return f"{name} {WITH_ALL_INSIDE}, at call paths of one job only, takes {more_or_less(change_us)} {per_what}"
    take = "take" if len(claim.work) > 1 else "takes"
    often = "" if of_rank else _often(claim.work)
    return f"{_names(claim.work)} {take} {more_or_less(change_us)} own time {per_what}{often}"


def _often(several: Sequence[ChangedWork]) -> str:
    """Return the numbers of calls where work takes another time because it occurs more or less often."""
    old = sum(work.old_calls for work in several)
    new = sum(work.new_calls for work in several)
    more_often = new - old
    least = MIN_SHARE * max(old, new)
    changes = [work.change_us * more_often > least * abs(work.change_us) for work in several]
    return f" ({calls_text(old, new)})" if changes == [True] else ""


def _one_sided(side: str, several: Sequence[ChangedWork], where: str) -> str:
    """Return the work that is new or gone, and how long it takes."""
    names = and_list(few([work.name + " at some call paths" * work.runs_elsewhere for work in several]))
    time = time_text(abs(sum(work.change_us for work in several)))
    is_whole = [work.is_whole for work in several]
    spent = f"{time} own time"
    if any(is_whole):
        spent = f"{WITH_ALL_INSIDE}, {time} of work" if all(is_whole) else f"{time} of work"
    return f"{names} ({spent} {where}) {'are' if len(several) > 1 else 'is'} {side}"


def _names(several: Sequence[ChangedWork]) -> str:
    """Return the names of work as a list in words, with the word new or gone, or the kernel that took its place."""
    names = []
    for work in several:
        now = f"now {work.successor}" if work.successor else ""
        change = "new" if not work.before_us else "gone" if not work.after_us else now
        names.append(f"{work.name} ({change})" if change else work.name)
    return and_list(few(names))


CAUSES = Finding("causes", when=_when, short=_short)
