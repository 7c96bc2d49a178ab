"""Which rank is the straggler: slow by its own steps, and charged most of the waiting. One answer for all that ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, inverse_of
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, GapKind, of_kinds
from htagraph.core.naming import BETWEEN_OPERATORS, short_name
from htagraph.core.statistics import MOST, STANDS_OUT, others_median
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import damaged_ranks
from htagraph.queries.blame import CAUSES, MAX_HOPS_BACK, Blame, Chains, blame_of, chains_of
from htagraph.queries.compare import ENOUGH_STEPS
from htagraph.queries.peers import extra_region
from htagraph.queries.peers import peers as peers_of
from htagraph.queries.rank_speed import SlowRanks, slow_ranks
from htagraph.queries.replay import predict
from htagraph.queries.weights import initial, own_time, with_factor

__all__ = [
    "COMPARED", "MIN_STEP_SHARE", "NOBODY", "Difference", "RankStragglers", "SavedBy", "SlowWork", "Straggler",
    "alone_work", "charged_to_nobody", "charges_of", "largest_upstream", "rank_differences", "slow_work",
    "straggler_among", "straggler_of", "waits_by_rank",
]  # fmt: skip

Straggler: TypeAlias = tuple[int | None, int | None, int | None]
"""The straggler; the rank that takes longer in all steps as it does work that no other rank does, for whose result all
others wait: the program has it so, and it is no straggler; the rank that most waiting is charged to. None for none."""
SavedBy: TypeAlias = Callable[[int, float, tuple[str, ...]], int]
"""By how much a job is shorter, ns, if a rank's work of some kinds takes a multiple of its time: given the rank, the
multiple, the kinds."""
NOBODY = ("recording", "clocks")
"""Causes for which no rank is charged."""
MIN_STEP_SHARE = 0.004
"""Share of a step by which a straggler's own steps take longer than its peers' on average, at least.

Chosen: less is not worth a repair, as devices of one kind differ by that much. Doubled, a rank whose kernels are 1 %
slower in a job that computes for half of the time is not named."""
_FROM_ONE = ("broadcast", "scatter")
"""Operations by which one rank gives its result to all others, which have to wait for it."""
COMPARED = ("kernels", "host", "data_loading", "collective", "outside")
"""Causes that lie in activities, which peers have too."""
_LATENCIES = {"host": BETWEEN_OPERATORS, "launch": "launch latency", "sync": "return of blocking calls"}
"""What time is called that belongs to no activity, by cause."""


@dataclass(frozen=True, eq=False)
class RankStragglers:
    """Which rank of a job makes the others wait. Made by `JobSkeleton.stragglers`, and with more by `stragglers`."""

    ranks: pd.DataFrame
    """A row per rank; the columns are documented at `htagraph.stragglers`. Those of a job that is joined from digests
    are ``rank``, ``blamed_us``, ``share_percent``, ``waits_us``, ``late_count``, ``own_step_us``, ``step_excess_us``,
    ``step_error_us``, ``slow``, ``slow_steps``, ``slow_excess_us`` and ``cause`` (str: ``kernels``, ``host`` or
    ``none``: whose time is most of what a slow rank exceeds its peers by)."""
    straggler: int | None
    """The rank whose steps take longer than its peers' and that most waiting beyond theirs is charged to, or None."""
    total_wait_us: float
    """Time that ranks waited in collectives, summed over all ranks, µs."""
    serves: int | None = None
    """The rank that takes longer as it does work that no other rank does, for whose result all others wait, or None:
    the program has it so, and it is no straggler."""
    steps: int = 0
    """Steps whose times were compared."""
    nobody_us: Mapping[str, float] = field(default_factory=dict)
    """Waiting that no rank can be charged with, by cause (``recording``, ``clocks``), µs."""
    staged: bool = False
    """Whether the ranks are stages of pipelines, which wait for each other by design."""
    slow_group: Mapping[int, float] = field(default_factory=dict)
    """By how much each of several ranks takes longer for its steps than all others do, µs; empty for no such ranks."""
    damaged: Collection[int] = ()
    """Ranks in whose recording something is missing, see `damaged_ranks`, so that nobody knows why they are late."""

    @property
    def mostly_charged(self) -> dict[int, float]:
        """Return the ranks that most waiting is charged to and their shares in percent; empty if there are many."""
        table = self.ranks.sort_values("share_percent", ascending=False, kind="stable")
        few = table[table["share_percent"] > STANDS_OUT * 100 / max(len(table), 1)]
        shares = dict(zip(few["rank"].tolist(), few["share_percent"].tolist(), strict=True))
        return shares if sum(shares.values()) > 100 * MOST else {}

    @property
    def incomplete(self) -> list[int]:
        """Return the ranks that most waiting is charged to and in whose recording something is missing."""
        return sorted(set(self.mostly_charged) & set(self.damaged))

    @property
    def few_steps(self) -> bool:
        """Return whether nobody is named only as so few steps show no difference between ranks beyond chance."""
        others = self.serves is not None or self.incomplete or self.slow_group or self.staged
        return self.steps < ENOUGH_STEPS and not others

    def to_frame(self) -> pd.DataFrame:
        """Return a row per rank; the columns are documented at `stragglers`."""
        return self.ranks.copy()

    def __repr__(self) -> str:
        who = "none" if self.straggler is None else f"rank {self.straggler}"
        waited = f"{self.total_wait_us / 1000:.3f} ms of waiting over {len(self.ranks)} ranks"
        return f"{type(self).__name__}({who}, {waited})"


def straggler_of(graph: DependencyGraph, slow: SlowRanks | None = None) -> Straggler:
    """Return which rank holds up the others, and what is known where none is named.

    Example:
        >>> import htagraph as hg
        >>> straggler_of(hg.load("data/demo"))
        (2, None, 2)
    """
    if len(graph.ranks) < 2:
        return None, None, None
    blame = blame_of(graph, chains_of(graph))
    return straggler_among(graph, slow or slow_ranks(graph), blame)


def charges_of(graph: DependencyGraph, blame: Blame) -> npt.NDArray[np.int64]:
    """Return the waiting charged to each rank by cause, an index into `CAUSES`, ns; 0 where nobody is charged."""
    by_cause = np.zeros((len(graph.ranks), len(CAUSES)), np.int64)
    np.add.at(by_cause, (np.searchsorted(graph.ranks, blame.rank), blame.cause), blame.charged)
    by_cause[:, [CAUSES.index(word) for word in NOBODY]] = 0
    return by_cause


def charged_to_nobody(blame: Blame) -> dict[str, float]:
    """Return the waiting that no rank can be charged with, by cause, µs."""
    sums = {word: float(blame.charged[blame.cause == CAUSES.index(word)].sum()) / 1000 for word in NOBODY}
    return {word: us for word, us in sums.items() if us}


def waits_by_rank(graph: DependencyGraph, by_cause: Array, slow: SlowRanks) -> dict[str, Array]:
    """Return columns with a row per rank that every table of stragglers has; they are documented at `hg.stragglers`."""
    waits, ranks, blamed = graph.waits, np.array(graph.ranks, np.int64), by_cause.sum(axis=1)
    total, own = int(waits.wait.sum()), np.zeros(len(ranks), np.int64)
    np.add.at(own, np.searchsorted(ranks, waits.rank), waits.wait)
    late = np.unique(waits.late[(waits.wait > 0) & (waits.late >= 0)])
    count = np.bincount(np.searchsorted(ranks, graph.activities.rank[late]), minlength=len(ranks))
    return {
        "rank": ranks, "blamed_us": blamed / 1000,
        "share_percent": 100 * blamed / total if total else np.zeros(len(ranks)), "waits_us": own / 1000,
        "late_count": count.astype(np.int64), "own_step_us": slow.own / 1000, "step_excess_us": slow.excess / 1000,
        "step_error_us": slow.error / 1000, "slow": slow.slow, "slow_steps": slow.when.sum(axis=1).astype(np.int64),
        "slow_excess_us": slow.in_slow / 1000,
    }  # fmt: skip


def straggler_among(
    graph: DependencyGraph, slow: SlowRanks, blame: Blame, saved_ns: SavedBy | None = None
) -> Straggler:
    """Return which rank is slower than its peers by more than chance, if no other is charged more beyond its own.

    Others must wait for it long enough to matter, unless nobody can be charged for any wait. By how much the job is
    shorter if a rank, a stage of a pipeline, is as fast as the others, `saved_ns` says, else a replay of the graph, ns.
    """
    saved_ns = saved_ns or partial(_saved_ns, graph)
    by_cause = charges_of(graph, blame)
    charged = by_cause.sum(axis=1)
    most = int(graph.ranks[int(charged.argmax())]) if charged.any() else None
    if not slow.slow.any():
        return None, None, most
    at = int(slow.slow.argmax())
    others = others_median(charged, slow.roles)
    usual = np.nan_to_num(others)  # a stage that takes longer is charged in all replicas
    nobody = bool(len(blame.cause)) and bool((blame.cause == CAUSES.index("clocks")).all())
    beyond = charged - usual
    matters = MIN_STEP_SHARE * slow.lasted_ns
    holds_up = slow.in_slow[at] * slow.when[at].mean() >= matters
    if slow.stage is None:
        holds_up &= beyond[at] >= max(beyond.max(), 0 if nobody else matters * len(slow.steps))
    else:
        whole = int(graph.time.max()) - graph.origin_ns  # charges of stages are mostly by design
        ratio, kinds = slow.stage
        saved = saved_ns(graph.ranks[at], 1 / ratio, kinds) if charged[at] > 0 else 0
        holds_up &= charged[at] > 0 and saved >= MIN_STEP_SHARE * whole
    holds_up &= graph.ranks[at] not in damaged_ranks(graph)  # what is missing may be all that makes it late
    if not holds_up or by_cause[at, CAUSES.index("network")] > MOST * charged[at]:
        return None, None, most
    by_design = slow.when[at].all() and _is_waited_for(graph, graph.ranks[at])
    if by_design and float(np.median(slow.alone()[at])) > MOST * slow.in_slow[at]:
        return None, graph.ranks[at], most
    return graph.ranks[at], None, most


class SlowWork(NamedTuple):
    """The activities of one cause that make a rank late, and how their time compares with that of its peers."""

    name: str
    """The name whose activities explain most; empty if nothing does."""
    slower: float
    """How much longer than its peers' the rank's own time in them is in all, as a share of theirs; NaN if unknown."""
    named: bool = False
    """Whether the activities of that name alone are compared, instead of all of the cause."""
    alone: bool = False
    """Whether no other rank has activities of that name there."""


def slow_work(graph: DependencyGraph, chains: Chains, blame: Blame, causes: Array) -> list[SlowWork]:
    """Return, for each rank, the activities that explain most of its lateness."""
    path_vertices = _path_vertices(graph, chains, blame)
    none = np.zeros(0, np.int64)
    return [
        _of_rank(graph, chains, path_vertices.get(rank, none), rank, int(cause))
        for rank, cause in zip(graph.ranks, causes.tolist(), strict=True)
    ]


def largest_upstream(chains: Chains, blame: Blame) -> npt.NDArray[np.int64]:
    """Return for each charge the activity of its cause with the largest excess on the path to the arrival, or -1."""
    key = np.stack([blame.arrival, blame.cause], axis=1)
    pairs, member = np.unique(key, axis=0, return_inverse=True)
    activity, largest = np.full(len(pairs), -1, np.int64), np.zeros(len(pairs), np.int64)
    rows = np.flatnonzero(np.isin(pairs[:, 1], [CAUSES.index(word) for word in COMPARED]))
    at = 2 * pairs[rows, 0]
    for _ in range(MAX_HOPS_BACK):  # all paths, one vertex further back
        better = (chains.cause[at] == pairs[rows, 1]) & (chains.item[at] >= 0) & (chains.excess[at] > largest[rows])
        activity[rows[better]], largest[rows[better]] = chains.item[at[better]], chains.excess[at[better]]
        further = chains.before[at] >= 0
        rows, at = rows[further], chains.before[at[further]]
        if not len(rows):
            break
    return activity[member.ravel()] if len(activity) else np.zeros(0, np.int64)


@dataclass(frozen=True)
class Difference:
    """The activities of one name on a rank and on its peers, in the whole recording."""

    name: str
    own_us: float
    """Their own time on the rank, µs: without waits, and without what they enclose."""
    peers_us: float
    """The same on that of its peers where it is largest, µs: a median would hide that another rank takes as long."""
    count: int
    """How many there are on the rank."""
    peers_count: int
    """The most on any of its peers."""
    longest_us: float
    """The own time of the longest one on the rank, µs: a pause, if it is most of the difference."""

    @property
    def more_us(self) -> float:
        """How much more time it takes on the rank, µs."""
        return self.own_us - self.peers_us


def rank_differences(graph: DependencyGraph, own: Array, rank: int, peers: Array, top: int = 3) -> list[Difference]:
    """Return what takes more time on a rank than on each of its peers, the largest difference first."""
    acts, names = graph.activities, len(graph.names)
    everyone = np.array([rank, *peers])
    place = inverse_of(everyone, int(max(graph.ranks)) + 2)
    work = ~of_kinds(acts.kind, (*COMMUNICATION, *ADDED, ActivityKind.STEP))
    rows = np.flatnonzero(work & (place[acts.rank] >= 0))
    shape = (len(everyone), names + 1)
    region = extra_region(graph)[rows]  # what only one rank does is named, and counted, as a whole
    inside = (region >= 0) & ((acts.name[rows] != region) | (acts.kind[rows] != ActivityKind.ANNOTATION))
    cell = place[acts.rank[rows]] * shape[1] + np.where(region >= 0, region, acts.name[rows])
    gaps = np.flatnonzero(graph.gap_kind == GapKind.HOST_UNTRACED)
    gaps = gaps[place[acts.rank[gaps >> 1]] >= 0]
    cell = np.concatenate([cell, place[acts.rank[gaps >> 1]] * shape[1] + names])
    each = np.concatenate([own[rows], graph.gap[gaps]])
    longest = np.zeros(shape[0] * shape[1], np.int64)
    np.maximum.at(longest, cell, each)
    time = np.bincount(cell, each, shape[0] * shape[1]).reshape(shape) / 1000
    count = np.bincount(cell[np.append(~inside, gaps >= 0)], minlength=shape[0] * shape[1]).reshape(shape)
    most, most_often = time[1:].max(axis=0), count[1:].max(axis=0)
    largest = np.argsort(most - time[0], kind="stable")[:top]
    return [
        Difference(
            graph.names[at] if at < names else BETWEEN_OPERATORS, float(time[0, at]), float(most[at]),
            int(count[0, at]), int(most_often[at]), float(longest[at]) / 1000,  # the rank's own row is the first
        )
        for at in largest.tolist()
        if time[0, at] > most[at]
    ]  # fmt: skip


def alone_work(graph: DependencyGraph, own: Array, rank: int) -> tuple[int, float]:
    """Return (how many operators and kernels a rank has beyond those of every other, their own time in µs)."""
    acts = graph.activities
    is_work = of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.COMPUTATION))
    rows = np.flatnonzero(is_work & (acts.rank == rank) & (peers_of(graph) < 0))
    return len(rows), float(own[rows].sum()) / 1000


def _saved_ns(graph: DependencyGraph, rank: int, factor: float, kinds: tuple[str, ...]) -> int:
    """Return by how much the job is shorter if kinds of work of a rank take a multiple of their time, ns."""
    state = initial(graph)
    fixed = with_factor(state, own_time(state, {"rank": rank, "kind": list(kinds)}), factor)
    return int(graph.time.max()) - int(predict(graph, fixed.lag, fixed.gap).max())


def _is_waited_for(graph: DependencyGraph, rank: int) -> bool:
    """Return whether others wait for a rank mostly in operations by which it gives its result to them."""
    waits, matches = graph.waits, graph.matches
    if matches is None:
        return False
    rows = np.flatnonzero((waits.collective >= 0) & (waits.late >= 0) & (waits.wait > 0))
    rows = rows[graph.activities.rank[waits.late[rows]] == rank]
    gives = np.isin(np.array(matches.op)[waits.collective[rows]], _FROM_ONE)
    wait = waits.wait[rows]
    return bool(wait[gives].sum() > MOST * wait.sum())


def _path_vertices(graph: DependencyGraph, chains: Chains, blame: Blame) -> dict[int, Array]:
    """Return for each charged rank the vertices on the paths to the late arrivals that it is charged for."""
    from htagraph.core import traverse

    offsets, sources = chains.forest
    vertices = {}
    charged = blame.cause > 0
    for rank in np.unique(blame.rank[charged]).tolist():
        ends = np.unique(2 * blame.arrival[charged & (blame.rank == rank)])
        met = np.flatnonzero(traverse.reach(offsets, sources, ends))
        vertices[int(rank)] = met[np.argsort(graph.time[met], kind="stable")]
    return vertices


def _of_rank(graph: DependencyGraph, chains: Chains, vertex: Array, rank: int, cause: int) -> SlowWork:
    """Return the activities that explain most of a cause on a rank; `vertex` are those on its late paths."""
    vertex = vertex[chains.cause[vertex] == cause] if cause else vertex[:0]
    if not len(vertex):
        return SlowWork("", float("nan"))
    item = chains.item[vertex]
    in_work = (item >= 0) & (graph.activities.kind[np.maximum(item, 0)] != ActivityKind.STEP)
    label = np.where(in_work, graph.activities.name[np.maximum(item, 0)], -1)  # a step's own time is in no operator
    number, member = np.unique(label, return_inverse=True)
    excess = np.zeros(len(number), np.int64)
    np.add.at(excess, member, chains.excess[vertex])
    name = int(number[excess.argmax()])
    text = graph.names[name] if name >= 0 else _LATENCIES.get(CAUSES[cause], "")
    text = short_name(text) if CAUSES[cause] in ("kernels", "collective") else text
    if CAUSES[cause] not in COMPARED:
        return SlowWork(text, float("nan"))
    rows = np.flatnonzero((chains.about == cause) & (graph.activities.rank == rank) & ~np.isnan(chains.others))
    whole, of_name = _slower(chains, rows), rows[graph.activities.name[rows] == name]
    extra = of_name[chains.others[of_name] == 0]
    if len(of_name) and chains.own[extra].sum() > MOST * chains.own[of_name].sum():
        longest = int(extra[chains.own[extra].argmax()])
        region = extra_region(graph)[longest]
        text = graph.names[region] if region >= 0 else f"{text}{_in_region(graph, longest)}"
        return SlowWork(text, whole, alone=True)
    named = _slower(chains, of_name) if name >= 0 else float("nan")
    if named > 0 and (np.isnan(whole) or named > STANDS_OUT * whole):
        return SlowWork(text, named, named=True)
    return SlowWork(text if excess.max() > MOST * excess.sum() else "", whole)  # else all takes longer


def _in_region(graph: DependencyGraph, activity: int) -> str:
    """Return in which annotation of the program an activity is, as part of its name; empty for none."""
    around = int(graph.tree.nearest(graph.activities.kind == ActivityKind.ANNOTATION, [activity])[0])
    return f" in {graph.names[graph.activities.name[around]]}" if around not in (-1, activity) else ""


def _slower(chains: Chains, rows: Array) -> float:
    """Return how much longer activities take in all than their peers, as a share of theirs; NaN without peers."""
    others = float(chains.others[rows].sum())
    return float(chains.own[rows].sum()) / others - 1 if others > 0 else float("nan")
