"""Traces → DependencyGraph: the parts of all ranks under one numbering, then one edge rule after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Mask
from htagraph.core.computing import ahead, threads_for
from htagraph.core.errors import Issue
from htagraph.core.kinds import UNCERTAIN, EdgeKind
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.activities import Activities, Edges, Lane
from htagraph.graph.clocks import estimate_clocks
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.construction.fit import acyclic, fit, latency, settle
from htagraph.graph.construction.matching.match import match
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.recordings import uneven_recordings
from htagraph.graph.matches import with_joins
from htagraph.graph.rules import RULES
from htagraph.trace.columns import TEXTS, SparseColumn

__all__ = ["TEXTS", "build", "join", "linked", "matched"]


def build(parts: Sequence[RankPart], naming: Naming = DEFAULT_NAMING) -> DependencyGraph:
    """Return the dependency graph of a job from its ranks' parts."""
    job = matched(join(list(parts), naming))
    found = ahead(lambda rule: rule(job), RULES, threads_for(len(job.activities)))
    return linked(job, *fit(job, Edges.concatenate([edges for _, edges in found])))


def linked(job: RecordedJob, edges: Edges, refused: tuple[Issue, ...], *, are_paths: bool = False) -> DependencyGraph:
    """Return the graph of a job with edges that fit its times, or with `are_paths` edges that stand for whole paths."""
    edges, dropped = acyclic(job, edges)
    edges = settle(job, edges if are_paths else latency(job, edges))
    refused += tuple(issue for _, issues in sorted(job.refused.items()) for issue in issues)  # rules run in threads
    guessed = () if are_paths else _uncertain(edges)
    return DependencyGraph.build(
        job.activities, edges, names=job.names, lanes=job.lanes, traces=job.traces,
        issues=job.issues + refused + dropped + guessed, clocks=job.clocks, matches=job.matches,
    )  # fmt: skip


def _uncertain(edges: Edges) -> tuple[Issue, ...]:
    """Return one issue about all dependencies that are little more than a guess."""
    doubtful = edges.kind[edges.confidence < UNCERTAIN]
    if not len(doubtful):
        return ()
    kinds_and_counts = zip(*(column.tolist() for column in np.unique(doubtful, return_counts=True)), strict=True)
    counts = sorted(kinds_and_counts, key=lambda each: (-each[1], each[0]))
    kinds = ", ".join(f"{count:,} {EdgeKind(kind).label}" for kind, count in counts)
    detail = f"dependencies known with less than {UNCERTAIN} % confidence ({kinds}); what-ifs are also run without them"
    return (Issue("", "edges_uncertain", detail, len(doubtful)),)


def matched(job: RecordedJob, kept: Mask | None = None) -> RecordedJob:
    """Return the job with its collectives matched and its clocks compared; of its activities only those `kept`."""
    matching = match(job.activities, job.names, job.traces, job.naming)
    clocks, activities = estimate_clocks(list(job.traces), matching), job.activities
    if kept is not None:
        members = replace(matching.members, activity=(np.cumsum(kept) - 1)[matching.members.activity])
        activities, matching = activities.take(kept), replace(matching, members=members)
    activities, matches = with_joins(activities, matching, clocks)
    job = replace(job, activities=activities, clocks=clocks, matches=matches, issues=job.issues + matching.issues)
    files = {rank: str(trace.path) for rank, trace in job.traces.items()}
    return replace(job, issues=job.issues + uneven_recordings(job.activities, job.time, files))


def join(ranks: list[RankPart], naming: Naming = DEFAULT_NAMING) -> RecordedJob:
    """Return the ranks' activities as one table, with one table of names and one of lanes."""
    ranks = sorted(ranks, key=lambda rank: rank.rest.rank)
    numbering: dict[str, int] = {}
    parts: list[Activities] = []
    lanes: list[Lane] = []
    boundaries, at_work = [], []
    shifts = np.cumsum([0, *(len(rank.activities) for rank in ranks)]).astype(np.int32)
    for rank, shift in zip(ranks, shifts, strict=False):
        names = np.array([numbering.setdefault(name, len(numbering)) for name in rank.names], np.int32)
        acts = rank.activities
        args = {}
        for column, sparse in acts.args.items():
            values = names[sparse.values] if column in TEXTS else sparse.values
            args[column] = SparseColumn(sparse.rows + shift, values, sparse.missing)
        renamed = replace(acts, name=names[acts.name], category=names[acts.category], args=args)
        parent, cause = (_moved(rows, shift) for rows in (acts.parent, acts.cause))
        parts.append(replace(renamed, lane=acts.lane + np.int32(len(lanes)), parent=parent, cause=cause))
        boundaries.append(rank.boundaries + 2 * shift)
        at_work.append(_moved(rank.at_work, shift))
        lanes += rank.lanes
    traces = {rank.rest.rank: rank.rest for rank in ranks}
    issues = tuple(issue for rank in ranks for issue in rank.issues)
    return RecordedJob(
        Activities.concatenate(parts), tuple(numbering), tuple(lanes), traces,
        np.concatenate(boundaries), np.concatenate(at_work), issues, naming,
    )  # fmt: skip


def _moved(rows: Array, by: np.int32) -> npt.NDArray[np.int32]:
    """Return row numbers of a rank as those of the job; -1 stays."""
    return np.where(rows >= 0, rows + by, np.int32(-1)) if by else rows
