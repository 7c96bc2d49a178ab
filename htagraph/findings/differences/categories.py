"""The time on the critical path shifts between categories from one job to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.core.kinds import ActivityKind, GapKind
from htagraph.core.naming import is_data_loader
from htagraph.findings.bound import source_of
from htagraph.findings.differences.causes import CAUSES
from htagraph.findings.differences.origins import HOST_KINDS
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.rest import REST
from htagraph.findings.differences.words import signed
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MAX_NAMED, MIN_SHARE
from htagraph.findings.phrases import CATEGORY_WORDS
from htagraph.queries.paths import CriticalPath

__all__ = ["CATEGORIES_OF_PATH", "CategoriesClaim", "Shift"]

_HOST = "host"
_WORK = {"computation": frozenset((ActivityKind.COMPUTATION.label,)), _HOST: HOST_KINDS}
"""Kinds of work that the critical path spends time on, by category, as far as their own time says how much there is."""


class Shift(NamedTuple):
    """A category takes more or less of the path."""

    category: str
    change_us: float
    """The change per usual step, µs."""
    exposed: Literal["", "more", "less"] = ""
    """Whether more or less of the same work is on the path, only because something else is not."""
    untraced_us: float = 0.0
    """The part of the change that no event covers, µs; 0 where that is little."""


@dataclass(frozen=True, kw_only=True)
class CategoriesClaim(Claim):
    """Categories of the path take another time; the figure counts them."""

    shifts: tuple[Shift, ...]
    """The changes, the largest first."""
    source: str
    """The region in which the job waits for a process that was not recorded; empty for none."""
    span: str
    """The span of the times: ``step`` or ``job``."""


def _when(pair: JobPair) -> list[CategoriesClaim]:
    """Return the claim, unless a named cause says it."""
    if not pair.effects.change_us:
        return []
    diff = pair.diff
    table = diff.summary()
    table = table[table["group"] == "category"]
    by_category: dict[str, float] = dict(zip(table["key"], table["change_us"], strict=True))
    if len(by_category) < 2:  # of one kind of time, the first sentence says it
        return []
    before, after = (_untraced_us(job, path) for job, path in zip(diff.parts, (diff.before, diff.after), strict=True))
    untraced_us = after - before
    least_us = MIN_SHARE * abs(diff.change_us)
    recorded_us = by_category | {_HOST: by_category.get(_HOST, 0.0) - untraced_us}
    large = [(key, us) for key, us in by_category.items() if max(abs(us), abs(recorded_us[key])) > least_us]
    large = sorted(large, key=lambda change: -abs(change[1]))[: 2 * MAX_NAMED]
    shifts = tuple(
        Shift(
            key, us,
            _exposed(pair, key, recorded_us[key] / pair.ranks_count) if abs(recorded_us[key]) > least_us else "",
            untraced_us if key == _HOST and abs(untraced_us) > least_us else 0.0,
        )
        for key, us in large
    )  # fmt: skip
    is_explained = bool(pair.claims(CAUSES.when) or pair.claims(REST.when))
    if not shifts or (is_explained and len(shifts) == 1 and not shifts[0].exposed):
        return []
    source = next(filter(None, (source_of(job.graph) for job in diff.parts)), "")
    return [CategoriesClaim("categories", "path", len(shifts), "count", shifts=shifts, source=source, span=diff.unit)]


def _untraced_us(job: ComparedPart, path: CriticalPath) -> float:
    """Return how long the path of a usual step is in host time that no event covers, µs."""
    in_region = job.graph.activities.kind[path.segments.activity] == ActivityKind.ANNOTATION
    return float(job.usual_times(path)[(path.segments.gap == GapKind.HOST_UNTRACED) & ~in_region].sum()) / 1000


def _exposed(pair: JobPair, key: str, us: float) -> Literal["", "more", "less"]:
    """Return whether more or less of the same work is on the critical path only because something else is not."""
    # the same: neither all of it nor that of any name grew; fetching data is the data loader's on the path
    grown = [
        us * (after - before) for (name, kind), (before, after) in pair.effects.own_us.items()
        if kind in _WORK.get(key, ()) and not is_data_loader(name)
    ]  # fmt: skip
    if key not in _WORK or max(sum(grown), *grown, 0.0) >= MIN_SHARE * us**2:
        return ""
    return "more" if us > 0 else "less"


def _short(claim: CategoriesClaim) -> str:
    words = CATEGORY_WORDS | ({"outside": f"waits in {claim.source}"} if claim.source else {})
    texts = []
    for shift in claim.shifts:
        exposed = f" (not {shift.exposed} work, but {shift.exposed} of it on the path)" if shift.exposed else ""
        untraced = f" (of that, code or a wait without any event {signed(shift.untraced_us)})"
        texts.append(
            f"{words[shift.category]} {signed(shift.change_us)}{exposed}{untraced if shift.untraced_us else ''}"
        )
    return f"On the critical path, per {claim.span}: {', '.join(texts)}."


CATEGORIES_OF_PATH = Finding("categories", when=_when, short=_short)
