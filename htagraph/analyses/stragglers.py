"""Which rank makes the others wait, how much, and what on that rank makes it late."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
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
# The thresholds below decide whether a rank is called the straggler; they are chosen. On the simulated jobs of
# tests/analyses/test_stragglers with one slow rank, or none, no conclusion changes if one of them is halved or doubled,
# but by _MAX_CONTENT_RATIO; further jobs there lie beside a threshold and show what it decides.
_MIN_SLOWER = 0.05
"""Share of its peers' time by which a straggler's work takes longer, at least. Chosen. Doubled, a rank whose kernels
are 6 % slower is not named; halved, one with 3 % is."""
_MIN_ERRORS = 4.0
"""Standard errors by which a straggler is slower than its peers, at least. Chosen above the usual 2 or 3, since of the
many comparisons in a job the one that explains most is judged. Doubled, a rank that is 12 % slower is missed where
kernels vary by 30 %; halved, a rank of a job without a slow rank is blamed where they vary by 60 %."""
_MIN_ERRORS_OF_NAME = 3.0
"""Standard errors that suffice for the activities of one name where all work of the cause passed `_MIN_ERRORS`. Chosen.
Doubled, the evidence speaks of the cause as a whole more often."""
_MIN_WAIT_SHARE = 0.005
"""Share of the recorded time that each other rank waits for a straggler, at least. Chosen: less is not worth a repair.
Doubled, a rank that costs the job 0.75 % of its time is not named."""
_MIN_SHARE_OF_EXPLAINED = 0.5
"""Share of the waiting explained by slow ranks that the straggler must cause, at least. Half, so that no other rank
causes more. Doubled, no straggler is named where two ranks are slow."""
_MAD_TO_DEVIATION = 1.4826
"""Standard deviation over median absolute deviation, a constant of the normal distribution."""
_MEDIAN_VARIANCE = 1.5
"""Variance of one rank's value minus the median of a few others, over the variance of one value. Chosen between 2 (one
other rank) and 1 (very many). Doubled, standard errors are 1.4 times as large."""
_MIN_ERROR = 1e-3
"""The least standard error of the logarithm of a ratio, for jobs without any noise: 0.1 %. Chosen. Doubled, four of
them are 0.8 %, still far below `_MIN_SLOWER`."""
_MAX_COUNT_RATIO = 1.1
"""Activities of a rank in a cause over the median of its peers', at most, for sums by step to be comparable. Chosen:
ranks that run more are other stages of a pipeline. Doubled, a stage with up to 2.2 times the activities is compared."""
_MAX_CONTENT_RATIO = 1.02
"""The same for one name, counted with the activities inside. Chosen stricter: work of one name is equal on equal
stages. Doubled, the stage of a pipeline that computes the loss is called a straggler."""
_MIN_RANKS_FOR_ONE_STEP = 4
"""Ranks that must be exceeded for a single step to be judged: with fewer, their differences do not show what is usual.
Chosen. Doubled, a recording of one step needs 9 ranks."""
_MAX_HOPS_BACK = 512
"""Vertices on the path to a late arrival that are searched for the activity that explains most. Chosen: bounds the time
of the search. Doubled, an activity further back can be named; charges stay the same."""
_IN_TIMES_FROM = 2.0
"""Ratio from which the evidence says "2.0 times as long" instead of "100 % longer". Chosen; only words depend on it."""
_HTML_ROWS = 8
"""Ranks shown in a notebook, those that explain most waiting first. Chosen: a short table; `to_frame` has all."""
_COMPARED = ("kernels", "host", "data_loading", "collective")
"""Causes that lie in activities, which peers have too; the others are judged by how often the rank is late."""


@dataclass(frozen=True, eq=False)
class Stragglers:
    """What `stragglers` returns."""

    ranks: pd.DataFrame
    blame: pd.DataFrame
    """One row per wait, charged rank and cause; the columns are documented at `stragglers`."""
    straggler: int | None
    """The rank that is slower than its peers and makes them wait; None if lateness is spread by chance."""
    total_wait_us: float
    """Time that ranks waited in collectives, summed over all ranks, µs."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per rank; the columns are documented at `stragglers`."""
        return self.ranks.copy()

    def __repr__(self) -> str:
        who = "none" if self.straggler is None else f"rank {self.straggler}"
        return f"Stragglers({who}, {self.total_wait_us / 1000:.3f} ms of waiting over {len(self.ranks)} ranks)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: who the straggler is and why, and a short table of the ranks."""
        columns = ["rank", "blamed_us", "share_percent", "waits_us", "late_count", "cause", "cause_name"]
        table = self.ranks.sort_values("explained_us", ascending=False, kind="stable")[columns].head(_HTML_ROWS)
        waiting = f"{self.total_wait_us / 1000:,.3f} ms of waiting in collectives over {len(self.ranks):,} ranks"
        who, why = "No straggler", ""
        if self.straggler is not None:
            who = f"Straggler: rank {self.straggler}"
            why = f"; {self.ranks.loc[self.ranks['rank'] == self.straggler, 'evidence'].iloc[0]}"
        return (
            f"<p><b>{who}</b> ({waiting}){escape(why)}</p>{table.to_html(index=False, float_format='{:,.1f}'.format)}"
        )


def stragglers(graph: DependencyGraph) -> Stragglers:
    """Return which rank makes the others wait in collectives, how much, and why.

    Every wait is charged in full to ranks and causes. The path is followed back from the last arrival, from each moment
    to the one that held it up, until the last collective that both the late rank and the waiting rank had left. Each
    activity on that path is compared with the median of the same activity on the other ranks. The wait is charged to
    the ranks and causes that took longer, in proportion; if the rank was late because of an earlier collective, to the
    ranks that were late there. What this does not explain is charged to the rank that arrived last, cause ``none``.

    A rank is called the straggler if (1) its work in its main cause is slower than its peers' by at least 5 % and by at
    least four standard errors, (2) each other rank waits for it for at least 0.5 % of the recorded time, and (3) it
    causes at least half of the waiting that is explained by ranks which are slower in this way. A job whose ranks are
    late by chance has no straggler.

    Args:
        graph: the job.

    Returns:
        An object with ``straggler`` (the rank or None), ``total_wait_us``, ``to_frame()`` and ``blame``.

        ``to_frame()``: a row per rank: ``rank`` (int64), ``blamed_us`` (float64: waiting charged to it, µs; the
        sum is ``total_wait_us``), ``share_percent`` (float64: of all waiting), ``explained_us`` (float64: the part of
        ``blamed_us`` that has a cause), ``first_guess`` (bool: ``explained_us`` is the largest), ``waits_us``
        (float64: its own waiting), ``late_count`` (int64: collectives in which it arrived last and others
        waited), ``lateness_us`` (float64: how much later it arrives than the median of the other ranks, median over
        collectives), ``cause`` (str: ``kernels``, ``host``, ``data_loading``, ``launch``, ``sync``, ``collective``,
        ``network`` or ``none``; the one charged most), ``cause_name`` (str: the activity that explains most of it),
        ``cause_us`` (float64: waiting charged to that cause), ``slower_percent`` (float64: by how much its own time in
        that cause exceeds its peers') and ``evidence`` (str: the reason in words).

        ``blame``: a row per wait, charged rank and cause: ``collective`` (int64), ``op`` (str), ``waiting_rank``,
        ``last_rank``, ``charged_rank`` (int64), ``wait_us`` (float64, charged), ``cause`` (str), ``activity`` (int64:
        the activity of that cause on the path that explains most, -1 for none), ``name`` (str), ``collectives_back``
        (int64: how many collectives earlier the delay arose).

        What a rank did before its recording begins is not known: where the path leads there, a wait that nothing else
        explains has the cause ``recording`` in ``blame``, for as long as that recording begins later than the waiting
        rank's, with ``charged_rank`` -1, and is part of no rank's ``blamed_us``.

    Example:
        >>> import htagraph as hg
        >>> result = hg.stragglers(hg.load("data/demo"))
        >>> bool(abs(result.to_frame()["blamed_us"].sum() - result.total_wait_us) < 1e-6)
        True
    """
    waits, chains = waits_of(graph), chains_of(graph)
    blame = blame_of(graph, waits, chains)
    by_cause = np.zeros((len(graph.ranks), len(CAUSES)), np.int64)
    np.add.at(by_cause, (np.searchsorted(graph.ranks, blame.rank), blame.cause), blame.charged)
    by_cause[:, CAUSES.index("recording")] = 0  # nobody is charged for what was not recorded
    best = by_cause[:, 1:].argmax(axis=1) + 1 if len(by_cause) else np.zeros(0, np.int64)
    best[by_cause[:, 1:].sum(axis=1) == 0] = 0
    path_vertices = _path_vertices(graph, chains, blame)
    stories = [
        _story(graph, chains, path_vertices, rank, int(cause))
        for rank, cause in zip(graph.ranks, best.tolist(), strict=True)
    ]
    table = _table(graph, waits, by_cause, best, stories)
    total = int(waits.wait.sum())
    return Stragglers(
        table, _blame_table(graph, waits, chains, blame), _straggler(graph, table, waits, stories), total / 1000
    )


@dataclass(frozen=True)
class _Story:
    """How the work of one rank in one cause compares with that of its peers."""

    name: str
    excess: int
    """Time beyond the peers' on the paths to late arrivals, in activities of that name, ns."""
    slower: float
    """How much longer than the peers' its own time is, as a share of theirs."""
    sure: float
    """The same difference in standard errors."""
    count: int
    """Activities compared."""
    named: bool = False
    """Whether the activities of that name alone are compared, instead of all of the cause."""


def _story(graph: DependencyGraph, chains: Chains, path_vertices: dict[int, Array], rank: int, cause: int) -> _Story:
    """Return the activity that explains most of a cause on a rank, and how the rank compares with its peers.

    The activities of that name alone are compared if they are slower by more than all activities of the cause.
    """
    none = np.zeros(0, np.int64)
    vertex = path_vertices.get(rank, none)
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
    of_cause = chains.about == cause
    whole = _slower(graph, chains, np.flatnonzero(of_cause), rank)
    rows = np.flatnonzero(of_cause & (acts.name == name))
    named = _slower(graph, chains, rows, rank) if name >= 0 and _same_inside(graph, rows, rank) else whole
    enough = _MIN_ERRORS_OF_NAME if whole[1] >= _MIN_ERRORS else _MIN_ERRORS
    if named[1] >= enough and named[0] > whole[0]:
        return _Story(text, most, named[0], max(named[1], whole[1]), named[2], named=True)
    return _Story(text, most, *whole)


_LATENCIES = {"host": "Python between operators", "launch": "launch latency", "sync": "return of blocking calls"}


def _slower(graph: DependencyGraph, chains: Chains, rows: Array, rank: int) -> tuple[float, float, int]:
    """Return (how much slower than its peers' a rank's activities are, the same in standard errors, their number).

    There are two comparisons, and the one with more standard errors counts: each activity with its peers; and the sums
    by step, which include activities that only this rank has and in which single outliers weigh less.
    """
    rows = rows[chains.own[rows] > 0]
    at_rank = int(np.searchsorted(graph.ranks, rank))
    count = int((graph.activities.rank[rows] == rank).sum())
    by_activity, by_step = _by_activity(graph, chains, rows, at_rank), _by_step(graph, chains, rows, at_rank)
    slower, sure = max(by_activity, by_step, key=lambda comparison: comparison[1])
    return slower, sure, count


def _same_inside(graph: DependencyGraph, rows: Array, rank: int) -> bool:
    """Return True unless a rank's activities enclose more than its peers' do, as stages of a pipeline may by design."""
    acts = graph.activities
    chosen = np.zeros(len(acts) + 1, np.bool_)
    chosen[rows] = True
    both = np.concatenate([rows, np.flatnonzero(chosen[graph.tree.parent])])
    count = np.bincount(np.searchsorted(graph.ranks, acts.rank[both]), minlength=len(graph.ranks))
    at_rank = int(np.searchsorted(graph.ranks, rank))
    return len(count) > 1 and bool(count[at_rank] <= _MAX_CONTENT_RATIO * np.median(np.delete(count, at_rank)))


def _by_activity(graph: DependencyGraph, chains: Chains, rows: Array, at_rank: int) -> tuple[float, float]:
    """Return (share, standard errors) of the difference, each activity compared with its peers."""
    rows = rows[chains.others[rows] > 0]
    own, others = chains.own[rows].astype(np.float64), chains.others[rows]
    place = np.searchsorted(graph.ranks, graph.activities.rank[rows])
    size = len(graph.ranks)
    base, count = np.bincount(place, others, size), np.bincount(place, minlength=size)
    some = (base > 0) & (count > 1)
    if not some[at_rank]:
        return 0.0, 0.0
    ratio = np.bincount(place, own, size)[some] / base[some]
    rest = np.bincount(place, (own - others * _spread(ratio, some)[place]) ** 2, size)[some] / base[some] ** 2
    single = float(np.mean(rest * count[some] / (count[some] - 1)))
    return _judged(np.log(ratio), int(some[:at_rank].sum()), single)


def _by_step(graph: DependencyGraph, chains: Chains, rows: Array, at_rank: int) -> tuple[float, float]:
    """Return (share, standard errors) of the difference, sums by step compared with those of the other ranks."""
    step = graph.activities.step[rows]
    rows, step = rows[step >= 0], step[step >= 0]
    place = np.searchsorted(graph.ranks, graph.activities.rank[rows])
    number, at = np.unique(step, return_inverse=True)
    size = (len(graph.ranks), len(number))
    cell, cells = place * size[1] + at.ravel(), size[0] * size[1]
    sums = np.bincount(cell, chains.own[rows], cells).reshape(size)
    full = (sums > 0).all(axis=0)
    sums, count = sums[:, full], np.bincount(cell, minlength=cells).reshape(size)[:, full].sum(axis=1)
    alike = len(count) > 1 and count[at_rank] <= _MAX_COUNT_RATIO * float(np.median(np.delete(count, at_rank)))
    if not alike or not sums.shape[1]:  # stages of a pipeline differ by design
        return 0.0, 0.0
    column = np.tile(np.arange(sums.shape[1]), size[0])
    logs = np.log(sums / others_median(sums.ravel(), column).reshape(sums.shape))
    if sums.shape[1] == 1:
        return _judged(logs[:, 0], at_rank, 0.0 if size[0] > _MIN_RANKS_FOR_ONE_STEP else float("inf"))
    return _judged(logs.mean(axis=1), at_rank, float(logs.var(axis=1, ddof=1).mean()) / sums.shape[1])


def _spread(values: Array, where: Array) -> npt.NDArray[np.float64]:
    """Return the values at the places where `where` holds, 1 elsewhere."""
    out = np.ones(len(where))
    out[where] = values
    return out


def _judged(logs: Array, at: int, variance: float) -> tuple[float, float]:
    """Return (how much slower one rank is than the median of the others, the same in standard errors).

    Args:
        logs: for each rank, the logarithm of its time over its peers'.
        at: the rank in question, as a position in `logs`.
        variance: of one rank's value by chance. The differences between the other ranks count as chance, too.
    """
    others = np.delete(logs, at)
    usual = float(np.median(others)) if len(others) > 1 else 0.0
    between = _MAD_TO_DEVIATION * float(np.median(np.abs(others - usual))) if len(others) > 2 else 0.0
    more = float(logs[at]) - usual
    error = max(float(np.sqrt(_MEDIAN_VARIANCE * variance)), between, _MIN_ERROR)
    return float(np.expm1(more)), more / error


def _straggler(graph: DependencyGraph, table: pd.DataFrame, waits: Waits, stories: list[_Story]) -> int | None:
    """Return the rank that the others wait for, if it is slower than they are by more than chance."""
    if len(table) < 2 or not table["first_guess"].any():
        return None
    at = int(table["first_guess"].to_numpy().argmax())
    row = table.iloc[at]
    span = (int(graph.time.max()) - int(graph.time.min())) / 1000
    met = len(np.unique(waits.collective[(waits.late >= 0) & (waits.wait > 0)]))
    slow = np.array([_is_slow(table.iloc[i], story, met, len(table)) for i, story in enumerate(stories)])
    worth = row["explained_us"] >= _MIN_WAIT_SHARE * span * (len(table) - 1)
    most = row["explained_us"] >= _MIN_SHARE_OF_EXPLAINED * table["explained_us"][slow].sum()
    return int(row["rank"]) if worth and most and slow[at] else None


def _is_slow(row: pd.Series[Any], story: _Story, met: int, ranks: int) -> bool:
    """Return whether a rank is slower than its peers, or late more often, by more than chance."""
    if row["cause"] in _COMPARED:
        return story.slower >= _MIN_SLOWER and story.sure >= _MIN_ERRORS
    chance = 1 / ranks
    return bool(row["late_count"] > met * chance + _MIN_ERRORS * np.sqrt(met * chance * (1 - chance)) + 1)


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


def _table(graph: DependencyGraph, waits: Waits, by_cause: Array, best: Array, stories: list[_Story]) -> pd.DataFrame:
    ranks = np.array(graph.ranks, np.int64)
    blamed, explained = by_cause.sum(axis=1), by_cause[:, 1:].sum(axis=1)
    total = int(waits.wait.sum())
    own = np.zeros(len(ranks), np.int64)
    np.add.at(own, np.searchsorted(ranks, waits.rank), waits.wait)
    late_parts = waits.late[(waits.wait > 0) & (waits.late >= 0)]
    late = np.bincount(np.searchsorted(ranks, graph.activities.rank[np.unique(late_parts)]), minlength=len(ranks))
    guess = np.zeros(len(ranks), np.bool_)
    if explained.any():
        guess[explained.argmax()] = True
    cause_ns = np.where(best > 0, by_cause[np.arange(len(ranks)), best], 0)
    causes = [CAUSES[cause] for cause in best.tolist()]
    parts = zip(causes, stories, (cause_ns / 1e6).tolist(), late.tolist(), strict=True)
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
            "evidence": pd.array([_evidence(*part) for part in parts], dtype="str"),
        }
    )


def _lateness(graph: DependencyGraph, waits: Waits) -> npt.NDArray[np.float64]:
    """Return for each rank how much later it arrives than the median of the others, median over collectives, µs."""
    known = waits.collective >= 0
    table = pd.DataFrame({"rank": waits.rank[known], "arrival": (waits.arrival[known] - graph.origin_ns) / 1000})
    table["late"] = table["arrival"] - others_median(table["arrival"].to_numpy(), waits.collective[known])
    median = table.groupby("rank")["late"].median()
    return median.reindex(list(graph.ranks)).to_numpy(np.float64)


_WORK = {
    "kernels": "kernels", "host": "host work", "data_loading": "data loading",
    "collective": "communication that no other rank shares", "launch": "launch latency", "sync": "blocking calls",
    "network": "transfers",
}  # fmt: skip


def _evidence(cause: str, story: _Story, charged_ms: float, late: int) -> str:
    """Return what is slower, by how much, and how long the others wait for it, as the end of a sentence."""
    if cause == "none":
        return "its own work is no slower than its peers'" if late else "no rank waited for it"
    work = _WORK[cause]
    cost = f"the other ranks wait {charged_ms:.3f} ms for it in total, and it arrives last in {late} collectives"
    if story.named:
        itself = " itself (without what it calls)" if cause == "host" else ""  # durations compared are self times there
        return f"among its {work}, {story.name}{itself} takes {_times(1 + story.slower)}; {cost}"
    compared = cause in _COMPARED and not np.isnan(story.slower)
    verb = "take" if cause == "kernels" else "takes"
    reason = f"its {work} {verb} {_times(1 + story.slower)}" if compared else f"it is late because of its {work}"
    where = f", mostly in {story.name}" if story.name and cause in _COMPARED else ""
    return f"{reason}{where}; {cost}"


def _times(ratio: float) -> str:
    """Return in words how long something takes, compared with the peers."""
    percent = round(100 * (ratio - 1))
    if percent == 0:
        return "as long as its peers'"
    if ratio >= _IN_TIMES_FROM:
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
    """Return for each charge the activity of its cause with the largest excess on the path to the late arrival."""
    key = np.stack([blame.arrival, blame.cause], axis=1)
    pairs, member = np.unique(key, axis=0, return_inverse=True)
    activity, largest = np.full(len(pairs), -1, np.int64), np.zeros(len(pairs), np.int64)
    rows = np.flatnonzero(np.isin(pairs[:, 1], [CAUSES.index(word) for word in _COMPARED]))
    at = 2 * pairs[rows, 0]
    for _ in range(_MAX_HOPS_BACK):  # all paths, one vertex further back
        better = (chains.cause[at] == pairs[rows, 1]) & (chains.item[at] >= 0) & (chains.excess[at] > largest[rows])
        activity[rows[better]], largest[rows[better]] = chains.item[at[better]], chains.excess[at[better]]
        further = chains.before[at] >= 0
        rows, at = rows[further], chains.before[at[further]]
        if not len(rows):
            break
    return activity[member.ravel()] if len(activity) else np.zeros(0, np.int64)
