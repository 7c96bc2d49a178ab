"""Digests of the ranks of a job, each made of the graph of that rank alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import htagraph as hg
from htagraph import JobSkeleton, RankDigest
from tests.reach import graph_of
from tests.strategies import Job, load

__all__ = ["digests_of", "digests_of_events", "job_of", "moved"]


@cache
def digests_of(folder: Path, *classes: str) -> tuple[RankDigest, ...]:
    """Return the digests of a folder's ranks, with the usual classes or with those of the kinds given."""
    files = {rank: trace.path for rank, trace in graph_of(folder).traces.items()}
    criteria = {kind: {"kind": kind} for kind in classes} if classes else None
    return tuple(hg.digest(hg.load({rank: file}), criteria) for rank, file in files.items())


@cache
def job_of(folder: Path) -> JobSkeleton:
    """Return the job that is joined from the digests of a folder's ranks."""
    return hg.joined_job(digests_of(folder))


def digests_of_events(job: Job, classes: dict[str, Any] | None = None) -> list[RankDigest]:
    """Return the digests of generated ranks."""
    return [hg.digest(load({rank: events}), classes) for rank, events in job.items()]


def moved(digests: Sequence[RankDigest], count: int, *, per_host: int = 8) -> list[RankDigest]:
    """Return digests of as many ranks as wanted: the given ones again and again, as one job of one process group."""
    out = []
    every = str(list(range(count)))
    for rank in range(count):
        digest = digests[rank % len(digests)]
        part = digest.part
        facts = replace(part.rest.facts, host=f"node{rank // per_host}")
        names = tuple(every if name.startswith("[") and name.endswith("]") else name for name in part.names)
        acts = replace(part.activities, rank=np.full(len(part.activities), rank, np.int32))
        lanes = tuple(replace(lane, rank=rank) for lane in part.lanes)
        rest = replace(part.rest, rank=rank, facts=facts)
        out.append(replace(digest, part=replace(part, activities=acts, names=names, lanes=lanes, rest=rest)))
    return out
