"""Results → claims: what a report concludes, made and checked in one place; `claim_sentences` puts them into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import COMMUNICATION
from htagraph.core.naming import is_graph_launch, names_that
from htagraph.output.stage_claims import stage_claims
from htagraph.output.warm_up_claims import (
    cut_short_claims,
    device_missing_claims,
    start_up_claims,
    uneven_claims,
    with_start_up,
)
from htagraph.queries.absent_members import lacks_members, ranks_not_read
from htagraph.queries.blocking_calls import longest_blocking
from htagraph.queries.bound import Bound, bound_of
from htagraph.queries.claim import Claim, RestsOn, Says, contradictions
from htagraph.queries.host_pauses import host_pauses
from htagraph.queries.late_launches import LONG_PAUSE_NS, late_reason
from htagraph.queries.whole_steps import whole_steps
from htagraph.whatif.candidates import CLASSES
from htagraph.whatif.change_options import criteria, criteria_text
from htagraph.whatif.link_sharing import shares_links
from htagraph.whatif.opportunities import opportunities
from htagraph.whatif.what_if import what_if

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.stragglers import Stragglers
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath
    from htagraph.whatif.outcome import Outcome

__all__ = ["bound_claims", "claims_of", "consistent", "doubts_of", "gain_claims", "not_read_claims", "path_claims"]

_Tables: TypeAlias = "Mapping[str, pd.DataFrame]"
_MAX_GAINS = 4
"""Opportunities that are named; chosen: they fit on three lines. Doubled, up to eight are."""
_TRIED_GAINS = 10
"""Opportunities of which the critical path names the best; chosen: some only wrap others. Doubled, twice as many
replays run, and the same are named."""
_MAX_PAUSES = 3
"""Host pauses that are named; chosen: they fit on two lines. Doubled, up to six are."""
_MIN_PERCENT = 2.0
"""Percent of the path or of the makespan; chosen: less is not worth naming. Doubled, 2 to 4 % are not named."""
_LARGE_PERCENT = 20.0
"""Percent of the path from which a pause of the host is named though something else bounds the job. Chosen: it is
worth knowing then. Doubled, pauses of a fifth to two fifths of the path are left to `htagraph critical-path`."""
_MIN_SHARE = 0.05
"""Share of the window; chosen: less is not worth a sentence. Doubled, 5 to 10 % of waiting is not named."""
_MAX_WRAPPED = 0.6
"""Share of the makespan; what gains more and contains other rows only wraps the job, such as an annotation around a
step. Chosen. Doubled, they are named before what they contain."""
_INNER_SHARE = 0.9
"""Share of a gain from which something inside it is named in its place. Chosen: then it is nearly all of it; of less,
the rest is lost to who reads only the inner name. It cannot be doubled; at 1, an operator hides the kernel that it
is."""
_MAX_COVERED_SHARE = 0.8
"""Share of the recorded time; below it, shares of device time are said to leave out the rest. Chosen. Doubled,
always."""
_MIN_LAUNCHES = 100
"""Launch calls; chosen: the share of fewer is chance. Doubled, jobs of 100 to 200 calls get no sentence on launches."""
_MOST = 0.5
"""Share of kernels and copies; above it, CUDA graphs are no advice, since they are used. And share of communication;
above it, what looks like transfer is said to be one or waiting. It cannot be doubled."""


def claims_of(
    graph: DependencyGraph, path: CriticalPath, tables: _Tables, inputs: pd.DataFrame, slow: Stragglers
) -> list[Claim]:
    """Return what a summary concludes, without what contradicts what bounds the job.

    Args:
        graph: the job.
        path: its critical path.
        tables: results by name: ``temporal_breakdown``, ``rank_idle``, ``launches`` and ``opportunities``.
        inputs: what was read, as in the summary; of it ``rank``, ``span_us`` and ``world_size``.
        slow: result of `stragglers`.
    """
    temporal = tables["temporal_breakdown"]
    busy = temporal[temporal["window_us"] > 0]
    if not len(busy):
        return [Claim(Says.NOTHING_RECORDED, "", 0.0, "count")]
    bound = bound_of(path)
    doubts, started = doubts_of(graph), start_up_claims(path)
    on_device = _device(busy, tables, inputs, bound, path)
    return consistent([
        *bound_claims(path, bound, doubts),
        *started,
        *with_start_up(graph, gain_claims(graph, tables["opportunities"], bound=bound, doubts=doubts), started),
        *_blocking(graph),
        *stage_claims(graph, slow),
        *_waiting(slow, float(busy["window_us"].sum()), doubts),
        *on_device,
        *cut_short_claims(graph),
        *device_missing_claims(graph),
        *uneven_claims(graph),
        *doubts.values(),
        *not_read_claims(inputs),
    ])  # fmt: skip


def path_claims(path: CriticalPath) -> list[Claim]:
    """Return what bounds the window of a critical path, and what gains most for the whole job."""
    graph = path.graph
    bound, doubts = bound_of(path), doubts_of(graph)
    gains = gain_claims(graph, opportunities(graph, top=_TRIED_GAINS), bound=bound, doubts=doubts)
    started = start_up_claims(path)
    return consistent([*bound_claims(path, bound, doubts), *started, *with_start_up(graph, gains, started)])


def consistent(claims: Sequence[Claim]) -> list[Claim]:
    """Return claims in order, each only if it contradicts none before it."""
    kept: list[Claim] = []
    for claim in claims:
        if not contradictions([*kept, claim]):
            kept.append(claim)
    return kept


def doubts_of(graph: DependencyGraph) -> dict[RestsOn, Claim]:
    """Return what makes comparisons between ranks uncertain: unknown clocks, communication without a partner."""
    acts = graph.activities
    talks = of_kinds(acts.kind, COMMUNICATION)
    if len(graph.ranks) < 2 or not talks.any():
        return {}
    doubts = {}
    unknown = sorted(clock.rank for clock in graph.clocks if clock.uncertainty_ns < 0)
    if unknown:
        text = ", ".join(map(str, unknown))
        doubts[RestsOn.CLOCKS] = Claim(
            Says.UNKNOWN_CLOCKS, text, len(unknown), "count", facts={"ranks": unknown, "total": len(graph.ranks)}
        )  # fmt: skip
    members = np.zeros(len(acts), np.bool_)
    if graph.matches is not None:
        members[graph.matches.activity] = True
    alone = talks & ~members
    if alone.sum() > (1 - _MIN_MATCHED) * talks.sum():
        rows = tuple(np.flatnonzero(alone)[:_MAX_PAUSES].tolist())
        count, total = int(alone.sum()), int(talks.sum())
        doubts[RestsOn.MATCHES] = Claim(Says.UNMATCHED, "", count, "count", rows=rows, facts={"total": total})
    return doubts


_MIN_MATCHED = 0.99
"""Share of communication calls with partners; chosen: a few are always cut off by the ends of a recording. Doubled, a
report never says that partners are missing."""


def bound_claims(path: CriticalPath, bound: Bound, doubts: Mapping[RestsOn, Claim]) -> list[Claim]:
    """Return what bounds the window of a path, the host's longest pauses on it, and how much of it is unexplained."""
    if not bound.cause:
        return []
    rests = {RestsOn.CLOCKS} if len(bound.ranks) > 1 else set()
    rests |= {RestsOn.MATCHES} if bound.shares.get("communication", 0.0) >= _MIN_PERCENT else set()
    facts = {
        "shares": bound.shares, "ranks": bound.ranks, "by_workers": bound.by_workers, "batches": bound.batches,
        "unexplained_percent": bound.unexplained_percent, "several": len(path.graph.ranks) > 1,
        "absent": _absent(path.graph),
    }  # fmt: skip
    claims = [
        Claim(
            Says.BOUND, bound.cause, bound.causes[bound.cause], "percent", rests_on=frozenset(rests & doubts.keys()),
            facts=facts,
        )
    ]  # fmt: skip
    claims += _pauses(path, is_bound=bound.cause == "host")
    if bound.unexplained_percent >= 100 * _MIN_SHARE:
        kinds = {"mostly": next(iter(bound.unexplained), ""), "is_bound": bound.cause == "gap"}
        claims.append(Claim(Says.UNEXPLAINED, "path", bound.unexplained_percent, "percent", facts=kinds))
    return claims


def _absent(graph: DependencyGraph) -> str:
    """Return what the ranks were not that most communication may have waited for, "recorded" or "matched"; else ""."""
    lacks = lacks_members(graph)[of_kinds(graph.activities.kind, COMMUNICATION)]
    if not len(lacks) or float(lacks.mean()) <= _MOST:
        return ""
    return "recorded" if ranks_not_read(graph) else "matched"


def _pauses(path: CriticalPath, *, is_bound: bool) -> list[Claim]:
    """Return what the host does longest on the path; in a job that it does not bound, only what is long and much."""
    percent, longest_us = (_MIN_PERCENT, 0.0) if is_bound else (_LARGE_PERCENT, LONG_PAUSE_NS / 1000)
    table = host_pauses(path, _MAX_PAUSES)
    return [
        Claim(
            Says.HOST_PAUSE, str(row["what"]), float(row["share_percent"]), "percent", rows=(int(row["activity"]),),
            facts={key: row[key] for key in ("inside", "before", "after", "rank", "count", "total_us", "longest_us")},
        )
        for row in table.to_dict("records")
        if row["share_percent"] >= percent and row["longest_us"] >= longest_us
    ]  # fmt: skip


def gain_claims(
    graph: DependencyGraph,
    table: pd.DataFrame,
    *,
    bound: Bound,
    doubts: Mapping[RestsOn, Claim] | None = None,
) -> list[Claim]:
    """Return what gains most, each replayed once more through `what_if`; without what only wraps the job.

    Args:
        graph: the job.
        table: result of `htagraph.opportunities`.
        bound: what bounds the job.
        doubts: result of `doubts_of`.
    """
    claims: list[Claim] = []
    for row in _worth_naming(table):
        is_loader = row["name"] == "data loading"
        if bound.by_workers and not is_loader:
            continue
        rests = {RestsOn.CLOCKS, RestsOn.MATCHES} if row["what"] in ("straggler", "group") else set()
        claim = _replayed(graph, row, frozenset(rests & (doubts or {}).keys()), loader=is_loader)
        claims += [claim] if claim else []
        if len(claims) == _MAX_GAINS:
            break
    return claims


def _worth_naming(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows that say what to change: no class of work, nothing around the whole job, the inner of two."""
    rows = table[table["gain_percent"] >= _MIN_PERCENT].to_dict("records")
    rows = [row for row in rows if row["what"] != "rank"]  # nobody can make all work of a rank take no time
    several = [row for row in rows if row["name"] not in CLASSES]
    around = {row["inside"] for row in rows}
    small = [row for row in several if row["name"] not in around or row["gain_percent"] <= 100 * _MAX_WRAPPED]
    rows = small or several or rows
    inner: dict[str, float] = {}
    for row in rows:
        inner[row["inside"]] = max(inner.get(row["inside"], 0.0), row["gain_us"])
    return [row for row in rows if inner.get(row["name"], 0.0) < _INNER_SHARE * row["gain_us"]]


def _replayed(
    graph: DependencyGraph, row: Mapping[Any, Any], rests_on: frozenset[RestsOn], *, loader: bool
) -> Claim | None:
    """Return the claim of a row if a what-if of its target gains the same; without a target, as the row says it."""
    gain, makespan = float(row["gain_us"]), 100 * float(row["gain_us"]) / float(row["gain_percent"])
    interval = None
    if row["target"] or row["what"] == "straggler":
        scenario = what_if(graph)
        scenario = scenario.scale(factor=0.0, **criteria(row["target"])) if row["target"] else scenario.fix_straggler()
        outcome = scenario.run()
        if abs(outcome.saved_ns - 1000 * gain) > 1:
            return None
        interval = _range_us(outcome)
    facts = {
        "what": row["what"], "target": row["target"], "note": row["note"], "percent": float(row["gain_percent"]),
        "half_us": float(row.get("gain_at_50_us", 0.0)), "makespan_us": makespan, "loader": loader,
        "steps": whole_steps(graph), "shared": shares_links(graph),
    }  # fmt: skip
    return Claim(Says.GAIN, str(row["name"]), gain, "us", interval=interval, rests_on=rests_on, facts=facts)


def _range_us(outcome: Outcome) -> tuple[float, float]:
    """Return between what and what a change saves in the recorded run, µs."""
    low, high = outcome.saved_range_ns
    return low / 1000, high / 1000


def _blocking(graph: DependencyGraph) -> list[Claim]:
    """Return where the host waits longest for its device, if the job would be shorter without these waits."""
    place = longest_blocking(graph)
    makespan = int(graph.time.max()) - graph.origin_ns if len(graph.time) else 0
    if place is None or place.blocked_ns < _MIN_SHARE * makespan:
        return []
    outcome = what_if(graph).remove_sync(**place.criteria).run()
    if outcome.saved_ns < _MIN_SHARE * makespan:
        return []
    gain = outcome.saved_ns / 1000
    facts = {
        "count": place.count, "blocked_us": place.blocked_ns / 1000, "percent": 100 * outcome.saved_ns / makespan,
        "target": criteria_text(place.criteria), "steps": whole_steps(graph), "several": len(graph.ranks) > 1,
    }  # fmt: skip
    return [Claim(Says.BLOCKING, place.name, gain, "us", interval=_range_us(outcome), facts=facts)]


def _waiting(slow: Stragglers, window_us: float, doubts: Mapping[RestsOn, Claim]) -> list[Claim]:
    """Return who makes others wait; nothing where the clocks of ranks are unknown."""
    ranks, total = slow.to_frame(), slow.total_wait_us
    if len(ranks) < 2 or total < _MIN_SHARE * window_us or RestsOn.CLOCKS in doubts:
        return []
    rests_on = frozenset(doubts.keys())
    if slow.straggler is None:
        cost = ranks["slow_excess_us"] * ranks["slow_steps"] * (len(ranks) - 1)  # to the others, if all wait for it
        slower = ranks.loc[ranks["slow"] & (cost >= _MIN_SHARE * total), "rank"].tolist()
        most = ranks.iloc[int(ranks["blamed_us"].to_numpy().argmax())]
        known = {"charged": slow.mostly_charged, "few_steps": slow.few_steps, "steps": slow.steps}
        known["compared"] = bool(np.isfinite(most["step_excess_us"]))
        known |= {"serves": slow.serves, "does": next((e.name for e in slow.differences if not e.peers_count), "")}
        about = str(slower[0]) if slower else ""
        return [Claim(Says.WAITING, about, total, "us", rests_on=rests_on, facts=known)]
    row = ranks[ranks["rank"] == slow.straggler].iloc[0]
    facts = {"total_us": total, "cause": str(row["cause"]), "cause_name": str(row["cause_name"])}
    share = float(row["share_percent"])
    return [Claim(Says.STRAGGLER, str(slow.straggler), share, "percent", rests_on=rests_on, facts=facts)]


def _device(busy: pd.DataFrame, tables: _Tables, inputs: pd.DataFrame, bound: Bound, path: CriticalPath) -> list[Claim]:
    """Return why devices are idle, whether launches are too long, and what part of the recording that is."""
    on_device = busy[busy["executor"] == "device"]
    window = float(on_device["window_us"].sum())
    if not window:
        return []
    claims = _idle(tables["rank_idle"], window, len(busy), path.graph)
    if any(claim.facts["host"] == "launches" for claim in claims):
        claims += _launching(tables["launches"], bound)
    span = float(inputs.loc[inputs["rank"].isin(on_device["rank"]), "span_us"].sum())
    if claims and window < _MAX_COVERED_SHARE * span:
        claims.append(Claim(Says.PARTLY_DEVICE, "", 100 * window / span, "percent"))
    return claims


def _idle(rank_idle: pd.DataFrame, window: float, ranks: int, graph: DependencyGraph) -> list[Claim]:
    idle = rank_idle.groupby("cause")["idle_us"].sum().sort_values(ascending=False)
    claims = []
    for cause, us in idle.items():
        if us < _MIN_SHARE * window:
            continue
        worst = rank_idle[rank_idle["cause"] == cause].sort_values("share_percent").iloc[-1]
        why = _host_reason(graph, int(worst["rank"])) if cause == "host_wait" else ""
        share = float(worst["share_percent"])
        facts = {"rank": int(worst["rank"]), "rank_percent": share, "several": ranks > 1, "host": why}
        claims.append(Claim(Says.DEVICE_IDLE, str(cause), 100 * us / window, "percent", facts=facts))
    return claims


def _host_reason(graph: DependencyGraph, rank: int) -> str:
    """Return why the host of a rank launches too late: one of `LATE_REASONS`, or ``"graphs"`` for many CUDA graphs."""
    reason = late_reason(graph, rank)
    return "graphs" if reason in ("launches", "few", "") and _in_graphs(graph) else reason or "launches"


def _in_graphs(graph: DependencyGraph) -> bool:
    """Return whether most kernels and copies were launched as parts of CUDA graphs."""
    acts = graph.activities
    cause = acts.cause[acts.on_device & (acts.cause >= 0)]
    in_graph = names_that(is_graph_launch, graph.names)[acts.name[cause]]
    return bool(len(cause)) and float(in_graph.mean()) > _MOST


def _launching(launches: pd.DataFrame, bound: Bound) -> list[Claim]:
    """Return whether most launches take longer than their work, where devices wait for launches and these are many."""
    total, short = int(launches["launches"].sum()), int(launches["short"].sum())
    if bound.cause != "host" or total < _MIN_LAUNCHES or short < total / 2:
        return []
    return [Claim(Says.SHORT_LAUNCHES, "", 100 * short / total, "percent", facts={"total": total})]


def not_read_claims(inputs: pd.DataFrame) -> list[Claim]:
    """Return whether some of the job's ranks were not read.

    Args:
        inputs: what was read, as in the summary; of it ``rank`` and ``world_size``.
    """
    size = int(inputs["world_size"].max()) if len(inputs) else 0
    missing = sorted(set(range(size)) - set(inputs["rank"].tolist()))
    if not missing or len(inputs) >= size:
        return []
    rests_on = frozenset({RestsOn.OTHER_RANKS})
    if len(inputs) == 1:
        return [Claim(Says.ONE_RANK, str(inputs["rank"].iloc[0]), size, "count", rests_on=rests_on)]
    facts = {"read": len(inputs), "missing": missing}
    return [Claim(Says.RANKS_MISSING, "", size, "count", rests_on=rests_on, facts=facts)]
