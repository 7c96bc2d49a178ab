"""Traces → DependencyGraph: the parts of all ranks under one numbering, then one edge rule after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
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
from htagraph.graph.construction.held_up import held_up
from htagraph.graph.construction.matching.match import match
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.recordings import uneven_recordings
from htagraph.graph.matches import with_joins
from htagraph.graph.rules import RULES
from htagraph.trace.columns import TEXTS, SparseColumn

__all__ = ["TEXTS", "build", "join", "linked", "matched"]


def build(parts: Iterable[RankPart], naming: Naming = DEFAULT_NAMING) -> DependencyGraph:
    """Return the dependency graph of a job from its ranks' parts."""
    job = matched(join(parts, naming))
    return linked(job, fit(job, _edges(job)))


def _edges(job: RecordedJob) -> Edges:
    """Return the edges of all rules; what only the rules need of the job's evidence is freed."""
    # the last rules first, as these need the most memory, and the first ones make the most edges
    found = dict(ahead(lambda rule: rule(job), RULES[::-1], threads_for(len(job.activities))))
    edges = Edges.concatenate(found.pop(rule) for rule in RULES)
    job.forget()
    return edges


def linked(job: RecordedJob, fitting: tuple[Edges, tuple[Issue, ...]], *, are_paths: bool = False) -> DependencyGraph:
    """Return the graph of a job with edges that fit its times, or with `are_paths` edges that stand for whole paths."""
    edges, dropped = acyclic(job, fitting[0])
    edges = settle(job, edges if are_paths else held_up(job, latency(job, edges)))
    refused = fitting[1] + tuple(issue for _, each in sorted(job.refused.items()) for issue in each)  # in any order
    issues = job.issues + refused + dropped + (() if are_paths else _uncertain(edges))
    columns = [edges]
    del fitting, edges  # the largest columns: `columns` alone has them
    return DependencyGraph.build(
        job.activities, columns.pop(), names=job.names, lanes=job.lanes, traces=job.traces, issues=issues,
        clocks=job.clocks, matches=job.matches,
    )  # fmt: skip


def _uncertain(edges: Edges) -> tuple[Issue, ...]:
    """Return one issue about all dependencies that are little more than a guess."""
    doubtful = edges.kind[edges.confidence < UNCERTAIN]
    if not len(doubtful):
        return ()
    counts = sorted(Counter(doubtful.tolist()).items(), key=lambda each: (-each[1], each[0]))
    kinds = ", ".join(f"{count:,} {EdgeKind(kind).label}" for kind, count in counts)
    detail = f"dependencies known with less than {UNCERTAIN} % confidence ({kinds}); what-ifs are also run without them"
    return (Issue("", "edges_uncertain", detail, len(doubtful)),)


def _with_communication(job: RecordedJob) -> RecordedJob:
    """Return the job with kernels as communication where the recording shows it; names were asked before."""
    from htagraph.graph.construction.matching.exchanges import with_communication  # jobs without devices need no such

    activities, issues = with_communication(job.activities, job.names)
    return replace(job, activities=activities, issues=job.issues + issues)


def matched(job: RecordedJob, kept: Mask | None = None) -> RecordedJob:
    """Return the job with its collectives matched and its clocks compared; of its activities only those `kept`."""
    if kept is None:
        job = _with_communication(job)
    matching = match(job.activities, job.names, job.traces, job.naming)
    clocks, activities = estimate_clocks(list(job.traces), matching), job.activities
    if kept is not None:
        members = replace(matching.members, activity=(np.cumsum(kept) - 1)[matching.members.activity])
        activities, matching = activities.take(kept), replace(matching, members=members)
    activities, matches = with_joins(activities, matching, clocks)
    job = replace(job, activities=activities, clocks=clocks, matches=matches, issues=job.issues + matching.issues)
    files = {rank: str(trace.path) for rank, trace in job.traces.items()}
    return replace(job, issues=job.issues + uneven_recordings(job.activities, job.time, files))


def join(ranks: Iterable[RankPart], naming: Naming = DEFAULT_NAMING) -> RecordedJob:
    """Return the ranks' activities as one table, with one table of names and one of lanes."""
    ranks = sorted(ranks, key=lambda rank: rank.rest.rank, reverse=True)
    numbering: dict[str, int] = {}
    lanes: list[Lane] = []
    traces = {rank.rest.rank: rank.rest for rank in reversed(ranks)}
    issues = tuple(issue for rank in reversed(ranks) for issue in rank.issues)
    boundaries, at_work = [], []

    def parts() -> Iterator[Activities]:
        shift = np.int32(0)
        while ranks:  # each is freed once it is copied
            rank = ranks.pop()
            boundaries.append(rank.boundaries + 2 * shift)
            at_work.append(_moved(rank.at_work, shift))
            yield _numbered(rank, numbering, shift, len(lanes))
            lanes.extend(rank.lanes)
            shift += np.int32(len(rank.activities))

    return RecordedJob(
        Activities.concatenate(parts()), tuple(numbering), tuple(lanes), traces,
        np.concatenate(boundaries), np.concatenate(at_work), issues, naming,
    )  # fmt: skip


def _numbered(rank: RankPart, numbering: dict[str, int], shift: np.int32, lanes: int) -> Activities:
    """Return a rank's activities, which follow others and refer to names, lanes and activities of the job."""
    names = np.array([numbering.setdefault(name, len(numbering)) for name in rank.names], np.int32)
    acts, args = rank.activities, {}
    for column, sparse in rank.activities.args.items():
        values = names[sparse.values] if column in TEXTS else sparse.values
        args[column] = SparseColumn(_moved(sparse.rows, shift), values, sparse.missing)
    return replace(
        acts, name=names[acts.name], category=names[acts.category], lane=_moved(acts.lane, np.int32(lanes)),
        parent=_moved(acts.parent, shift), cause=_moved(acts.cause, shift), args=args,
    )  # fmt: skip


def _moved(rows: Array, by: np.int32) -> npt.NDArray[np.int32]:
    """Return row numbers of a rank as those of the job; -1 stays."""
    return np.where(rows >= 0, rows + by, np.int32(-1)) if by else rows
