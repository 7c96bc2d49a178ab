"""Two jobs differ in facts that change times by themselves: devices, size, or the ranks that were read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.findings.differences.pair import ComparedJobs
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import and_list, spoken
from htagraph.queries.inputs import devices_in, inputs_of

__all__ = ["UNLIKE_JOBS", "JobSetup", "UnlikeJobsClaim"]


class JobSetup(NamedTuple):
    """The facts of a job that change its times."""

    devices: str
    """The kinds of its devices."""
    size: int
    """Ranks of the job; 0 where no file says."""
    ranks_read: int
    """Ranks that are compared."""


@dataclass(frozen=True, kw_only=True)
class UnlikeJobsClaim(Claim):
    """Two jobs are unlike; the figure counts the kinds of facts that differ."""

    before: JobSetup
    """The facts of the job before."""
    after: JobSetup
    """The facts of the job after."""


def _when(pair: ComparedJobs) -> list[UnlikeJobsClaim]:
    before, after = map(_job, pair.parts)
    claim = UnlikeJobsClaim("unlike_jobs", "jobs", 0, "count", before=before, after=after)
    facts = _facts(claim)
    return [replace(claim, figure=len(facts))] if facts else []


def _job(compared: ComparedPart) -> JobSetup:
    inputs = inputs_of(compared.graph)
    size = int(inputs["world_size"].max()) if len(inputs) else 0
    return JobSetup(", ".join(devices_in(inputs)), size, len(compared.chosen_ranks))


def _facts(claim: UnlikeJobsClaim) -> list[str]:
    """Return the facts that differ."""
    before = claim.before
    after = claim.after
    has_sizes = before.size > 0 and after.size > 0 and before.size != after.size
    devices = f"ran on different devices ({before.devices} before, {after.devices} after)"
    sizes = f"have different sizes ({before.size} ranks before, {after.size} after)"
    ranks = f"were read with different numbers of ranks ({before.ranks_read} before, {after.ranks_read} after)"
    return spoken(
        devices if before.devices != after.devices else "",
        sizes if has_sizes else "",
        ranks if before.ranks_read != after.ranks_read and not has_sizes else "",
    )


def _short(claim: UnlikeJobsClaim) -> str:
    return (
        f"The jobs {and_list(_facts(claim))}, which changes times by itself: the differences below are of all that "
        "together. To see what one change does, record both jobs alike otherwise."
    )


UNLIKE_JOBS = Finding("unlike_jobs", when=_when, short=_short)
