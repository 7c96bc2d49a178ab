"""A region takes another time because every step has more or fewer of it, which is no chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from htagraph.analyses.differences.diff import Diff
from htagraph.core.kinds import ActivityKind
from htagraph.findings.differences.causes import WITH_ALL_INSIDE
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.words import calls_text, more_or_less
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MIN_SHARE

__all__ = ["REGIONS", "RegionClaim"]


@dataclass(frozen=True, kw_only=True)
class RegionClaim(Claim):
    """A region runs more or less often; the figure is the change of its time per rank and step, µs."""

    old_calls: float
    """Calls per rank and step before."""
    new_calls: float
    """Calls per rank and step after."""
    span: str
    """The span of the times: ``step`` or ``job``."""


class _Region(NamedTuple):
    """An annotation in both jobs, per rank and step."""

    name: str
    old_calls: float
    """Calls before."""
    old_ns: float
    """Time before, ns."""
    new_calls: float
    """Calls after."""
    new_ns: float
    """Time after, ns."""


def _when(pair: JobPair) -> list[RegionClaim]:
    diff = pair.diff
    if not pair.effects.change_us:
        return []
    claims = []
    for region in _regions(diff):
        change_ns = region.new_ns - region.old_ns
        more_calls = region.new_calls - region.old_calls
        is_whole = [(pair.ranks_count * calls).is_integer() for calls in (region.old_calls, region.new_calls)]
        is_in_both = min(region.old_calls, region.new_calls) > 0
        follows = change_ns * more_calls > 0 and change_ns * diff.change_us > 0
        if is_in_both and all(is_whole) and follows:
            claims.append(
                RegionClaim(
                    "regions",
                    region.name,
                    change_ns / 1000,
                    "us",
                    old_calls=region.old_calls,
                    new_calls=region.new_calls,
                    span=diff.unit,
                )
            )
    most = max(claims, key=lambda claim: (abs(claim.figure), _short(claim)), default=None)
    if most is None or not abs(most.figure) >= MIN_SHARE * abs(diff.change_us) > 0:
        return []
    return [most]


def _regions(diff: Diff) -> list[_Region]:
    """Return the calls and the times of annotations in both jobs, summed by name."""
    tree = diff.alignment
    jobs = zip(diff.parts, tree.path, strict=True)
    sums = [np.stack(job.sums(path, len(tree))) / job.repeats for job, path in jobs]
    is_region = np.array(tree.kinds) == ActivityKind.ANNOTATION.label
    by_place = pd.DataFrame(np.concatenate(sums).T[is_region])
    by_name = by_place.groupby(np.array(tree.names)[is_region]).sum()
    return [_Region(str(name), *figures) for name, *figures in by_name.itertuples()]


def _short(claim: RegionClaim) -> str:
    calls = calls_text(claim.old_calls, claim.new_calls)
    taken = f"{claim.about} takes {more_or_less(claim.figure)} {WITH_ALL_INSIDE}"
    return f"Per rank and {claim.span}, {taken} ({calls})."


REGIONS = Finding("regions", when=_when, short=_short)
