"""Which rank makes the others wait, how much, and what on that rank makes it late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.naming import short_name
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.blame import CAUSES, Blame, Chains, blame_of, chains_of, others_median
from htagraph.queries.collective_waits import Waits, waits_of

__all__ = ["stragglers"]

Array: TypeAlias = npt.NDArray[Any]
_SLOWER = 0.05  # how much slower than its peers a straggler is at least
_SURE = 4.0  # standard errors: of the many activities compared, the one that explains most is judged
_LIKELY = 3.0  # standard errors: enough for one name where the rank is slower for sure
_WORTH = 0.005  # of the recorded time that each other rank waits for it
_MOST = 0.5  # of all that is explained by work that is slower
_MAD, _OF_MEDIAN = 1.4826, 1.5  # of a normal distribution: deviation by MAD; variance against a median of few
_ALIKE = 1.1  # how many times as many activities as its peers a rank may have
_SAME = 1.02  # the same, with what lies inside, for one name
_MANY = 4  # ranks whose differences tell what is usual
_NEAR = 512  # places on the way to a late arrival that are searched for the one that explains most
_DOUBLE = 2.0  # times as long: from here on this is plainer than percent
_COMPARED = ("kernels", "host", "data_loading", "collective")
"""Causes that lie in activities, which peers have too; the others are judged by how often the rank is late."""


@dataclass(frozen=True, eq=False)
class Stragglers:
    """What `stragglers` returns."""

    ranks: pd.DataFrame
    blame: pd.DataFrame
    """Each wait, charged: one row per (part of a collective that waited, rank charged, cause)."""
    straggler: int | None
    """The rank that is slower than its peers and makes them wait; None if lateness is spread by chance."""
    total_wait_us: float
    """All waiting in collectives, over all ranks, µs."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per rank; the columns are documented at `stragglers`."""
        return self.ranks.copy()

    def __repr__(self) -> str:
        who = "none" if self.straggler is None else f"rank {self.straggler}"
        return f"Stragglers({who}, {self.total_wait_us / 1000:.3f} ms of waiting over {len(self.ranks)} ranks)"


def stragglers(graph: DependencyGraph) -> Stragglers:
    """Return which rank makes the others wait in collectives, how much, and why.

    Every wait is charged, in full, to ranks and causes. From the arrival that came last the way is followed back, along
    what held up each moment, to the last arrival that let both that rank and the one that waits go on; each activity is
    compared with the median of the same activity on the other ranks. The wait goes to the ranks and causes that took
    longer, in proportion; where lateness came from an earlier collective, to those who were late there. What this does
    not explain is charged to the rank that came last, cause ``none``.

    A rank is called the straggler if its work of the cause that explains most is slower than its peers' by 5 % or more
    and by four standard errors, each other rank waits for it for at least 0.5 % of the recorded time, and half or more
    is charged to it of what is explained by ranks that are slower like that. Lateness by chance has no straggler.

    Args:
        graph: the job.

    Returns:
        An object with ``straggler`` (the rank or None), ``total_wait_us``, ``to_frame()`` and ``blame``.

        ``to_frame()``: a row per rank: ``rank`` (int64), ``blamed_us`` (float64: waiting charged to it, µs; the
        sum is ``total_wait_us``), ``share_percent`` (float64: of all waiting), ``explained_us`` (float64: that part of
        it that some cause explains), ``first_guess`` (bool: most is explained by this rank), ``waits_us`` (float64: its
        own waiting), ``late_count`` (int64: collectives in which it came last and others waited), ``lateness_us``
        (float64: median of how much later it came than the median of the others), ``cause`` (str: ``kernels``,
        ``host``, ``data_loading``, ``launch``, ``sync``, ``collective``, ``network`` or ``none``), ``cause_name`` (str:
        the activity that explains most of it), ``cause_us`` (float64: waiting charged to that cause),
        ``slower_percent`` (float64: by how much its own time in that cause exceeds its peers') and ``evidence`` (str).

        ``blame``: a row per wait and cause: ``collective`` (int64), ``op`` (str), ``waiting_rank``, ``last_rank``,
        ``charged_rank`` (int64), ``wait_us`` (float64, charged), ``cause`` (str), ``activity`` (int64: what explains
        most of it upstream, -1 for none), ``name`` (str), ``collectives_back`` (int64: how many collectives earlier the
        lateness arose).

    Example:
        >>> import htagraph as hg
        >>> found = hg.stragglers(hg.load("data/demo"))
        >>> bool(abs(found.to_frame()["blamed_us"].sum() - found.total_wait_us) < 1e-6)
        True
    """
    waits, chains = waits_of(graph), chains_of(graph)
    blame = blame_of(graph, waits, chains)
    by_cause = np.zeros((len(graph.ranks), len(CAUSES)), np.int64)
    np.add.at(by_cause, (np.searchsorted(graph.ranks, blame.rank), blame.cause), blame.charged)
    best = by_cause[:, 1:].argmax(axis=1) + 1 if len(by_cause) else np.zeros(0, np.int64)
    best[by_cause[:, 1:].sum(axis=1) == 0] = 0
    on_way = _on_way(graph, chains, blame)
    stories = [
        _story(graph, chains, on_way, rank, int(cause)) for rank, cause in zip(graph.ranks, best.tolist(), strict=True)
    ]
    table = _table(graph, waits, by_cause, best, stories)
    total = int(waits.wait.sum())
    return Stragglers(
        table, _blame_table(graph, waits, chains, blame), _straggler(graph, table, waits, stories), total / 1000
    )


@dataclass(frozen=True)
class _Story:
    """How one rank's work of one cause compares with its peers'."""

    name: str
    excess: int
    """On the way to late arrivals, of that name, ns."""
    slower: float
    """By which share of the peers' time its own is longer."""
    sure: float
    """The same in standard errors."""
    count: int
    named: bool = False
    """Whether that compares the activities of the name alone, not all of the cause."""


def _story(graph: DependencyGraph, chains: Chains, on_way: dict[int, Array], rank: int, cause: int) -> _Story:
    """Return what explains most of a cause on a rank; the name tells more than the cause if it is slower by more."""
    none = np.zeros(0, np.int64)
    vertex = on_way.get(rank, none)
    vertex = vertex[chains.cause[vertex] == cause] if cause else none
    if not len(vertex):
        return _Story("", 0, float("nan"), 0.0, 0)
    item = chains.item[vertex]
    label = np.where(item >= 0, graph.activities.name[np.maximum(item, 0)], -1)
    number, member = np.unique(label, return_inverse=True)
    excess = np.zeros(len(number), np.int64)
    np.add.at(excess, member, chains.excess[vertex])
    name, most = int(number[excess.argmax()]), int(excess.max())
    text = graph.names[name] if name >= 0 else _LATENCIES.get(CAUSES[cause], "")
    text = short_name(text) if CAUSES[cause] in ("kernels", "collective") else text
    if CAUSES[cause] not in _COMPARED:
        return _Story(text, most, float("nan"), 0.0, len(vertex))
    acts = graph.activities
    mine = chains.about == cause
    whole = _slower(graph, chains, np.flatnonzero(mine), rank)
    rows = np.flatnonzero(mine & (acts.name == name))
    named = _slower(graph, chains, rows, rank) if name >= 0 and _same_inside(graph, rows, rank) else whole
    enough = _LIKELY if whole[1] >= _SURE else _SURE
    if named[1] >= enough and named[0] > whole[0]:
        return _Story(text, most, named[0], max(named[1], whole[1]), named[2], named=True)
    return _Story(text, most, *whole)


_LATENCIES = {"host": "Python between operators", "launch": "launch latency", "sync": "return of blocking calls"}


def _slower(graph: DependencyGraph, chains: Chains, rows: Array, rank: int) -> tuple[float, float, int]:
    """Return (by which share a rank's activities are slower than its peers', the same in standard errors, how many).

    Of two comparisons the surer one: each activity with its peers, or the sums by step, which include what only this
    rank does and where single outliers weigh less.
    """
    rows = rows[chains.own[rows] > 0]
    mine = int(np.searchsorted(graph.ranks, rank))
    count = int((graph.activities.rank[rows] == rank).sum())
    each, steps = _by_activity(graph, chains, rows, mine), _by_step(graph, chains, rows, mine)
    slower, sure = max(each, steps, key=lambda found: found[1])
    return slower, sure, count


def _same_inside(graph: DependencyGraph, rows: Array, rank: int) -> bool:
    """Return whether a rank's activities contain no more others than its peers' do; stages differ by design."""
    acts = graph.activities
    chosen = np.zeros(len(acts) + 1, np.bool_)
    chosen[rows] = True
    both = np.concatenate([rows, np.flatnonzero(chosen[graph.tree.parent])])
    count = np.bincount(np.searchsorted(graph.ranks, acts.rank[both]), minlength=len(graph.ranks))
    mine = int(np.searchsorted(graph.ranks, rank))
    return len(count) > 1 and bool(count[mine] <= _SAME * np.median(np.delete(count, mine)))


def _by_activity(graph: DependencyGraph, chains: Chains, rows: Array, mine: int) -> tuple[float, float]:
    """Return (share, standard errors), each activity compared with its peers."""
    rows = rows[chains.others[rows] > 0]
    own, others = chains.own[rows].astype(np.float64), chains.others[rows]
    place = np.searchsorted(graph.ranks, graph.activities.rank[rows])
    size = len(graph.ranks)
    base, count = np.bincount(place, others, size), np.bincount(place, minlength=size)
    some = (base > 0) & (count > 1)
    if not some[mine]:
        return 0.0, 0.0
    ratio = np.bincount(place, own, size)[some] / base[some]
    rest = np.bincount(place, (own - others * _spread(ratio, some)[place]) ** 2, size)[some] / base[some] ** 2
    single = float(np.mean(rest * count[some] / (count[some] - 1)))
    return _judged(np.log(ratio), int(some[:mine].sum()), single)


def _by_step(graph: DependencyGraph, chains: Chains, rows: Array, mine: int) -> tuple[float, float]:
    """Return (share, standard errors), the sums by step compared with those of the other ranks."""
    step = graph.activities.step[rows]
    rows, step = rows[step >= 0], step[step >= 0]
    place = np.searchsorted(graph.ranks, graph.activities.rank[rows])
    number, at = np.unique(step, return_inverse=True)
    size = (len(graph.ranks), len(number))
    cell, cells = place * size[1] + at.ravel(), size[0] * size[1]
    sums = np.bincount(cell, chains.own[rows], cells).reshape(size)
    full = (sums > 0).all(axis=0)
    sums, count = sums[:, full], np.bincount(cell, minlength=cells).reshape(size)[:, full].sum(axis=1)
    alike = len(count) > 1 and count[mine] <= _ALIKE * float(np.median(np.delete(count, mine)))
    if not alike or not sums.shape[1]:  # stages of a pipeline differ by design
        return 0.0, 0.0
    column = np.tile(np.arange(sums.shape[1]), size[0])
    logs = np.log(sums / others_median(sums.ravel(), column).reshape(sums.shape))
    if sums.shape[1] == 1:
        return _judged(logs[:, 0], mine, 0.0 if size[0] > _MANY else float("inf"))
    return _judged(logs.mean(axis=1), mine, float(logs.var(axis=1, ddof=1).mean()) / sums.shape[1])


def _spread(values: Array, where: Array) -> npt.NDArray[np.float64]:
    """Return the values at the places where `where` holds, 1 elsewhere."""
    out = np.ones(len(where))
    out[where] = values
    return out


def _judged(logs: Array, mine: int, variance: float) -> tuple[float, float]:
    """Return (by which share one rank is slower than the usual other one, the same in standard errors).

    Args:
        logs: of each rank's time over its peers'.
        mine: the rank in question.
        variance: of one rank's value by chance. The differences between the others count as chance, too.
    """
    others = np.delete(logs, mine)
    usual = float(np.median(others)) if len(others) > 1 else 0.0
    between = _MAD * float(np.median(np.abs(others - usual))) if len(others) > 2 else 0.0
    more = float(logs[mine]) - usual
    error = max(float(np.sqrt(_OF_MEDIAN * variance)), between, 1e-3)
    return float(np.expm1(more)), more / error


def _straggler(graph: DependencyGraph, table: pd.DataFrame, waits: Waits, stories: list[_Story]) -> int | None:
    """Return the rank for which the others wait, if it is slower than them by more than chance."""
    if len(table) < 2 or not table["first_guess"].any():
        return None
    at = int(table["first_guess"].to_numpy().argmax())
    row = table.iloc[at]
    span = (int(graph.time.max()) - int(graph.time.min())) / 1000
    met = len(np.unique(waits.collective[(waits.late >= 0) & (waits.wait > 0)]))
    slow = np.array([_is_slow(table.iloc[i], story, met, len(table)) for i, story in enumerate(stories)])
    worth = row["explained_us"] >= _WORTH * span * (len(table) - 1)
    most = row["explained_us"] >= _MOST * table["explained_us"][slow].sum()
    return int(row["rank"]) if worth and most and slow[at] else None


def _is_slow(row: pd.Series[Any], story: _Story, met: int, ranks: int) -> bool:
    """Return whether a rank is slower than its peers by more than chance; what chance explains blames nobody."""
    if row["cause"] in _COMPARED:
        return story.slower >= _SLOWER and story.sure >= _SURE
    chance = 1 / ranks
    return bool(row["late_count"] > met * chance + _SURE * np.sqrt(met * chance * (1 - chance)) + 1)


def _on_way(graph: DependencyGraph, chains: Chains, blame: Blame) -> dict[int, Array]:
    """Return for each rank that is charged the vertices on the way to the arrivals for which it is."""
    from htagraph.core import traverse

    offsets, sources = chains.forest
    found = {}
    charged = blame.cause > 0
    for rank in np.unique(blame.rank[charged]).tolist():
        ends = np.unique(2 * blame.arrival[charged & (blame.rank == rank)])
        met = np.flatnonzero(traverse.reach(offsets, sources, ends))
        found[int(rank)] = met[np.argsort(graph.time[met], kind="stable")]
    return found


def _table(graph: DependencyGraph, waits: Waits, by_cause: Array, best: Array, stories: list[_Story]) -> pd.DataFrame:
    ranks = np.array(graph.ranks, np.int64)
    blamed, explained = by_cause.sum(axis=1), by_cause[:, 1:].sum(axis=1)
    total = int(waits.wait.sum())
    own = np.zeros(len(ranks), np.int64)
    np.add.at(own, np.searchsorted(ranks, waits.rank), waits.wait)
    made = waits.late[(waits.wait > 0) & (waits.late >= 0)]
    late = np.bincount(np.searchsorted(ranks, graph.activities.rank[np.unique(made)]), minlength=len(ranks))
    guess = np.zeros(len(ranks), np.bool_)
    if explained.any():
        guess[explained.argmax()] = True
    cause_ns = np.where(best > 0, by_cause[np.arange(len(ranks)), best], 0)
    causes = [CAUSES[cause] for cause in best.tolist()]
    told = zip(causes, stories, (cause_ns / 1e6).tolist(), late.tolist(), strict=True)
    return pd.DataFrame(
        {
            "rank": ranks,
            "blamed_us": blamed / 1000,
            "share_percent": 100 * blamed / total if total else np.zeros(len(ranks)),
            "explained_us": explained / 1000,
            "first_guess": guess,
            "waits_us": own / 1000,
            "late_count": late.astype(np.int64),
            "lateness_us": _lateness(graph, waits),
            "cause": pd.array(causes, dtype="str"),
            "cause_name": pd.array([story.name for story in stories], dtype="str"),
            "cause_us": cause_ns / 1000,
            "slower_percent": np.array([100 * story.slower for story in stories], np.float64),
            "evidence": pd.array([_evidence(*each) for each in told], dtype="str"),
        }
    )


def _lateness(graph: DependencyGraph, waits: Waits) -> npt.NDArray[np.float64]:
    """Return for each rank the median of how much later it arrived than the median of the other members, µs."""
    known = waits.collective >= 0
    table = pd.DataFrame({"rank": waits.rank[known], "arrival": (waits.arrival[known] - graph.origin_ns) / 1000})
    table["late"] = table["arrival"] - others_median(table["arrival"].to_numpy(), waits.collective[known])
    median = table.groupby("rank")["late"].median()
    return median.reindex(list(graph.ranks)).to_numpy(np.float64)


_WORK = {
    "kernels": "kernels take", "host": "host work takes", "data_loading": "data loading takes",
    "collective": "communication that no other rank shares takes",
}  # fmt: skip


def _evidence(cause: str, story: _Story, charged_ms: float, late: int) -> str:
    """Return a sentence: what is slower, by how much, and what that costs the others."""
    if cause == "none":
        return "its own work is no slower than its peers'" if late else "no rank waited for it"
    name = f"most of it in {story.name}" if story.name else ""
    cost = f"in all the others wait {charged_ms:.3f} ms for it, last in {late} collectives"
    if cause not in _WORK or np.isnan(story.slower):
        return "; ".join(part for part in (f"{cause} makes it late", name, cost) if part)
    if story.named:
        work = _WORK[cause].rsplit(" ", 1)[0]  # without the verb
        return f"of its {work} above all {story.name} takes {_times(1 + story.slower)}; {cost}"
    much = f"its {_WORK[cause]} {_times(1 + story.slower)}"
    return "; ".join(part for part in (much, name, cost) if part)


def _times(ratio: float) -> str:
    """Return in words how long something takes, relative to the same on its peers."""
    percent = round(100 * (ratio - 1))
    if percent == 0:
        return "as long as its peers'"
    if ratio >= _DOUBLE:
        return f"{ratio:.1f} times as long as its peers'"
    return f"{abs(percent)} % {'longer' if percent > 0 else 'less'} than its peers'"


def _blame_table(graph: DependencyGraph, waits: Waits, chains: Chains, blame: Blame) -> pd.DataFrame:
    acts, row = graph.activities, blame.row
    activity = _upstream(chains, blame)
    ops = () if graph.matches is None else graph.matches.op
    return pd.DataFrame(
        {
            "collective": waits.collective[row],
            "op": pd.array([ops[i] for i in waits.collective[row].tolist()], dtype="str"),
            "waiting_rank": waits.rank[row],
            "last_rank": acts.rank[waits.late[row]].astype(np.int64),
            "charged_rank": blame.rank,
            "wait_us": blame.charged / 1000,
            "cause": pd.array([CAUSES[cause] for cause in blame.cause.tolist()], dtype="str"),
            "activity": activity,
            "name": pd.array([graph.names[acts.name[i]] if i >= 0 else "" for i in activity.tolist()], dtype="str"),
            "collectives_back": blame.depth,
        }
    )


def _upstream(chains: Chains, blame: Blame) -> npt.NDArray[np.int64]:
    """Return for each charge the activity of its cause with the largest excess on the way to the late arrival."""
    key = np.stack([blame.arrival, blame.cause], axis=1)
    pairs, member = np.unique(key, axis=0, return_inverse=True)
    found, most = np.full(len(pairs), -1, np.int64), np.zeros(len(pairs), np.int64)
    still = np.flatnonzero(np.isin(pairs[:, 1], [CAUSES.index(word) for word in _COMPARED]))
    at = 2 * pairs[still, 0]
    for _ in range(_NEAR):  # all of them one place further back
        better = (chains.cause[at] == pairs[still, 1]) & (chains.item[at] >= 0) & (chains.excess[at] > most[still])
        found[still[better]], most[still[better]] = chains.item[at[better]], chains.excess[at[better]]
        further = chains.before[at] >= 0
        still, at = still[further], chains.before[at[further]]
        if not len(still):
            break
    return found[member.ravel()] if len(found) else np.zeros(0, np.int64)
