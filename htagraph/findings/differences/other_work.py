"""Two jobs do different work, so that no change explains their times."""

from __future__ import annotations

from htagraph.findings.differences.pair import JobPair
from htagraph.findings.finding import Claim, Finding

__all__ = ["OTHER_WORK"]


def _when(pair: JobPair) -> list[Claim]:
    return [Claim("other_work", "names", 2, "count")] if pair.is_other_work else []


def _short(_: Claim) -> str:
    return (
        "The jobs do different work: operators and kernels that both have are less than half of those of one job, "
        "in number and in time. So no change can be named as the cause; compare recordings of one program."
    )


OTHER_WORK = Finding("other_work", when=_when, short=_short)
