"""A region takes another time because every step has more or fewer of it, which is no chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

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


def _when(pair: JobPair) -> list[RegionClaim]:
    diff = pair.diff
    if not pair.effects.change_us:
        return []
    tree = diff.alignment
    ranks = pair.ranks_count
    jobs = zip(diff.parts, tree.path, strict=True)
    sums = [np.stack(job.sums(path, len(tree))) / job.repeats for job, path in jobs]
    is_region = np.array(tree.kinds) == ActivityKind.ANNOTATION.label
    table = pd.DataFrame(np.concatenate(sums).T[is_region]).groupby(np.array(tree.names)[is_region]).sum()
    claims = [
        RegionClaim(
            "regions", str(name), (now - was) / 1000, "us", old_calls=old, new_calls=new, span=diff.unit
        )
        for name, old, was, new, now in table.itertuples()
        if min(old, new) and (ranks * old).is_integer() and (ranks * new).is_integer()
        and min((now - was) * (new - old), (now - was) * diff.change_us) > 0
    ]  # fmt: skip
    most = max(claims, key=lambda claim: (abs(claim.figure), _short(claim)), default=None)
    if most is None or not abs(most.figure) >= MIN_SHARE * abs(diff.change_us) > 0:
        return []
    return [most]


def _short(claim: RegionClaim) -> str:
    calls = calls_text(claim.old_calls, claim.new_calls)
    taken = f"{claim.about} takes {more_or_less(claim.figure)} {WITH_ALL_INSIDE}"
    return f"Per rank and {claim.span}, {taken} ({calls})."


REGIONS = Finding("regions", when=_when, short=_short)
