"""Results → claims: what a report concludes, made and checked in one place; `claim_sentences` puts them into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.findings.claim import Claim, RestsOn, Says, contradictions
from htagraph.findings.conclusions.device_claims import device_claims
from htagraph.findings.conclusions.interruption_claims import interruption_claims
from htagraph.findings.conclusions.recording_claims import recording_claims
from htagraph.findings.conclusions.stage_claims import stage_claims
from htagraph.findings.conclusions.warm_up_claims import (
    cut_short_claims,
    device_missing_claims,
    start_up_claims,
    uneven_claims,
    with_start_up,
)
from htagraph.graph.measures.steps import whole_steps
from htagraph.graph.measures.waits import lacks_members, ranks_not_read
from htagraph.queries.blocking_calls import longest_blocking
from htagraph.queries.host_time import host_pauses
from htagraph.queries.interruptions import LONG_NS
from htagraph.queries.path_segments import Bound, bound_of
from htagraph.whatif.candidates import CLASSES, INTERRUPTIONS
from htagraph.whatif.links import shares_links
from htagraph.whatif.opportunities import opportunities
from htagraph.whatif.options import criteria, criteria_text
from htagraph.whatif.scenario import what_if

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.stragglers import Stragglers
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath
    from htagraph.whatif.outcome import Outcome

__all__ = [
    "bound_claims",
    "claims_of",
    "consistent",
    "doubts_of",
    "gain_claims",
    "is_interrupted",
    "not_read_claims",
    "path_claims",
]

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
_MOST = 0.5
"""Share of communication; above it, what looks like transfer is said to be one or waiting. It cannot be doubled."""


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
    above, table = bound_claims(path, bound, doubts), tables["opportunities"]
    gains = gain_claims(graph, table, bound=bound, doubts=doubts, interrupted=is_interrupted(above))
    return consistent([
        *above,
        *started,
        *with_start_up(graph, gains, started),
        *_blocking(graph),
        *stage_claims(graph, slow),
        *_waiting(slow, float(busy["window_us"].sum()), doubts),
        *device_claims(busy, tables, inputs, bound, graph),
        *recording_claims(graph, bound),
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
    above, table = bound_claims(path, bound, doubts), opportunities(graph, top=_TRIED_GAINS)
    gains = gain_claims(graph, table, bound=bound, doubts=doubts, interrupted=is_interrupted(above))
    started = start_up_claims(path)
    return consistent([*above, *started, *with_start_up(graph, gains, started)])


def is_interrupted(claims: Sequence[Claim]) -> bool:
    """Return whether one of some claims says that host code is interrupted."""
    return any(claim.says is Says.INTERRUPTED for claim in claims)


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
        "absent": _absent(path.graph), "without_rank_percent": _without_rank(path.graph, bound),
    }  # fmt: skip
    claims = [
        Claim(
            Says.BOUND, bound.cause, bound.causes[bound.cause], "percent", rests_on=frozenset(rests & doubts.keys()),
            facts=facts,
        )
    ]  # fmt: skip
    stopped = interruption_claims(path.graph)
    claims += stopped
    outside = frozenset().union(*(claim.facts["activities"] for claim in stopped))
    claims += [
        claim
        for claim in _pauses(path, is_bound=bound.cause == "host")
        if claim.rows[0] not in outside  # the longest of them is no doing of what is named there
    ]
    if bound.unexplained_percent >= 100 * _MIN_SHARE:
        kinds = {"mostly": next(iter(bound.unexplained), ""), "is_bound": bound.cause == "gap"}
        claims.append(Claim(Says.UNEXPLAINED, "path", bound.unexplained_percent, "percent", facts=kinds))
    return claims


def _without_rank(graph: DependencyGraph, bound: Bound) -> float:
    """Return how much shorter the job is without all work of the rank with most of the path, percent; 0 for one rank.

    Where it is little, the other ranks are nearly as late.
    """
    if len(graph.ranks) < 2 or not bound.ranks:
        return 0.0
    rank = next(iter(bound.ranks))
    scenario = what_if(graph).scale(factor=0.0, rank=rank)
    with suppress(SelectionError):  # it waits for no loader
        scenario = scenario.free_dataloader(rank=rank)
    outcome = scenario.run()
    return 100 * outcome.saved_ns / max(outcome.baseline_ns, 1)


def _absent(graph: DependencyGraph) -> str:
    """Return what the ranks were not that most communication may have waited for, "recorded" or "matched"; else ""."""
    lacks = lacks_members(graph)[of_kinds(graph.activities.kind, COMMUNICATION)]
    if not len(lacks) or float(lacks.mean()) <= _MOST:
        return ""
    return "recorded" if ranks_not_read(graph) else "matched"


def _pauses(path: CriticalPath, *, is_bound: bool) -> list[Claim]:
    """Return what the host does longest on the path; in a job that it does not bound, only what is long and much."""
    percent, longest_us = (_MIN_PERCENT, 0.0) if is_bound else (_LARGE_PERCENT, LONG_NS / 1000)
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
    interrupted: bool = False,
) -> list[Claim]:
    """Return what gains most, each replayed once more through `what_if`; without what only wraps the job.

    Args:
        graph: the job.
        table: result of `htagraph.opportunities`.
        bound: what bounds the job.
        doubts: result of `doubts_of`.
        interrupted: whether a claim says that host code is interrupted, so that gains contain interruptions.
    """
    claims: list[Claim] = []
    host = table[(table["name"] == CLASSES[0]) & (bound.cause == "host")]
    ceiling = (float(host["gain_us"].iloc[0]), float(host["gain_percent"].iloc[0])) if len(host) else None
    for row in _worth_naming(table):
        is_loader = row["name"] == "data loading"
        if bound.by_workers and not is_loader:
            continue
        rests = {RestsOn.CLOCKS, RestsOn.MATCHES} if row["what"] in ("straggler", "group") else set()
        claim = _replayed(graph, row, frozenset(rests & (doubts or {}).keys()), loader=is_loader)
        if claim:
            more = {"ceiling": None if claim.about in CLASSES else ceiling, "interrupted": interrupted}
            claims.append(replace(claim, facts={**claim.facts, **more}))
        if len(claims) == _MAX_GAINS:
            break
    return claims


def _worth_naming(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows that say what to change: no class of work, nothing around the whole job, the inner of two."""
    rows = table[table["gain_percent"] >= _MIN_PERCENT].to_dict("records")
    rows = [row for row in rows if row["what"] != "rank"]  # nobody can make all work of a rank take no time
    rows = [row for row in rows if row["name"] != INTERRUPTIONS]  # a claim of their own
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
