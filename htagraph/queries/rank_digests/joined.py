"""The digests of all ranks → one small graph of the job, and its skeleton with a weight for each class of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, marked
from htagraph.core.errors import Issue, RankError, SelectionError
from htagraph.core.kinds import UNCERTAIN, EdgeKind, Provenance
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.activities import Edges
from htagraph.graph.construction.build import join, linked, matched
from htagraph.graph.construction.fit import fit
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.rules.collective import collective
from htagraph.graph.rules.p2p import p2p
from htagraph.queries.rank_digests.digest import Criteria, RankDigest
from htagraph.queries.skeleton import Skeleton, members_of
from htagraph.queries.time_classes import END, LAST, START, TimeClasses, class_parts
from htagraph.queries.weights import initial
from htagraph.trace.columns import parse_ranks

__all__ = ["JoinedGraph", "joined_graph", "missing_ranks", "skeleton_of"]


@dataclass(frozen=True, eq=False)
class JoinedGraph:
    """A job at the moments that its digests kept, and the weights by class of the paths between them."""

    graph: DependencyGraph
    """Its activities are those that digests kept and the JOINs. Its edges stand for longest paths, as recorded, except
    those of communication. A replay gives every moment as recorded, on the common clock."""
    source: npt.NDArray[np.int64]
    """Of each path of the digests, with those that are longest for other factors only: a vertex of the graph."""
    target: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]
    """One row per path, ns: in column 0 time of no class, then that of each of `parts`."""
    parts: tuple[tuple[int, ...], ...]
    """Of each column but the first, the numbers of the classes that multiply it."""
    spans: npt.NDArray[np.int64]
    """By rank, the activity that begins with its recording and ends with its last work; the next one ends with its last
    activity of any kind."""


def joined_graph(digests: Sequence[RankDigest], naming: Naming = DEFAULT_NAMING) -> JoinedGraph:
    """Return the graph of a job from the digests of its ranks, in any order.

    Raises:
        RankError: two digests are of one rank.
        SelectionError: there are none, or they were made with different classes.
    """
    digests = sorted(digests, key=lambda each: each.rank)
    _refuse_unlike(digests)
    job = join([each.part for each in digests], naming)
    job = replace(job, issues=_of_files(job.issues))
    kept = np.concatenate([each.linked for each in digests])
    number, job = np.cumsum(kept) - 1, matched(job, kept)
    first = np.cumsum([0, *(len(each.part.activities) for each in digests)])[:-1]
    shifts = [2 * int(each) for each in first]

    def vertices(columns: Sequence[Array]) -> npt.NDArray[np.int64]:
        every = np.concatenate([column + shift for column, shift in zip(columns, shifts, strict=True)])
        return 2 * number[every >> 1] + every % 2

    source, target = vertices([each.source for each in digests]), vertices([each.target for each in digests])
    parts, weight = _common_parts(digests)
    owner = number[np.concatenate([each.owner + at for each, at in zip(digests, first.tolist(), strict=True)])]
    inside = Edges.of(
        vertices([each.inside[0] for each in digests]), vertices([each.inside[1] for each in digests]),
        np.concatenate([each.inside[2] for each in digests]), EdgeKind.BODY, Provenance.ORDER, activity=owner,
    )  # fmt: skip
    # none is longer than recorded: a correction of drift makes times shorter
    weight[:, 0] -= np.maximum(weight.sum(axis=1) - (job.time[target] - job.time[source]), 0)
    paths = Edges.of(source, target, weight.sum(axis=1), EdgeKind.USER, Provenance.INFERRED)
    last = first + [len(each.part.activities) for each in digests] - 2
    spans = number[last]
    own, refused = fit(job, Edges.concatenate([inside, collective(job), p2p(job)]))
    edges = Edges.concatenate([own, _through_points(job, paths, own), paths])
    return JoinedGraph(linked(job, (edges, refused), are_paths=True), source, target, weight, parts, spans)


def _of_files(issues: Sequence[Issue]) -> tuple[Issue, ...]:
    """Return the issues of files, and one for all dependencies inside ranks that are little more than a guess."""
    guessed = [issue.count for issue in issues if issue.what == "edges_uncertain"]
    others = tuple(issue for issue in issues if issue.what != "edges_uncertain")
    if not guessed:
        return others
    what = f"dependencies inside ranks known with less than {UNCERTAIN} % confidence; what-ifs are not run without them"
    return (*others, Issue("", "edges_uncertain", what, sum(guessed)))


def _refuse_unlike(digests: Sequence[RankDigest]) -> None:
    if not digests:
        msg = "no digests were given: give that of each rank"
        raise SelectionError(msg)
    for one, other in pairwise(digests):
        if one.rank == other.rank:
            msg = f"rank {one.rank} has two digests, of {one.path} and {other.path}: give one of each rank"
            raise RankError(msg)
        if one.criteria != other.criteria or one.classes.limits != other.classes.limits:
            msg = f"the digests of ranks {one.rank} and {other.rank} have different classes: make all with the same"
            raise SelectionError(msg)


def _common_parts(digests: Sequence[RankDigest]) -> tuple[tuple[tuple[int, ...], ...], npt.NDArray[np.int64]]:
    """Return (the components of all digests, the weights of all edges with a column for each)."""
    every = sorted({part for each in digests for part in each.classes.parts})
    weight = np.zeros((sum(len(each.weight) for each in digests), 1 + len(every)), np.int64)
    at = 0
    for each in digests:
        columns = [0, *(1 + every.index(part) for part in each.classes.parts)]
        weight[at : at + len(each.weight), columns] = each.weight
        at += len(each.weight)
    return tuple(every), weight


def _through_points(job: RecordedJob, *parts: Edges) -> Edges:
    """Return an edge from start to end of each activity whose end nothing else leads to: a point in time."""
    reached = marked(np.concatenate([edges.target for edges in parts]), 2 * len(job.activities))
    ends = 2 * np.flatnonzero(job.activities.duration == 0) + 1
    ends = ends[~reached[ends]]
    return Edges.of(ends - 1, ends, 0, EdgeKind.BODY, Provenance.ORDER)


def skeleton_of(joined: JoinedGraph, criteria: Criteria, limits: Sequence[int]) -> Skeleton:
    """Return the skeleton of a joined job. The numbers of its vertices are those of the graph of the job."""
    graph = joined.graph
    source, target, weight, parts = _edges(joined, criteria)
    count = graph.vertex_count
    vertex = np.concatenate([[START], graph.topological_order, [END, LAST]]).astype(np.int64)
    place = np.zeros(count + 3, np.int64)  # the last three are those of START, END and LAST
    place[[*graph.topological_order.tolist(), -3, -2, -1]] = [*range(1, count + 1), 0, count + 1, count + 2]
    source, target = place[source], place[target]
    order = np.lexsort((source, target))
    classes = TimeClasses(tuple(criteria), tuple(limits), (False,) * len(criteria), parts)
    return Skeleton(
        graph.origin_ns, vertex, np.ones(len(vertex), np.bool_), source[order].astype(np.int32),
        target[order].astype(np.int32), weight[order], classes, graph.step_spans, members_of(graph),
    )  # fmt: skip


def _edges(joined: JoinedGraph, criteria: Criteria) -> tuple[Array, Array, Array, tuple[tuple[int, ...], ...]]:
    """Return (sources, targets, weights of all edges of the skeleton, with gaps, the components of the weights)."""
    graph, spans, count = joined.graph, joined.spans, joined.graph.vertex_count
    edges = graph.edges
    own = np.flatnonzero(edges.kind != EdgeKind.USER)
    lag = class_parts(initial(graph), criteria, may_lack=True).lag
    masks, amounts = np.where(lag.amount[own] == 0, 0, lag.mask[own]), lag.amount[own]
    bits = np.array([sum(1 << number for number in part) for part in joined.parts], np.int64)
    every = np.union1d(bits, masks[masks > 0])
    paths, kept = (each.source.astype(np.int64) * count + each.target for each in (joined, edges))
    there = np.flatnonzero(np.isin(paths, kept))
    of_paths = np.zeros((len(there), 1 + len(every)), np.int64)
    of_paths[:, np.append(0, 1 + np.searchsorted(every, bits))] = joined.weight[there]
    of_paths[:, 0] += graph.gap[joined.target[there]]
    of_own = np.zeros((len(own), 1 + len(every)), np.int64)
    of_own[:, 0] = lag.rest[own] + graph.gap[edges.target[own]]
    some = np.flatnonzero(masks)
    of_own[some, 1 + np.searchsorted(every, masks[some])] = amounts[some]
    heads = np.flatnonzero(np.diff(graph.in_offsets) == 0)
    ends = np.concatenate([2 * spans + 1, 2 * spans + 3])
    plain = np.zeros((len(heads) + len(ends), 1 + len(every)), np.int64)
    plain[: len(heads), 0] = graph.time[heads] - graph.origin_ns
    source = np.concatenate([joined.source[there], edges.source[own], np.full(len(heads), count), ends])
    last = np.repeat([count + 1, count + 2], len(spans))
    target = np.concatenate([joined.target[there], edges.target[own], heads, last])
    parts = tuple(tuple(number for number in range(len(criteria)) if mask >> number & 1) for mask in every.tolist())
    return source, target, np.concatenate([of_paths, of_own, plain]), parts


def missing_ranks(graph: DependencyGraph) -> tuple[int, ...]:
    """Return the ranks of a job that its graph lacks, as the files of the others tell, ascending.

    They say how many ranks the job has, which are in its process groups, or which take part in a collective.

    Example:
        >>> import htagraph as hg
        >>> missing_ranks(hg.load("data/demo", ranks=[0, 3]))
        (1, 2)
    """
    known: set[int] = set()
    for trace in graph.traces.values():
        known.update(range(trace.facts.world_size))
        for group in trace.facts.groups:
            known.update(group.ranks)
    column = graph.activities.args.get("pg_ranks")
    for code in np.unique(column.values).tolist() if column is not None else []:
        known.update(parse_ranks(graph.names[code]) or () if code >= 0 else ())
    return tuple(sorted(known - set(graph.ranks)))
