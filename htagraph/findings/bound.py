"""The cause that has most of the critical path, and the rank on which most of the path lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd

from htagraph.core.arrays import texts_of
from htagraph.core.intervals import intersection, union
from htagraph.core.intervals import length as length_of
from htagraph.core.kernels import is_tuned_kernel
from htagraph.core.kinds import COMMUNICATION, Category, GapKind, of_kinds
from htagraph.core.naming import is_whole_graph, short_name, stable_name, step_number
from htagraph.core.statistics import MOST
from htagraph.findings.bound_words import (
    LOADER_ADVICE,
    bound_advice,
    bound_reason,
    bound_sentence,
    bound_text,
    bound_verb,
    categories_of,
    is_mostly_unrecorded,
    loader_advice,
)
from htagraph.findings.ceilings import RankAlone, alone_of, overlap_us
from htagraph.findings.change import Gain, PredictedChange, gain_of, scenario_of
from htagraph.findings.finding import (
    PREDICTS,
    BarPart,
    Chart,
    Claim,
    Evidence,
    Finding,
    Place,
    RestsOn,
    Rows,
    in_short,
    stretches,
)
from htagraph.findings.limits import LARGE_SHARE, MIN_PERCENT, MOST_ROWS, ROUNDING
from htagraph.findings.phrases import CATEGORY_WORDS, NO_OPERATOR, share_text
from htagraph.findings.preconditions import HAS_ROOFS, checks_of
from htagraph.findings.results import FREE, Results
from htagraph.findings.unmatched import doubts_of
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.waits import lacks_members, ranks_not_read
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.attribution import operator_of
from htagraph.queries.fetches import outside_waits
from htagraph.queries.path_segments import CATEGORIES, Batches
from htagraph.queries.paths import CriticalPath
from htagraph.queries.silent_regions import SilentRegion, silent_region

__all__ = [
    "BOUND",
    "LOADER_ADVICE",
    "BoundClaim",
    "KernelShare",
    "LateStart",
    "absent_ranks",
    "bound_text",
    "bound_verb",
    "is_unrecorded",
    "loader_advice",
    "source_of",
    "untraced_host",
]

_GONE = {
    "data_loading": "a loader that the job never waits for",
    "outside": "a source that the job never waits for",
    "communication": "a network that takes no time",
    "other_work": "a device without other work",
}
"""A job without a cause that can be gone altogether; all else takes some time in any case."""
_CEILINGS = ("communication",)
"""Causes that never go away altogether: sending less or overlapping more gains at most the whole."""
Absent: TypeAlias = Literal["recorded", "matched", ""]
"""Whether most communication may have waited for ranks that were not recorded, or not matched; empty for neither."""


class LateStart(NamedTuple):
    """The path waits until a recording begins."""

    rank: int
    """The rank whose recording begins late."""
    us: float
    """How late it begins, µs."""
    percent: float
    """Percent of the usual path."""


class KernelShare(NamedTuple):
    """A kernel with its share of the critical path."""

    name: str
    percent: float
    is_tuned: bool = False
    """Whether it is a vendor's, in low precision already."""
    is_graph: bool = False
    """Whether it is a whole CUDA graph, and no kernel."""
    variants: int = 1
    """Kernels that share the name: instances of one template, which are together."""


@dataclass(frozen=True, kw_only=True)
class BoundClaim(Claim):
    """A cause bounds the job; the figure is its share of the critical path, percent."""

    about: Category = field(kw_only=False)
    """The cause."""
    shares: Mapping[str, float]
    """Percent of the path by category, the largest first."""
    rank_shares: Mapping[int, float]
    """Percent of the path by rank, the largest first."""
    batches: Batches
    """The batches of a loader with workers."""
    by_workers: bool = False
    """Whether the worker processes of a data loader set the pace."""
    has_several_ranks: bool = False
    """Whether the job has several ranks."""
    usual: tuple[int, ...] = ()
    """The usual steps that the claim is about; empty for the whole recording."""
    is_started: bool = False
    """Whether the path has start-up, which the claim is not about."""
    unrecorded_percent: float = 0.0
    """Percent of the path that is host time without any event."""
    silent: SilentRegion | None = None
    """The region with most of the path in which nothing was recorded; None where that is little."""
    absent: Absent = ""
    """Whether most communication may have waited for ranks that were not recorded, or not matched."""
    source: str = ""
    """The region in which the job waits for a process that was not recorded and is no data loader; empty for none."""
    alone: RankAlone | None = None
    """The rank that gains most alone; None where that is not known."""
    late: LateStart | None = None
    """The recording that begins late on the path; None for none."""
    largest: str | None = None
    """The largest part of a job of nothing but host code, in words; None for every other job."""
    leaders: tuple[str, ...] = ()
    """The cause, and the causes with nearly the same share; empty or one where a single cause leads."""
    is_on_cpu: bool = False
    """Whether the time of the host is mostly that of operators which compute, as the job uses no device."""
    free_ns: Mapping[str, int] = field(default_factory=dict)
    """How much shorter the job is without a cause, ns, by cause; empty where the gain of the claim is not known."""
    first_kernel: KernelShare | None = None
    """The kernel with most of the path, where computation bounds the job."""
    has_roofs: bool = True
    """Whether a roofline of the job has an answer."""
    overlap_us: float | None = None
    """The most that more overlap of transfers gains, µs: the work of ranks that transfers may run beside; None where
    transfers do not bound the job."""


def _when(results: Results) -> list[BoundClaim]:
    bound = results.bound
    graph = results.graph
    length = results.parts.length
    if not bound.cause or (bound.cause == "host" and Part.HOST in graph.ledger.lacks):
        return []
    untraced, communicates = untraced_host(results)
    if communicates > MOST * length.sum():  # the host may wait for it: what bounds the job was not recorded
        return []
    claim = _claimed(results, untraced)
    if bound.cause == "host" and bound.is_on_cpu:
        claim = replace(claim, largest=_largest_operator(results))
    elif bound.cause == "host" and results.free.get("host", 0) >= (1 - MIN_PERCENT / 100) * results.makespan_ns:
        claim = replace(claim, largest=_largest_part(results))
        if results.usual and not claim.largest:  # that a host takes all of its time is no news
            return []
    return [_with_gain(results, claim)]


def _claimed(results: Results, untraced: int) -> BoundClaim:
    """Return the claim without gains, given how much of the path is host time without any event, ns."""
    bound = results.bound
    graph = results.graph
    rests = {RestsOn.CLOCKS} if len(bound.ranks) > 1 else set()
    rests |= {RestsOn.MATCHES} if bound.shares.get("communication", 0.0) >= MIN_PERCENT else set()
    return BoundClaim(
        "bound",
        cast("Category", bound.cause),
        min(100.0, bound.causes.get(bound.cause, 0.0)),
        "percent",
        rests_on=doubts_of(results) & rests,
        ranks=tuple(bound.ranks),
        shares=bound.shares,
        rank_shares=bound.ranks,
        batches=bound.batches,
        by_workers=bound.by_workers,
        has_several_ranks=len(graph.ranks) > 1,
        usual=tuple(results.usual),
        is_started=bool(results.first_calls),
        unrecorded_percent=100 * float(untraced) / max(_steady_ns(results), 1),
        silent=_silent(results),
        absent=absent_ranks(graph),
        source=source_of(graph),
        alone=alone_of(results.warm_graph, bound),
        late=_head(results),
        leaders=bound.leaders,
        is_on_cpu=bound.is_on_cpu,
    )


def _with_gain(results: Results, claim: BoundClaim) -> BoundClaim:
    """Return a claim with the gain without its cause, and with the facts that advice on the cause needs."""
    bound = results.bound
    graph = results.graph
    steady_ns = results.path.makespan_ns - sum(results.first_calls.values())
    if results.free.get(bound.cause, steady_ns + 1) <= steady_ns:  # more hangs on start-up than the replay takes away
        claim = replace(claim, gain=_gain(results, bound.cause), free_ns=results.free)
    if bound.cause == "computation":
        has_roofs = checks_of([HAS_ROOFS], graph, np.zeros(0, np.int64)) is not None
        claim = replace(claim, first_kernel=_first_kernel(results), has_roofs=has_roofs)
    if bound.cause == "communication" and claim.gain:
        claim = replace(claim, overlap_us=overlap_us(results, claim.gain))
    return replace(claim, change=_change(claim))


def _first_kernel(results: Results) -> KernelShare | None:
    """Return the kernel with most of the path; None for none."""
    kernels = _largest(results, "computation")
    if kernels.first is None:
        return None
    row = kernels.frame.iloc[0]
    graph = results.warm_path.graph
    whole_name = graph.names[graph.activities.name[kernels.first.activity]]
    short = str(row["name"])
    return KernelShare(
        short,
        float(row["share_percent"]),
        is_tuned_kernel(whole_name),
        is_whole_graph(whole_name),
        _variants(results, short),
    )


def _variants(results: Results, short: str) -> int:
    """Return how many kernels of the path have a short name: instances of one template do."""
    graph = results.warm_path.graph
    is_computation = results.parts.category == CATEGORIES.index("computation")
    names = np.unique(graph.activities.name[results.parts.activity[is_computation]])
    return sum(short_name(graph.names[name]) == short for name in names.tolist())


def _largest_operator(results: Results) -> str:
    """Return the operator with most of the path, and its share, as a part of a sentence; empty for little or none."""
    rows = _largest(results, "host").frame
    named = rows[rows["name"] != NO_OPERATOR]
    if not len(named) or named["share_percent"].iloc[0] < MIN_PERCENT:
        return ""
    return f", {share_text(named['share_percent'].iloc[0])} in {in_short(str(named['name'].iloc[0]))}"


def _steady_ns(results: Results) -> int:
    """Return the length of the path without start-up, ns: of calls that start libraries, the usual time counts."""
    if results.usual:
        return int(results.parts.length.sum())
    if results.warm_path is not results.usual_path:
        return results.warm_path.makespan_ns - results.head_ns
    whole = results.path.makespan_ns - sum(results.first_calls.values()) - results.head_ns
    return max(whole, int(results.parts.length.sum()))


def _gain(results: Results, cause: str) -> Gain:
    """Return the gain of the job if a cause takes no time."""
    outcome = scenario_of(results.warm_graph, FREE[cause][1].split()).run()
    gain = gain_of(outcome, results.whole)
    value_us = results.free[cause] / 1000
    return replace(gain, value_us=value_us, low_us=min(gain.low_us, value_us), high_us=max(gain.high_us, value_us))


def _change(claim: BoundClaim) -> PredictedChange | None:
    """Return the change without a cause that can be gone altogether; None for all else, and where it is not known."""
    cause = claim.about
    gain = claim.gain
    if gain is None or gain.value_us <= 0 or cause not in _GONE or claim.absent:
        return None
    name = _GONE[cause]
    if cause in _CEILINGS:
        gain = replace(gain, low_us=0.0, high_us=gain.value_us)
    return PredictedChange(name, tuple(FREE[cause][1].split()), gain)


def _largest_part(results: Results) -> str:
    """Return which operator or function gains most in a job of nothing but host code, and its share of the path."""
    # time on the path is of the whole recording: of usual steps, what is gained is it, where that is so of all
    table = results.opportunities
    whole = not results.usual
    us = table["critical_us"] if whole else table["gain_per_step_us"] * max(results.steps, 1)
    all_gains = whole | (table["gain_us"] >= LIMITS.nearly_all * table["critical_us"])
    named = table["what"].isin(["operator", "function"]) & (table["gain_us"] > 0)
    length = results.path.makespan_ns if whole else results.makespan_ns
    own_us = us[named & all_gains & (100_000 * us >= MIN_PERCENT * length)]
    if not len(own_us) or results.first_calls:  # what the table says is of the whole recording
        return ""
    name = str(table["name"].loc[own_us.index].iloc[int(own_us.argmax())])
    return f", {share_text(100_000 * own_us.max() / length)} in {in_short(name)}"


def untraced_host(results: Results) -> tuple[int, int]:
    """Return how much of the path is host time without any event, and how much of that is beside communication, ns."""
    acts = results.graph.activities
    parts = results.parts
    chosen = parts.gap == GapKind.HOST_UNTRACED
    ranks = acts.rank[parts.place]
    meets = of_kinds(acts.kind, COMMUNICATION)
    beside = 0
    for rank in np.unique(ranks[chosen]).tolist():
        is_of_rank = chosen & (ranks == rank)
        rows = np.flatnonzero(meets & (acts.rank == rank))
        pauses = union(parts.start[is_of_rank], parts.start[is_of_rank] + parts.length[is_of_rank])
        time = results.warm_path.graph.time
        busy = union(time[2 * rows], time[2 * rows + 1])
        beside += length_of(intersection(pauses, busy))
    return int(parts.length[chosen].sum()), beside


def _head(results: Results) -> LateStart | None:
    """Return the recording that begins late on the path, with its rank; None for none."""
    parts = results.usual_path.segments
    late = np.flatnonzero(parts.category == CATEGORIES.index("head"))
    if not len(late) or (len(results.graph.ranks) == 1 and not results.head_ns):
        return None
    longest = late[parts.length[late].argmax()]
    length = float(parts.length[longest])
    rank = int(results.graph.activities.rank[parts.place[longest]])
    return LateStart(rank, length / 1000, float(100 * length / parts.length.sum()))


def _silent(results: Results) -> SilentRegion | None:
    """Return the region with most of the path in which nothing was recorded; None where that is little."""
    region = silent_region(results.usual_path.graph, results.parts)
    return region if region and region.percent >= 100 * LARGE_SHARE else None


def is_unrecorded(claim: Claim) -> bool:
    """Return whether the host bounds the job, but mostly in time without any event."""
    return isinstance(claim, BoundClaim) and is_mostly_unrecorded(claim)


def absent_ranks(graph: DependencyGraph) -> Absent:
    """Return whether most communication may have waited for ranks that were not recorded, or not matched.

    Example:
        >>> import htagraph as hg
        >>> absent_ranks(hg.load("data/demo"))
        ''
    """
    lacks = lacks_members(graph)[of_kinds(graph.activities.kind, COMMUNICATION)]
    if not len(lacks) or float(lacks.mean()) <= MOST:
        return ""
    return "recorded" if ranks_not_read(graph) else "matched"


def source_of(graph: DependencyGraph) -> str:
    """Return the region in which the job waits for a process that was not recorded and is no data loader, else ""."""
    owner = graph.edges.activity[outside_waits(graph)]
    names = graph.activities.name[owner[owner >= 0]]
    return stable_name(graph.names[int(np.bincount(names).argmax())]) if len(names) else ""


def _evidence(results: Results, claim: BoundClaim) -> Evidence:
    path = results.path
    shares = claim.shares
    named = [category for category, share in shares.items() if share >= 100 * ROUNDING]
    us = int(results.parts.length.sum()) / 100_000  # of a percent
    parts = [BarPart(CATEGORY_WORDS[each], each.replace("_", "-"), shares[each] * us) for each in named]
    parts.append(BarPart("other", "other", sum(share for each, share in shares.items() if each not in named) * us))
    chart = Chart("What the critical path is spent on", stacks=[("critical path", parts)])
    longest = stretches(
        results, np.isin(path.segments.category, [CATEGORIES.index(each) for each in categories_of(claim.about)])
    )
    return Evidence(
        chart, _largest(results, claim.about), place=longest.first,
        look="the longest stretch of it", command=("critical-path",), meaning=CriticalPath.summary,
    )  # fmt: skip


def _largest(results: Results, cause: str) -> Rows:
    """Return the kernels, or for all else the operators, with most time on the path, and where each has most."""
    graph = results.warm_path.graph
    parts = results.parts
    whole = max(int(parts.length.sum()), 1)
    acts = graph.activities
    rows = np.arange(len(parts))
    if cause in ("computation", "memory"):
        group = "kernel"
        rows = np.flatnonzero(parts.category == CATEGORIES.index(cause))
        name = acts.name[parts.activity[rows]]
    else:
        group = "operator"
        name = np.append(acts.name, -1)[operator_of(graph, parts.region)]
    number, used = pd.factorize(name)  # each name is shortened once: there may be millions of segments
    keys = [graph.names[code] if code >= 0 else "" for code in used.tolist()]
    words = [short_name(key) if group == "kernel" else key if step_number(key) is None else NO_OPERATOR for key in keys]
    is_named = ~np.isin(words, ["", "none"])[number]
    table = {"duration_us": parts.length / 1000, "start_us": (parts.start - graph.origin_ns) / 1000}
    shown = pd.DataFrame({**table, "activity": parts.activity}).iloc[rows[is_named]]
    by_name = shown["duration_us"].groupby(pd.Index(texts_of(words, number[is_named])), sort=False)
    sums = pd.DataFrame(
        {"time_us": by_name.sum(), "segments": by_name.size(), "longest": by_name.idxmax()}
    ).rename_axis("name")
    names = sums.sort_index().sort_values("time_us", ascending=False, kind="stable").head(MOST_ROWS)
    longest = shown.loc[names.pop("longest")]
    names.insert(1, "share_percent", 100_000 * names["time_us"] / whole)
    places = Place.of_rows(longest, "start_us", "duration_us", "activity")
    if graph is not results.graph:  # moments of a replay are not those of the timeline
        places = [Place(place.activity) for place in places]
    return Rows(names.reset_index(), f"The {group}s with most time on the critical path", places)


BOUND = Finding(
    "bound",
    needs=PREDICTS,
    when=_when,
    short=bound_sentence,
    why=bound_reason,
    evidence=_evidence,
    advice=bound_advice,
)
