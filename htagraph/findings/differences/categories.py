"""The time on the critical path shifts between categories from one job to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.analyses.differences.diff import Diff
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
    by_category = _change_by_category(diff)
    if len(by_category) < 2:  # of one kind of time, the first sentence says it
        return []
    part_before, part_after = diff.parts
    untraced_us = _untraced_us(part_after, diff.after) - _untraced_us(part_before, diff.before)
    least_us = MIN_SHARE * abs(diff.change_us)
    recorded_us = dict(by_category)
    recorded_us[_HOST] = by_category.get(_HOST, 0.0) - untraced_us
    large = [key for key, us in by_category.items() if max(abs(us), abs(recorded_us[key])) > least_us]
    largest = sorted(large, key=lambda category: -abs(by_category[category]))[: 2 * MAX_NAMED]
    shifts = []
    for category in largest:
        work_us = recorded_us[category]
        exposed = _exposed(pair, category, work_us / pair.ranks_count) if abs(work_us) > least_us else ""
        shows_untraced = category == _HOST and abs(untraced_us) > least_us
        shifts.append(Shift(category, by_category[category], exposed, untraced_us if shows_untraced else 0.0))
    is_explained = bool(pair.claims(CAUSES.when) or pair.claims(REST.when))
    if not shifts or (is_explained and len(shifts) == 1 and not shifts[0].exposed):
        return []
    sources = [source_of(job.graph) for job in diff.parts]
    source = sources[0] or sources[1]
    claim = CategoriesClaim(
        "categories",
        "path",
        len(shifts),
        "count",
        shifts=tuple(shifts),
        source=source,
        span=diff.unit,
    )
    return [claim]


def _change_by_category(diff: Diff) -> dict[str, float]:
    """Return by how much the time of each category on the path changed, µs."""
    table = diff.summary()
    rows = table[table["group"] == "category"]
    return dict(zip(rows["key"], rows["change_us"], strict=True))


def _untraced_us(job: ComparedPart, path: CriticalPath) -> float:
    """Return how long the path of a usual step is in host time that no event covers, µs."""
    in_region = job.graph.activities.kind[path.segments.activity] == ActivityKind.ANNOTATION
    is_untraced = path.segments.gap == GapKind.HOST_UNTRACED
    untraced_ns = job.usual_times(path)[is_untraced & ~in_region].sum()
    return float(untraced_ns) / 1000


def _exposed(pair: JobPair, key: str, us: float) -> Literal["", "more", "less"]:
    """Return whether more or less of the same work is on the critical path only because something else is not.

    Args:
        pair: the two jobs.
        key: the category.
        us: by how much its time on the path changed per rank, µs.
    """
    if key not in _WORK:
        return ""
    # the same: neither all of it nor that of any name grew; fetching data is the data loader's on the path
    grown = []
    for (name, kind), (before_us, after_us) in pair.effects.own_us.items():
        if kind in _WORK[key] and not is_data_loader(name):
            grown.append(us * (after_us - before_us))
    if max(sum(grown), *grown, 0.0) >= MIN_SHARE * us**2:
        return ""
    return "more" if us > 0 else "less"


def _short(claim: CategoriesClaim) -> str:
    """Return by how much each category takes more or less of the path, in words."""
    words = dict(CATEGORY_WORDS)
    if claim.source:
        words["outside"] = f"waits in {claim.source}"
    texts = [f"{words[shift.category]} {signed(shift.change_us)}{_why_shifted(shift)}" for shift in claim.shifts]
    return f"On the critical path, per {claim.span}: {', '.join(texts)}."


def _why_shifted(shift: Shift) -> str:
    """Return the reason of a change of a category, in brackets; empty where none is known."""
    exposed = f" (not {shift.exposed} work, but {shift.exposed} of it on the path)" if shift.exposed else ""
    untraced = f" (of that, code or a wait without any event {signed(shift.untraced_us)})" if shift.untraced_us else ""
    return exposed + untraced


CATEGORIES_OF_PATH = Finding("categories", when=_when, short=_short)
