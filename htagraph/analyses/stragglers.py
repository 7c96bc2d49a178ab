"""Which rank makes the others wait, how much, and what on that rank makes it late."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import time_text
from htagraph.core.statistics import CHANCE, MOST, SEVERAL, STANDS_OUT, others_median
from htagraph.core.tables import Col, Table, described
from htagraph.graph.clocks import agreement_ns
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import Waits, damaged_ranks
from htagraph.graph.tolerances import LIMITS
from htagraph.queries import straggler
from htagraph.queries.attribution import names_of
from htagraph.queries.blame import CAUSES, Blame, Chains, blame_of, chains_of
from htagraph.queries.peers import are_stages, rank_roles
from htagraph.queries.rank_speed import SlowRanks, slow_ranks
from htagraph.queries.straggler import Difference

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["stragglers"]

TABLE = Table(
    "Ranks that others wait for",
    Col("rank", "int64"),
    Col(
        "blamed_us",
        doc="waiting of other ranks that is charged to this rank; all ranks add up to ``total_wait_us`` less what "
        "nobody is charged for, the causes ``recording`` and ``clocks``",
    ),
    Col("share_percent", doc="``blamed_us`` as a share of ``total_wait_us``"),
    Col("explained_us", doc="the part of ``blamed_us`` that has a cause"),
    Col("first_guess", "bool", "whether the rank has the largest ``explained_us``"),
    Col("waits_us", doc="waiting of the rank itself"),
    Col("late_count", "int64", "number of collectives in which the rank arrived last and other ranks waited"),
    Col(
        "lateness_us",
        doc="how much later the rank arrives than the median other rank; mean over collectives",
        heading="mean late_us",
    ),
    Col(
        "cause",
        "str",
        "``kernels``, ``host``, ``data_loading``, ``launch``, ``sync``, ``collective``, ``network``, "
        "``other_work`` (launched work waited, probably for work that was not recorded), ``outside`` (it waited for "
        "something that was not recorded, such as another process) or ``none``; the one charged most",
    ),
    Col("cause_name", "str", "the activity that explains most of ``cause_us``"),
    Col("cause_us", doc="waiting of other ranks that is charged to ``cause``"),
    Col("slower_percent", doc="how much longer the rank's own work of this cause takes than its peers', in total"),
    Col("own_step_us", doc="time of the rank's own work in a step, median over steps"),
    Col("step_excess_us", doc="how much the rank's own step exceeds its peers', median over steps; NaN without peers"),
    Col("step_error_us", doc="standard error of ``step_excess_us``"),
    Col("slow", "bool", "whether the rank is slower than its peers by more than chance, in all steps or in some"),
    Col("slow_steps", "int64", "number of steps in which the rank is slower; 0 if not ``slow``"),
    Col("slow_excess_us", doc="how much the own step exceeds the peers' in those steps, mean; NaN if not slow"),
    Col("evidence", "str", "the reason in words"),
    rank_by="blamed_us",
)
BLAME = Table(
    "Waits and whom they are charged to",
    Col("collective", "int64"),
    Col("op", "str"),
    Col("waiting_rank last_rank charged_rank", "int64"),
    Col("wait_us", doc="waiting that is charged"),
    Col("cause", "str"),
    Col("activity", "int64", "the activity of this cause that explains most of the wait; -1 for none"),
    Col("name", "str"),
    Col("collectives_back", "int64", "how many collectives earlier the delay arose"),
)
BY_STEP = Table(
    "Own time by step",
    Col("rank", "int64"),
    Col("step", "int64", "-1 for a job without steps"),
    Col("own_us", doc="time of the rank's own work in the step; NaN if unknown"),
    Col("excess_us", doc="how much ``own_us`` exceeds the median of the peers in the step; NaN without peers"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Stragglers(straggler.RankStragglers):
    """The result of `stragglers`: who makes the others wait, how much, and why."""

    blame: pd.DataFrame = field(default_factory=BLAME.frame)
    """One row per wait, charged rank and cause; the columns are documented at `stragglers`."""
    differences: tuple[Difference, ...] = ()
    """What takes more time on the rank that is charged most than on each of its peers, the largest difference first;
    where no straggler is named."""
    alone: tuple[int, float] = (0, 0.0)
    """How many operators and kernels that rank has beyond those of every other rank, and their own time, µs."""
    by_step: pd.DataFrame = field(default_factory=BY_STEP.frame)
    """One row per rank and step; the columns are documented at `stragglers`."""

    @property
    def explained(self) -> tuple[Difference, ...]:
        """The differences, if together they are most of what another rank waits for the rank; else they tell little."""
        wait_us = self.ranks["blamed_us"].max() / max(len(self.ranks) - 1, 1)
        return self.differences if sum(each.more_us for each in self.differences) >= MOST * wait_us else ()

    def plot(self) -> Figure:
        """Return the figure of how much longer each rank takes for each step; see `htagraph.plot.stragglers`."""
        from htagraph.output.plot.breakdowns import stragglers as figure

        return figure(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: who the straggler is and why, and a short table of the ranks."""
        columns = ["rank", "blamed_us", "share_percent", "waits_us", "late_count", "cause", "cause_name"]
        table = self.ranks.sort_values("blamed_us", ascending=False, kind="stable")[columns].head(8)
        waiting = f"{self.total_wait_us / 1000:,.3f} ms of waiting in collectives over {len(self.ranks):,} ranks"
        who, why = "No straggler", ""
        if self.straggler is not None:
            who = f"Straggler: rank {self.straggler}"
            why = f"; {self.ranks.loc[self.ranks['rank'] == self.straggler, 'evidence'].iloc[0]}"
        return (
            f"<p><b>{who}</b> ({waiting}){escape(why)}</p>{table.to_html(index=False, float_format='{:,.1f}'.format)}"
        )


@described(TABLE, BLAME, BY_STEP)
def stragglers(graph: DependencyGraph) -> Stragglers:
    """Return which rank makes the others wait in collectives, how much, and why.

    Every wait is charged in full to ranks and causes. A path is followed back from the last arrival, from each moment
    to the moment that held it up, until the last collective that both the late rank and the waiting rank had left. Each
    activity on this path is compared with the median of the same activity on the other ranks. The wait is charged, in
    proportion, to the ranks and causes that took longer; if the rank was late because of an earlier collective, to the
    ranks that were late in that collective. The rest of the wait is charged to the rank that arrived last, with the
    cause ``none``.

    A rank is called the straggler if (1) its steps take longer than its peers', step by step, beyond the spread of
    its steps and the differences between the other ranks, where the time of a step is what the rank does by itself,
    without waiting for others; or single steps of the rank stand out, more often or more evenly than by chance, by
    equal delays of one piece of work, or by work that no other rank does; or the rank's work of one name, or all of
    it, is slower throughout, and its steps agree; (2) its steps take at least 0.4 % of a step longer on average,
    and others wait for it as long; and (3) no other rank is charged more waiting beyond its peers, and the waiting
    charged to this rank is not mostly caused by transfers. Peers are ranks that do the same work by design; stages
    of a pipeline are compared with the same stage of other pipelines. The stages of a single pipeline are compared
    by how fast they do like work: the slow stage is the straggler if the job is shorter with this stage as fast as
    the others. A rank that takes longer in all steps for work that no other rank does, and for whose result the
    other ranks wait in broadcasts, is no straggler: the program is made so. A recording of a single step of fewer
    than four ranks shows no straggler. Clocks do not matter for (1) and (2); where clocks are unknown, the evidence
    says so. A job whose ranks are late by chance has no straggler.

    Args:
        graph: the job.

    Returns:
        An object with ``straggler`` (the rank or None), ``total_wait_us``, ``to_frame()`` and ``blame``; ``nobody_us``
        (waiting that no rank can be charged with, by cause); ``serves`` (the rank whose result the others wait for, or
        None), ``staged`` (whether ranks are stages of pipelines), ``slow_group`` (by how much each of several ranks
        that are slower than all others takes longer for its steps), ``damaged`` (the ranks in whose recording something
        is missing; none of them is the straggler), ``mostly_charged`` (the ranks that most waiting is charged to),
        ``steps`` and, without a straggler, ``differences`` (what takes more time on the rank that is charged most than
        on its peers), ``alone`` (what only that rank does) and ``by_step``.

        ``to_frame()``: a row per rank: {columns}.

        ``blame``: a row per wait, charged rank and cause: {columns}.

        ``by_step``: a row per rank and step: {columns}.

        What a rank did before its recording begins is not known: where the path leads there, a wait that nothing else
        explains has the cause ``recording`` in ``blame``, for as long as that recording begins later than the waiting
        rank's, with ``charged_rank`` -1, and is part of no rank's ``blamed_us``. So is, with the cause ``clocks``, a
        wait for a rank whose clock may disagree with that of the rank that waits.

    Example:
        >>> import htagraph as hg
        >>> result = hg.stragglers(hg.load("data/demo"))
        >>> bool(abs(result.to_frame()["blamed_us"].sum() - result.total_wait_us) < 1e-6)
        True
    """
    waits, chains = graph.waits, chains_of(graph)
    blame = blame_of(graph, chains)
    by_cause = straggler.charges_of(graph, blame)
    best = by_cause[:, 1:].argmax(axis=1) + 1 if len(by_cause) else np.zeros(0, np.int64)
    best[by_cause[:, 1:].sum(axis=1) == 0] = 0
    slow = slow_ranks(graph)
    works = straggler.slow_work(graph, chains, blame, best)
    table = _table(graph, slow, by_cause, best, works)
    group = _slow_group(graph, slow)
    last = np.bincount(np.searchsorted(graph.ranks, graph.activities.rank[waits.late]), waits.wait, len(table)) / 1000
    roles, _ = rank_roles(graph)
    staged = are_stages(graph)
    compared = _Compared(
        steps=len(slow.steps),
        is_like_work=staged and len(np.unique(roles)) == len(roles),
        has_unsure_clocks=agreement_ns(graph.clocks, np.unique(waits.rank[waits.wait > 0]).tolist()) < 0,
    )
    evidence = [
        _evidence(row | {"group_us": group.get(row["rank"]), "last_us": us}, work, compared)
        for us, row, work in zip(last.tolist(), table.to_dict("records"), works, strict=True)
    ]
    table = table.assign(evidence=pd.array(evidence, dtype="str"))
    total = int(waits.wait.sum())
    rank, serves, most = straggler.straggler_among(graph, slow, blame)
    about = most if serves is None else serves
    differences = () if rank is not None or about is None else _differences(graph, chains, slow, about)
    return Stragglers(
        table, rank, total / 1000, serves, len(slow.steps), straggler.charged_to_nobody(blame), staged,
        group, tuple(damaged_ranks(graph)), _blame_table(graph, waits, chains, blame), differences,
        (0, 0.0) if about is None else straggler.alone_work(graph, chains.own, about), _by_step(graph, slow),
    )  # fmt: skip


def _slow_group(graph: DependencyGraph, slow: SlowRanks) -> dict[int, float]:
    """Return by how much each of several ranks takes longer than all others, beyond chance, µs; empty for no such."""
    own = slow.by_step[:, np.isfinite(slow.by_step).all(axis=0)] / 1000
    if len(np.unique(slow.roles)) > 1 or not own.size or len(own) < SEVERAL:
        return {}
    usual = np.median(own, axis=1)
    order = np.argsort(usual)
    gap = np.diff(usual[order])
    cut = int(gap.argmax()) + 1
    fast, late = order[:cut], np.sort(order[cut:])
    apart = (own[late].min(axis=0) > own[fast].max(axis=0)).mean() >= LIMITS.nearly_all
    within = max(np.ptp(usual[late]), np.ptp(usual[fast]))
    apart &= gap.max() > max(STANDS_OUT * within, LIMITS.small * float(np.median(usual)))
    if not apart or len(late) < 2 or comb(len(own), cut) ** float(1 - own.shape[1]) >= CHANCE:
        return {}
    longer = usual[late] - np.median(usual[fast])
    return dict(zip(np.array(graph.ranks)[late].tolist(), longer.tolist(), strict=True))


def _by_step(graph: DependencyGraph, slow: SlowRanks) -> pd.DataFrame:
    """Return what each rank does by itself in each step, and by how much that exceeds its peers'."""
    own, (ranks, steps) = slow.by_step.ravel(), slow.by_step.shape
    row, column = np.repeat(np.arange(ranks), steps), np.tile(np.arange(steps), ranks)
    excess = np.full(len(own), np.nan)
    known = np.isfinite(own)
    group = slow.roles[row[known]] * max(steps, 1) + column[known]
    excess[known] = own[known] - others_median(own[known], group)
    rank = np.array(graph.ranks)[row]
    return BY_STEP.frame({"rank": rank, "step": slow.steps[column], "own_us": own / 1000, "excess_us": excess / 1000})


def _differences(graph: DependencyGraph, chains: Chains, slow: SlowRanks, rank: int) -> tuple[Difference, ...]:
    """Return what takes more time on a rank than on the others of its role; than on all others if it is alone in it."""
    ranks = np.array(graph.ranks)
    alike = slow.roles == slow.roles[graph.ranks.index(rank)]
    peers = ranks[(alike if alike.sum() > 1 else True) & (ranks != rank)]
    return tuple(straggler.rank_differences(graph, chains.own, rank, peers))


def _table(
    graph: DependencyGraph, slow: SlowRanks, by_cause: Array, best: Array, works: list[straggler.SlowWork]
) -> pd.DataFrame:
    explained = by_cause[:, 1:].sum(axis=1)
    guess = np.zeros(len(explained), np.bool_)
    if explained.any():
        guess[explained.argmax()] = True
    columns = straggler.waits_by_rank(graph, by_cause, slow) | {
        "explained_us": explained / 1000,
        "first_guess": guess,
        "lateness_us": _lateness(graph, graph.waits),
        "cause": pd.array([CAUSES[cause] for cause in best.tolist()], dtype="str"),
        "cause_name": pd.array([work.name for work in works], dtype="str"),
        "cause_us": np.where(best > 0, by_cause[np.arange(len(best)), best], 0) / 1000,
        "slower_percent": np.array([100 * work.slower for work in works], np.float64),
    }
    return pd.DataFrame({name: columns[name] for name in TABLE.types if name in columns})


def _lateness(graph: DependencyGraph, waits: Waits) -> npt.NDArray[np.float64]:
    """Return for each rank how much later it arrives than the median of the others, mean over collectives, µs."""
    known = waits.collective >= 0
    table = pd.DataFrame({"rank": waits.rank[known], "arrival": (waits.arrival[known] - graph.origin_ns) / 1000})
    table["late"] = table["arrival"] - others_median(table["arrival"].to_numpy(), waits.collective[known])
    mean = table.groupby("rank")["late"].mean()
    return mean.reindex(list(graph.ranks)).to_numpy(np.float64)


_WORK = {
    "kernels": "kernels", "host": "host work", "data_loading": "data loading",
    "collective": "communication that no other rank shares", "launch": "launch latency", "sync": "blocking calls",
    "network": "transfers", "other_work": "waits of launched work, probably for work that was not recorded",
    "outside": "waits for something that was not recorded",
}  # fmt: skip


class _Compared(NamedTuple):
    """How the ranks of a job are compared."""

    steps: int
    """The steps that are compared."""
    is_like_work: bool
    """Whether stages of one pipeline are compared, by the work that all stages do."""
    has_unsure_clocks: bool
    """Whether the clocks of ranks that wait may disagree by more than the waits."""


def _evidence(row: dict[Any, Any], work: straggler.SlowWork, compared: _Compared) -> str:
    """Return how much longer the rank's steps take, in what, and how long others wait for it, as part of a sentence."""
    if not row["blamed_us"] and not row["slow"]:
        return "no rank waited for it"
    cost = f"the other ranks wait {time_text(row['blamed_us'])} for it in total"
    often = f"{row['late_count']} collective{'s' if row['late_count'] > 1 else ''}"
    if row["late_count"] and row["blamed_us"] < LIMITS.nearly_all * row["last_us"]:
        cost = f"the other ranks wait {time_text(row['blamed_us'])} for its own work, and {time_text(row['last_us'])} "
        cost += f"in {often} where it arrives last"
    elif row["late_count"]:
        cost += f", and it arrives last in {often}"
    own = f"{_of_steps(row, compared)}{_of_work(row, work) if row['slow'] else ''}"
    doubt = " (by clocks whose agreement is unknown)" if compared.has_unsure_clocks else ""
    return f"{own}; {cost}{doubt}" if row["blamed_us"] else own


def _of_steps(row: dict[Any, Any], compared: _Compared) -> str:
    """Return how the rank's own time in a step compares with its peers'."""
    excess = row["step_excess_us"]
    if np.isnan(excess):
        return "its steps cannot be compared with those of another rank"
    what = "work that all stages do" if compared.is_like_work else "its step"
    alone = f"by itself, without waiting for others, {what} takes"
    steps = compared.steps
    if row.get("group_us"):
        return f"{alone} {time_text(row['group_us'])} more than that of the faster ranks"
    if 0 < row["slow_steps"] < steps:  # what a rank does behind a step's last collective delays the next step
        longer = f"{time_text(row['slow_excess_us'])} longer than its peers"
        until = f"up to the last collective of {row['slow_steps']} of {steps} steps"
        return f"by itself, without waiting for others, it takes {longer} {until}"
    if excess <= 0 or not row["slow"]:  # its size would be read as what the rank costs
        return "nothing shows, beyond chance, that its own work takes longer than its peers'"
    peers, longer = row["own_step_us"] - excess, row["slow_excess_us"]
    ratio = _times(1 + longer / peers) if peers > 0 else "longer than its peers'"
    return f"{alone} {ratio} ({time_text(longer)} more)"


def _of_work(row: dict[Any, Any], work: straggler.SlowWork) -> str:
    """Return what work makes it late, and how that compares with the peers' where the comparison agrees."""
    if row["cause"] == "none":
        return ""
    kind, name = _WORK[row["cause"]], f"{work.name}, which no other rank does there" if work.alone else work.name
    longer = row["cause"] in straggler.COMPARED and round(100 * work.slower) > 0 if not np.isnan(work.slower) else False
    if not longer:
        return f", mostly in its {kind}" + (f" ({name})" if name else "")
    if work.named:
        itself = " itself (without what it calls)" if row["cause"] == "host" else ""  # self times are compared there
        return f", mostly in its {kind}: {work.name}{itself} takes {_times(1 + work.slower)}"
    verb = "take" if row["cause"] == "kernels" else "takes"
    where = f", most of it in {name}" if name else ""
    return f"; its {kind} {verb} {_times(1 + work.slower)}{where}"


def _times(ratio: float) -> str:
    """Return in words how long something takes, compared with the peers."""
    percent = round(100 * (ratio - 1), 1 if abs(ratio - 1) < 0.1 else None)
    if percent == 0:
        return "as long as its peers'"
    if ratio >= 2:
        return f"{ratio:.1f} times as long as its peers'"
    return f"{abs(percent):g} % {'longer' if percent > 0 else 'less'} than its peers'"


def _blame_table(graph: DependencyGraph, waits: Waits, chains: Chains, blame: Blame) -> pd.DataFrame:
    acts, row = graph.activities, blame.row
    activity = straggler.largest_upstream(chains, blame)
    ops = () if graph.matches is None else graph.matches.op
    return pd.DataFrame({
        "collective": waits.collective[row],
        "op": pd.array([ops[i] for i in waits.collective[row].tolist()], dtype="str"),
        "waiting_rank": waits.rank[row],
        "last_rank": acts.rank[waits.late[row]].astype(np.int64),
        "charged_rank": blame.rank,
        "wait_us": blame.charged / 1000,
        "cause": pd.array([CAUSES[cause] for cause in blame.cause.tolist()], dtype="str"),
        "activity": activity,
        "name": names_of(graph, activity),
        "collectives_back": blame.depth,
    })  # fmt: skip
