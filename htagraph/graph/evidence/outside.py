"""Waits for a process that was not recorded: an inference from a steady pace, whatever the waits are called.

Nothing in the recording ends when such a wait ends, so that no name and no id can say so; `threads.outside_waits` finds
stretches that make up for the work before them. A thread that works by itself at a steady pace looks the same, where
its work is steady too: predictions are made with these edges and without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, joined
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.paces import fetch_ns, paces
from htagraph.graph.evidence.threads import outside_waits, unnumbered_names
from htagraph.graph.tolerances import Confidence

__all__ = ["Outside", "outside"]


class Outside(NamedTuple):
    """Where the threads of a job wait for processes that were not recorded."""

    region: Array
    """For each stretch of `RecordedJob.slices`: the region in which it waits for outside, or -1."""
    waits: Array
    """The stretches that waited."""
    fetch: Ints
    """What each of `waits` would have taken if nothing had to be waited for, ns."""
    paces: Edges
    """The edges from the end of the last wait before to that of each wait."""


def outside(job: RecordedJob) -> Outside:
    """Return the waits of a job for what was not recorded."""
    acts, (source, target, _) = job.activities, job.slices
    region = outside_waits(job)
    items = np.flatnonzero(region >= 0)
    items = items[np.argsort(job.moment(source[items]), kind="stable")]
    names = (unnumbered_names(acts, rows) for rows in (region[items], target[items] >> 1))
    none = np.zeros(0, np.int64)
    fetches, edges = [], [paces(job, none, none, none, Confidence.COUNTED)[1]]
    for site in grouped(mixed(acts.lane[region[items]], *names)):
        rows = items[site]
        lasts = job.moment(target[rows]) - job.moment(source[rows])
        waited, of_site = paces(job, target[rows], lasts, region[rows].astype(np.int64), Confidence.COUNTED)
        fetches.append((rows[waited], np.minimum(fetch_ns(lasts, waited), lasts[waited])))
        edges.append(of_site)
    waits, fetch = joined(fetches, 2)
    return Outside(region, waits, fetch, Edges.concatenate(edges))
