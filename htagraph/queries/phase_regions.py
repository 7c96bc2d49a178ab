"""The regions that phases sum up: when each begins and ends, and the device work launched inside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, Ints, distinct, inverse_of, occurring
from htagraph.core.kinds import FRAMES, ActivityKind, of_kinds
from htagraph.core.naming import ANY_STEP, collective_op, inference_phase, is_compiling, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.earlier_work import begins_of_devices
from htagraph.graph.selection import named
from htagraph.queries.counter_series import launched

__all__ = ["PhaseRegions", "phase_regions"]


class PhaseRegions(NamedTuple):
    """Regions, and the device work that was launched in each."""

    table: pd.DataFrame
    """One row per region."""
    since: Ints
    """When the wall time of each region begins, ns."""
    end: Ints
    """When the wall time of each region ends, ns."""
    work: Ints
    """The kernels and copies launched in regions."""
    group: Ints
    """The region of each kernel or copy, a row of the table."""


def phase_regions(graph: DependencyGraph, annotation: str | None) -> PhaseRegions:
    """Return the regions of a job with their times and work.

    Args:
        graph: the job.
        annotation: as in `htagraph.phases`.

    Example:
        >>> import htagraph as hg
        >>> regions = phase_regions(hg.load("data/demo"), "Optimizer.step*")
        >>> len(regions.table)
        12
    """
    acts = graph.activities
    region = _regions(graph, annotation)
    place = inverse_of(region, len(acts))
    call, work = launched(graph)
    owner = graph.tree.nearest(place >= 0, call)
    is_inside = owner >= 0
    call = call[is_inside]
    work = work[is_inside]
    group = place[owner[is_inside]]
    count = len(region)
    end = acts.end[region].copy()
    np.maximum.at(end, group, acts.end[work])
    since = _begins(graph, region, work, group)
    phase, tokens = _phases_of(graph, region, annotation)
    launches = distinct(call, len(acts))
    region_of_launch = place[graph.tree.nearest(place >= 0, launches)]
    table = pd.DataFrame(
        {
            "region": region,
            "rank": acts.rank[region],
            "phase": phase,
            "start": acts.start[region],
            "name": [graph.names[name] for name in acts.name[region].tolist()],
            "tokens": tokens,
            "host_us": acts.duration[region] / 1000,
            "wall_us": (end - since) / 1000,
            "kernels": np.bincount(group, minlength=count),
            "launches": np.bincount(region_of_launch, minlength=count),
        }
    )
    return PhaseRegions(table, since, end, work, group)


def _phases_of(graph: DependencyGraph, region: Array, annotation: str | None) -> tuple[list[str], list[int]]:
    """Return (the phase of each region by its name, the tokens that the name says; -1 for none).

    Args:
        graph: the job.
        region: the activities that are regions.
        annotation: the glob that chose the regions; None for the outermost annotations.
    """
    acts = graph.activities
    used = distinct(acts.name[region], len(graph.names)).tolist()
    phase_of_name = {name: inference_phase(graph.names[name]) for name in used}
    if annotation is None:  # steps are alike, whatever their numbers
        is_step = acts.kind[region] == ActivityKind.STEP
        steps = acts.name[region[is_step]].tolist()
        phase_of_name |= dict.fromkeys(steps, (ANY_STEP, -1))
    of_name = [phase_of_name[name] for name in acts.name[region].tolist()]
    return [phase for phase, _ in of_name], [tokens for _, tokens in of_name]


def _begins(graph: DependencyGraph, region: Array, work: Array, group: Array) -> Ints:
    """Return when the wall time of each region begins, ns on the rank's own clock.

    Work of the region that is queued behind work begun before the recording takes no time of the region until then.

    Args:
        graph: the job.
        region: the activities that are regions.
        work: the kernels and copies launched in regions.
        group: the region of each kernel or copy, a row of `region`.
    """
    acts = graph.activities
    begins = acts.start[region].copy()
    window = begins_of_devices(graph, work)
    queued = acts.start[work] >= window
    np.maximum.at(begins, group[queued], window[queued])
    return begins


def _regions(graph: DependencyGraph, annotation: str | None) -> Array:
    """Return the activities that are regions, in ascending order, none in another.

    Args:
        graph: the job.
        annotation: the glob that chooses regions by name or by phase; None for the outermost annotations.
    """
    acts = graph.activities
    outermost = graph.tree.outermost
    if annotation is not None:
        fits = named(graph.names, annotation)
        phase_of_name = [inference_phase(name)[0] for name in graph.names]
        is_phase = named(phase_of_name, annotation) & ~fits
        by_name = of_kinds(acts.kind, FRAMES) & fits[acts.name]
        by_phase = is_phase[acts.name] & (acts.kind == ActivityKind.ANNOTATION)
        return outermost(by_name | by_phase)
    collective = names_that(lambda name: collective_op(name, host=True) != "", graph.names)
    compiles = names_that(is_compiling, graph.names)
    compiling = compiles[acts.name] & (acts.kind == ActivityKind.OP)  # regions, too
    annotations = (acts.kind == ActivityKind.ANNOTATION) & ~collective[acts.name]
    rows = outermost(annotations | compiling)
    bare = ~np.isin(acts.rank, occurring(acts.rank[rows]))
    return np.union1d(rows, outermost((acts.kind == ActivityKind.STEP) & bare))
