"""JobSkeleton: a job of many ranks by the digests of its ranks, and the questions that it answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import Issue, SelectionError, check_type
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.core.statistics import MOST, others_median
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import Waits
from htagraph.queries.blame import CAUSES, Chains, blame_of, stretches_of
from htagraph.queries.peers import rank_roles
from htagraph.queries.rank_digests.digest import RankDigest, WorkSums
from htagraph.queries.rank_digests.joined import joined_graph, missing_ranks, skeleton_of
from htagraph.queries.rank_speed import SlowRanks, own_steps, slow_among, times_alone
from htagraph.queries.skeleton import Skeleton
from htagraph.queries.straggler import (
    RankStragglers,
    SavedBy,
    charged_to_nobody,
    charges_of,
    straggler_among,
    waits_by_rank,
)
from htagraph.queries.time_classes import END, START, Factors

__all__ = ["JobSkeleton", "digest_stragglers", "joined_job", "with_classes_of_ranks", "work_among"]


@dataclass(frozen=True, eq=False)
class JobSkeleton:
    """A job at the moments that its ranks share. Made by `htagraph.joined_job`.

    Times are the times of the whole graph, to the nanosecond, on the common clock of all ranks; as recorded, or with
    the time of some classes multiplied (`what_if`).
    """

    graph: DependencyGraph
    """The moments as a graph, as recorded: communication, JOINs, steps, points between them, and two spans per rank. An
    edge stands for the longest path between two moments."""
    skeleton: Skeleton
    """The same with weights by class."""
    classes: tuple[str, ...]
    """The classes that `what_if` can multiply."""
    missing: tuple[int, ...] = ()
    """Ranks that the job has, as the files of the others say, and no digest."""
    sums: tuple[WorkSums, ...] = ()
    """By rank, its work by name."""
    factors: Factors = field(default_factory=dict)
    """By class of the skeleton, what its time is multiplied by."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that were joined, ascending."""
        return self.graph.ranks

    @property
    def clocks(self) -> tuple[Clock, ...]:
        """How each rank's clock differs from the common one."""
        return self.graph.clocks

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What was wrong with the files and with the matching of collectives."""
        return self.graph.issues

    def __repr__(self) -> str:
        missing = f", {len(self.missing)} missing" if self.missing else ""
        return f"JobSkeleton({len(self.ranks):,} ranks{missing}, {self.skeleton})"

    @cached_property
    def time(self) -> npt.NDArray[np.int64]:
        """The moment of each vertex of `graph`, ns on the common clock."""
        moment = np.zeros(self.graph.vertex_count, np.int64)
        known = self.skeleton.vertex >= 0
        moment[self.skeleton.vertex[known]] = self.skeleton.times(self.factors)[known]
        return moment

    def makespan_ns(self) -> int:
        """Return the makespan, ns: from the first moment of the job to the last end of a thread or stream."""
        return self.skeleton.makespan_ns(self.factors)

    def step_times(self) -> pd.DataFrame:
        """Return the start and end of each step; the columns are those of `htagraph.step_times`."""
        return self.skeleton.step_times(self.factors)

    def what_if(self, factors: Factors, ranks: Sequence[int] | None = None) -> JobSkeleton:
        """Return the job with the time of some classes multiplied; its answers are then about the changed job.

        If `what_if` is called again, its factors multiply. Sums are exact: rounded once, to whole ns.

        Args:
            factors: for each class, the factor of its time, at least 0.
            ranks: multiply on these ranks only; on all ranks by default. ``job.what_if(dict.fromkeys(job.classes, 0.8),
                [3])`` makes rank 3 faster by a fifth in all it does.

        Raises:
            SelectionError: there is no such class or rank, or nothing in the job is of that class.
            ChangeError: a factor is negative, not finite, or larger than `digest` was told.

        Example:
            >>> import htagraph as hg
            >>> job = joined_job([hg.digest(hg.load("data/demo", ranks=[rank])) for rank in range(4)])
            >>> job.what_if({"computation": 0.5}).makespan_ns() < job.makespan_ns()
            True
        """
        unknown = sorted(set(ranks or ()) - set(self.ranks))
        if unknown:
            msg = f"no rank {unknown[0]}: choose from {', '.join(map(str, self.ranks))}"
            raise SelectionError(msg)
        self.skeleton.classes.numerators(factors)  # which refuses impossible factors
        timeless = [name for name in factors if name in self.classes and not self._has_time(name)]
        if timeless:
            msg = f"nothing in this job is of class {timeless[0]!r}"
            raise SelectionError(msg)
        skeleton, own = self.skeleton, dict(factors)
        if ranks is not None:
            owner = self._rank_of_edge()
            skeleton, names = with_classes_of_ranks(self.skeleton, np.isin(owner, list(ranks)), tuple(factors))
            own = {names[name]: factor for name, factor in factors.items()}
        merged = {name: self.factors.get(name, 1) * own.get(name, 1) for name in {*self.factors, *own}}
        return replace(self, skeleton=skeleton, factors=merged)

    def _has_time(self, name: str) -> bool:
        classes = self.skeleton.classes
        number = classes.names.index(name)
        return any(
            number in part and bool(column.any())
            for part, column in zip(classes.parts, self.skeleton.weight.T[1:], strict=True)
        )

    def _rank_of_edge(self) -> npt.NDArray[np.int64]:
        """Return the rank whose time each edge of the skeleton is; -1 for none."""
        vertex = self.skeleton.vertex[self.skeleton.target]
        rank = self.graph.activities.rank[np.maximum(vertex, 0) >> 1].astype(np.int64)
        return np.where(vertex >= 0, rank, -1)

    def critical_path(self) -> pd.DataFrame:
        """Return the critical path between the moments of the job, in the order of time.

        Where several paths are equally long, the result is one of these paths, and `htagraph.critical_path` may name
        another.

        Returns:
            One row per segment of positive length: ``start_us`` (float64, since the job's first moment),
            ``duration_us`` (float64; they add up to the makespan), ``rank`` (int64: where the segment ends; -1 at a
            JOIN), ``begins`` and ``ends`` (str: the moments between which it lies), ``class`` (str: the class that most
            of its time is of, or ``other``), and one float64 column per class, such as ``computation_us``: how much of
            it is of that class, as recorded times its factors. Where classes overlap, time counts for all of them.
        """
        skeleton = self.skeleton
        path = skeleton.critical_edges(self.factors)
        time = skeleton.times(self.factors)
        begin, end = (time[each[path]] for each in (skeleton.source, skeleton.target))
        some = end > begin
        path, begin, end = path[some], begin[some], end[some]
        names = list(self.classes)
        amounts = self._by_class(path, names)
        padded = np.pad(amounts, ((0, 0), (0, 1)))  # there may be no classes
        is_most = 2 * padded.max(axis=1) >= end - begin
        words = np.array([*names, "other"], object)[np.where(is_most, padded.argmax(axis=1), -1)]
        moments = [[self._moment(int(vertex)) for vertex in skeleton.vertex[each[path]]]
                   for each in (skeleton.source, skeleton.target)]  # fmt: skip
        return pd.DataFrame({
            "start_us": (begin - self.graph.origin_ns) / 1000, "duration_us": (end - begin) / 1000,
            "rank": self._rank_of_edge()[path], "begins": pd.array(moments[0], dtype="str"),
            "ends": pd.array(moments[1], dtype="str"), "class": pd.array(words, dtype="str"),
            **{f"{name}_us": amounts[:, at] / 1000 for at, name in enumerate(names)},
        })  # fmt: skip

    def _by_class(self, path: Array, names: list[str]) -> npt.NDArray[np.float64]:
        """Return how much of some edges is time of each class, ns."""
        classes = self.skeleton.classes
        numerators, unit = classes.numerators(self.factors)
        weight = self.skeleton.weight[path][:, 1:] * (numerators[1:] / unit)
        belongs = np.array(
            [[classes.names.index(name) in part for name in names] for part in classes.parts], np.float64
        ).reshape(len(classes.parts), len(names))
        return np.asarray(weight @ belongs)

    def _moment(self, vertex: int) -> str:
        """Return a moment in words."""
        if vertex < 0:
            return "begin of the job" if vertex == START else "end of the job" if vertex == END else "last moment"
        acts = self.graph.activities
        row = vertex >> 1
        name = self.graph.names[acts.name[row]]
        if acts.kind[row] == ActivityKind.JOIN:
            return f"last arrival at {name}"
        if acts.kind[row] == ActivityKind.BOUNDARY:
            return f"end of the work of {name}"
        return f"{('start', 'end')[vertex % 2]} of {name}"

    def waits(self) -> pd.DataFrame:
        """Return how long each member of a collective waits for the last arrival that its end depends on.

        Returns:
            One row per member, by collective and recorded arrival: ``collective``, ``rank`` (int64), ``op``, ``group``
            (categories: the label of a group may list thousands of ranks), ``step`` (int64; -1 outside of steps),
            ``arrival_us`` (float64, since the job's first moment), ``wait_us`` (float64: 0 for the last one, and for
            members that wait for no other), ``late_rank`` (int64: the rank that arrived last of those it waits for; -1
            if it waits for no other member). Time in which the thread of an
            asynchronous send or receive runs other work is part of the wait here.
        """
        table, matches, acts = self.skeleton.waits(self.factors), self.graph.matches, self.graph.activities
        which = table["collective"].to_numpy()
        late = table["late"].to_numpy()
        ops, groups = (matches.op, matches.group) if matches is not None else ((), ())
        return pd.DataFrame({
            "collective": which, "rank": table["rank"], "op": _words(ops, which), "group": _words(groups, which),
            "step": acts.step[table["activity"].to_numpy()].astype(np.int64), "arrival_us": table["arrival_us"],
            "wait_us": table["wait_us"],
            "late_rank": np.where(late >= 0, acts.rank[np.maximum(late, 0)], -1).astype(np.int64),
        })  # fmt: skip

    def slack(self) -> pd.DataFrame:
        """Return how much later the end of communication and of steps may come without the job ending later.

        Returns:
            One row per piece of communication and per step of a rank, by rank: ``rank``, ``step`` (int64), ``name``,
            ``kind`` (str: a word of `ActivityKind`), ``start_us`` (float64, since the job's first moment),
            ``duration_us``, ``slack_us`` (float64).
        """
        acts, skeleton = self.graph.activities, self.skeleton
        kinds = (*COMMUNICATION, ActivityKind.STEP, ActivityKind.BOUNDARY)
        rows = np.flatnonzero(np.isin(acts.kind, kinds))
        slack = skeleton.slack_ns(self.factors)[skeleton.positions(2 * rows + 1)]
        start, end = self.time[2 * rows], self.time[2 * rows + 1]
        return pd.DataFrame({
            "rank": acts.rank[rows].astype(np.int64), "step": acts.step[rows].astype(np.int64),
            "name": pd.array([self.graph.names[name] for name in acts.name[rows].tolist()], dtype="str"),
            "kind": pd.array([ActivityKind(kind).label for kind in acts.kind[rows].tolist()], dtype="str"),
            "start_us": (start - self.graph.origin_ns) / 1000, "duration_us": (end - start) / 1000,
            "slack_us": slack / 1000,
        })  # fmt: skip

    def stragglers(self) -> RankStragglers:
        """Return which rank makes the others wait in collectives, and how much, as recorded.

        Waits, the own time of each rank in a step, and whether a rank is slow by more than chance are computed as by
        `htagraph.stragglers`. A digest has no single operators and kernels, so that three things differ. (1) Waits are
        charged by how much longer a rank took by itself from one collective to the next than its peers, not by
        activity: shares of blame differ by some percent, and causes are ``kernels``, ``host`` or ``none``. (2) Where
        the steps do not show a slow rank, the ratios of single activities are not compared: a rank that is slower by
        one or two percent in few steps may not be named. (3) Work that only one rank does is known by name if this work
        takes at least 3 % of the rank's time.

        Returns:
            `RankStragglers` with ``straggler`` (the rank or None), ``total_wait_us``, ``serves``, ``steps`` and
            ``to_frame()``, a row per rank.
        """
        recorded = replace(self, factors={})

        def saved_ns(rank: int, factor: float, kinds: tuple[str, ...]) -> int:
            classes = [name for name in self.classes if name in kinds]
            if not classes:
                return 0
            faster = recorded.what_if(dict.fromkeys(classes, factor), [rank])
            return recorded.makespan_ns() - faster.makespan_ns()

        return digest_stragglers(self.graph, self.sums, saved_ns)


def _words(texts: tuple[str, ...], which: Array) -> Any:  # noqa: ANN401 - pandas' stubs know no categories
    """Return some of a few texts as a column that has each of them once."""
    codes: dict[str, int] = {}
    numbers = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int64)
    return pd.Categorical.from_codes(numbers[which], categories=pd.Index(list(codes), dtype="str"))


def joined_job(digests: Iterable[RankDigest], *, naming: Naming = DEFAULT_NAMING) -> JobSkeleton:
    """Return a job from the digests of its ranks: collectives matched, clocks compared, JOINs between ranks.

    The digests of some ranks of a job make a job too: `JobSkeleton.missing` says which ranks it lacks.

    Args:
        digests: one digest of each rank, in any order.
        naming: patterns that decide an event's kind by its name, as for `digest`.

    Returns:
        `JobSkeleton` with ``step_times()``, ``makespan_ns()``, ``critical_path()``, ``waits()``, ``slack()``,
        ``stragglers()`` and ``what_if()``.

    Raises:
        RankError: two digests are of the same rank.
        SelectionError: there are no digests, or the digests were made with different classes.
        TypeError: something among them is no digest.

    Example:
        >>> import htagraph as hg
        >>> job = joined_job([hg.digest(hg.load("data/demo", ranks=[rank])) for rank in (0, 1, 3)])
        >>> job.ranks, job.missing
        ((0, 1, 3), (2,))
        >>> bool((job.time == job.graph.time).all())
        True
    """
    takes = "htagraph.joined_job takes digests, one of each rank: [htagraph.digest(graph), …]"
    check_type(digests, Iterable, takes)
    every = list(digests)
    for each in every:
        check_type(each, RankDigest, takes)
    ordered = sorted(every, key=lambda each: each.rank)
    joined = joined_graph(ordered, naming)
    skeleton = skeleton_of(joined, ordered[0].criteria, ordered[0].classes.limits)
    return JobSkeleton(
        joined.graph, skeleton, tuple(ordered[0].criteria), missing_ranks(joined.graph),
        tuple(each.sums for each in ordered),
    )  # fmt: skip


def with_classes_of_ranks(skeleton: Skeleton, edges: Array, names: Sequence[str]) -> tuple[Skeleton, dict[str, str]]:
    """Return (the skeleton with classes of its own for the time of some edges, the new name of each class).

    That time then belongs to the new class too: both factors multiply it.
    """
    classes = skeleton.classes
    new = {name: f"{name}@{len(classes.names)}" for name in names}
    numbers = {classes.names.index(name): len(classes.names) + at for at, name in enumerate(names)}
    parts, columns = list(classes.parts), [column.copy() for column in skeleton.weight.T]
    for at, part in enumerate(classes.parts, start=1):
        more = [numbers[number] for number in part if number in numbers]
        if more and columns[at][edges].any():
            parts.append((*part, *more))
            columns.append(np.where(edges, columns[at], 0))
            columns[at][edges] = 0
    limits = tuple(classes.limits[classes.names.index(name)] for name in names)
    classes = replace(
        classes, names=(*classes.names, *new.values()), limits=(*classes.limits, *limits),
        switches=(*classes.switches, *(False,) * len(names)), parts=tuple(parts),
    )  # fmt: skip
    return replace(skeleton, classes=classes, weight=np.stack(columns, axis=1)), new


_SIDES: Final = ("kernels", "host")
"""What may take a slow rank longer: a cause of `htagraph.stragglers` each."""


def digest_stragglers(graph: DependencyGraph, sums: Sequence[WorkSums], saved_ns: SavedBy) -> RankStragglers:
    """Return which rank of a joined job makes the others wait in collectives, and how much, by what digests show.

    In place of single operators and kernels, which a digest does not have, the time that a rank needs by itself from
    one collective to the next is compared with that of its peers; and sums by name where stages of a pipeline are
    compared, or where a rank works on what no other does.
    """
    waits = graph.waits
    roles = rank_roles(graph, lambda place: sums[place][:3])
    slow = slow_among(own_steps(graph), roles, partial(work_among, sums))
    blame = blame_of(graph, _chains(graph, waits, roles[0]))
    rank, serves, _ = straggler_among(graph, slow, blame, saved_ns)
    columns = waits_by_rank(graph, charges_of(graph, blame), slow)
    table = pd.DataFrame({**columns, "cause": pd.array(_causes(slow), dtype="str")})
    total = int(waits.wait.sum()) / 1000
    return RankStragglers(table, rank, total, serves, len(slow.steps), charged_to_nobody(blame))


def _chains(graph: DependencyGraph, waits: Waits, roles: Array) -> Chains:
    """Return the binding edges of the moments, and how much longer each rank took to arrive than its peers did."""
    # by the time needed, on its own, since the arrival before, against the median of its role between the same two
    _, before = stretches_of(graph, graph.binding)
    excess = np.zeros(graph.vertex_count, np.int64)
    matched = np.flatnonzero(waits.collective >= 0)
    if len(matched):
        alone = times_alone(graph)[0][2 * waits.activity[matched]]
        rank, number = waits.rank[matched], waits.collective[matched]
        order = np.lexsort((number, waits.arrival[matched], rank))
        follows = np.concatenate([[False], rank[order][1:] == rank[order][:-1]])
        later = np.flatnonzero(follows)
        now, ago = order[later], order[later - 1]
        took = (alone[now] - alone[ago]).astype(np.float64)
        role = roles[np.searchsorted(graph.ranks, rank[now])]
        alike = np.unique(np.stack([number[ago], number[now], role]), axis=1, return_inverse=True)[1].ravel()
        beyond = np.nan_to_num(took - others_median(took, alike))
        excess[2 * waits.activity[matched[now]]] = np.rint(beyond).astype(np.int64)
    nothing = np.zeros(0, np.int64)
    cause = np.where(excess != 0, CAUSES.index("kernels"), 0).astype(np.int8)  # of some kind: nobody asks which
    return Chains(before, nothing, cause, excess, nothing, nothing.astype(np.float64), nothing.astype(np.int8))


def _causes(slow: SlowRanks) -> list[str]:
    """Return the side whose time is most of what each slow rank exceeds the ranks of its role by."""
    out = ["none"] * len(slow.slow)
    for at in np.flatnonzero(slow.slow).tolist():
        peers = np.flatnonzero((slow.roles == slow.roles[at]) & (np.arange(len(out)) != at))
        kernels, operators, untraced = slow.by_side()[:, :, slow.when[at]]
        excess = [
            float(np.median(each[at] - np.median(each[peers], axis=0))) if len(peers) else 0.0
            for each in (kernels, operators + untraced)
        ]
        if max(excess) >= MOST * slow.in_slow[at]:
            out[at] = _SIDES[int(np.argmax(excess))]
    return out


def work_among(sums: Sequence[WorkSums], places: Array, side: int) -> npt.NDArray[np.int64]:
    """Return the work by name and step of the ranks at some positions, as `rank_speed.WorkOf` defines it."""
    parts = []
    for row, place in enumerate(places.tolist()):
        some = sums[place].device == side
        parts.append(np.stack([np.full(int(some.sum()), row), *(column[some] for column in sums[place][4:8])]))
    return np.concatenate(parts, axis=1)
