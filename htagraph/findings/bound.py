"""What most of the critical path is spent on, and the rank on which most of it lies."""

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
from htagraph.core.naming import short_name, stable_name, step_number
from htagraph.core.statistics import MOST
from htagraph.findings.ceilings import RankAlone, alone_of, overlap_text, overlap_us
from htagraph.findings.change import Gain, PredictedChange, gain_of, likely, per_step, scenario_of
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
from htagraph.findings.limits import LARGE_SHARE, MIN_PERCENT, MIN_SHARE, MOST_ROWS, ROUNDING, SHORT_LIST
from htagraph.findings.phrases import (
    CATEGORY_WORDS,
    NO_OPERATOR,
    Advice,
    cause_words,
    share_text,
    spoken,
    steps_text,
    time_text,
    transfers_words,
)
from htagraph.findings.preconditions import HAS_ROOFS, checks_of
from htagraph.findings.results import FREE, Results
from htagraph.findings.unmatched import doubts_of
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.waits import lacks_members, ranks_not_read
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.attribution import operator_of
from htagraph.queries.fetches import outside_waits
from htagraph.queries.path_segments import CATEGORIES, HOST_CATEGORIES, Batches
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
    "is_unrecorded",
    "loader_advice",
    "source_of",
    "untraced_host",
]

LOADER_ADVICE = "Use more loader workers (num_workers) or cheaper samples."
"""The advice where the job waits for its data loader."""
_QUEUE_ADVICE = "Use more loader workers (num_workers), a larger prefetch_factor or cheaper samples."
"""The advice where the job waits for some batches of its data loader, and not for others."""
_ADVICE: Mapping[str, str] = {
    "communication": "Send less, or overlap more of the transfers (htagraph collectives).",
    "memory": "Copy less, or on a stream of its own while the device computes.",
    "other_work": Advice(
        "Check what else runs on the device (nvidia-smi), or record it: work that this recording does not show, of "
        "another process or an unrecorded stream, probably had the device.",
        "A faster host gains nothing there.",
    ),
}
"""The advice for a cause that needs no other facts of the job."""
_GONE = {
    "data_loading": "a loader that the job never waits for",
    "outside": "a source that the job never waits for",
    "communication": "a network that takes no time",
    "other_work": "a device without other work",
}
"""What a job is without a cause that can be gone altogether; all else takes some time in any case."""
_WITHOUT = {"host": "with a free CPU", "communication": "without them", "memory": "without them"}
"""The job without its cause, in words, by cause; every other cause is an "it"."""
_CEILINGS = ("communication",)
"""Causes of which a part stays, whatever is done: sending less or overlapping more gains at most the whole."""


Absent: TypeAlias = Literal["recorded", "matched", ""]
"""What the ranks were not that most communication may have waited for; empty where all were recorded and matched."""


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
    """What the ranks were not that most communication may have waited for."""
    source: str = ""
    """The region in which the job waits for a process that was not recorded and is no data loader; empty for none."""
    alone: RankAlone | None = None
    """The rank that gains most alone; None where that is not known."""
    late: LateStart | None = None
    """The recording that begins late on the path; None for none."""
    largest: str | None = None
    """The largest part of a job of nothing but host code, in words; None for every other job."""
    free_ns: Mapping[str, int] = field(default_factory=dict)
    """How much shorter the job is without a cause, ns, by cause; empty where the gain of the claim is not known."""
    first_kernel: KernelShare | None = None
    """The kernel with most of the path, where computation bounds the job."""
    has_roofs: bool = True
    """Whether a roofline of the job has an answer."""
    overlap_us: float | None = None
    """What more overlap of transfers gains at most, µs: the work of ranks that transfers may run beside; None where
    transfers do not bound the job."""


def loader_advice(batches: Batches) -> str:
    """Return the advice for a loader: a queue helps where workers are waited for in some batches, but not in all.

    Example:
        >>> loader_advice(Batches(3, 10))
        'Use more loader workers (num_workers), a larger prefetch_factor or cheaper samples.'
        >>> loader_advice(Batches(10, 10)) == loader_advice(Batches(0, 0)) == LOADER_ADVICE
        True
    """
    is_uneven = 0 < batches.waited < LIMITS.nearly_all * batches.total
    return _QUEUE_ADVICE if is_uneven else LOADER_ADVICE


def _when(results: Results) -> list[BoundClaim]:
    bound, graph, length = results.bound, results.graph, results.parts.length
    if not bound.cause or (bound.cause == "host" and Part.HOST in graph.ledger.lacks):
        return []
    untraced, communicates = untraced_host(results)
    if communicates > MOST * length.sum():  # the host may wait for it: what bounds the job was not recorded
        return []
    rests = {RestsOn.CLOCKS} if len(bound.ranks) > 1 else set()
    rests |= {RestsOn.MATCHES} if bound.shares.get("communication", 0.0) >= MIN_PERCENT else set()
    claim = BoundClaim(
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
    )
    if bound.cause == "host" and results.free.get("host", 0) >= (1 - MIN_PERCENT / 100) * results.makespan_ns:
        claim = replace(claim, largest=_largest_part(results))
        if results.usual and not claim.largest:  # that a host takes all of its time is no news
            return []
    steady_ns = results.path.makespan_ns - sum(results.first_calls.values())
    if results.free.get(bound.cause, steady_ns + 1) <= steady_ns:  # more hangs on start-up than the replay takes away
        claim = replace(claim, gain=_gain(results, bound.cause), free_ns=results.free)
    if bound.cause == "computation":
        has_roofs = checks_of([HAS_ROOFS], graph, np.zeros(0, np.int64)) is not None
        claim = replace(claim, first_kernel=_first_kernel(results), has_roofs=has_roofs)
    if bound.cause == "communication" and claim.gain:
        claim = replace(claim, overlap_us=overlap_us(results, claim.gain))
    return [replace(claim, change=_change(claim))]


def _first_kernel(results: Results) -> KernelShare | None:
    """Return the kernel with most of the path; None for none."""
    kernels = _largest(results, "computation")
    if kernels.first is None:
        return None
    row = kernels.frame.iloc[0]
    graph = results.warm_path.graph
    whole_name = graph.names[graph.activities.name[kernels.first.activity]]
    return KernelShare(str(row["name"]), float(row["share_percent"]), is_tuned_kernel(whole_name))


def _steady_ns(results: Results) -> int:
    """Return the length of the path without start-up, ns: of calls that start libraries, the usual time counts."""
    if results.usual:
        return int(results.parts.length.sum())
    if results.warm_path is not results.usual_path:
        return results.warm_path.makespan_ns - results.head_ns
    whole = results.path.makespan_ns - sum(results.first_calls.values()) - results.head_ns
    return max(whole, int(results.parts.length.sum()))


def _gain(results: Results, cause: str) -> Gain:
    """Return what the job gains if a cause takes no time."""
    outcome = scenario_of(results.warm_graph, FREE[cause][1].split()).run()
    gain = gain_of(outcome, results.makespan_ns, results.steps)
    value_us = results.free[cause] / 1000
    return replace(gain, value_us=value_us, low_us=min(gain.low_us, value_us), high_us=max(gain.high_us, value_us))


def _change(claim: BoundClaim) -> PredictedChange | None:
    """Return the change without a cause that can be gone altogether; None for all else, and where it is not known."""
    cause, gain = claim.about, claim.gain
    if gain is None or gain.value_us <= 0 or cause not in _GONE or claim.absent:
        return None
    name = _GONE[cause]
    if cause in _CEILINGS:
        gain = replace(gain, low_us=0.0, high_us=gain.value_us)
    return PredictedChange(name, tuple(FREE[cause][1].split()), gain)


def _largest_part(results: Results) -> str:
    """Return which operator or function gains most in a job of nothing but host code, and its share of the path."""
    # time on the path is of the whole recording: of usual steps, what is gained is it, where that is so of all
    table, whole = results.opportunities, not results.usual
    us = table["critical_us"] if whole else table["gain_per_step_us"] * max(results.steps, 1)
    all_gains = whole | (table["gain_us"] >= LIMITS.nearly_all * table["critical_us"])
    named = table["what"].isin(["operator", "function"]) & (table["gain_us"] > 0)
    length = results.path.makespan_ns if whole else results.makespan_ns
    own = us[named & all_gains & (100_000 * us >= MIN_PERCENT * length)]
    if not len(own) or results.first_calls:  # what the table says is of the whole recording
        return ""
    name = str(table["name"].loc[own.index].iloc[int(own.argmax())])
    return f", {share_text(100_000 * own.max() / length)} in {in_short(name)}"


def untraced_host(results: Results) -> tuple[int, int]:
    """Return how much of the path is host time without any event, and how much of that is beside communication, ns."""
    acts, parts = results.graph.activities, results.parts
    chosen = parts.gap == GapKind.HOST_UNTRACED
    ranks, meets = acts.rank[parts.place], of_kinds(acts.kind, COMMUNICATION)
    beside = 0
    for rank in np.unique(ranks[chosen]).tolist():
        own, rows = chosen & (ranks == rank), np.flatnonzero(meets & (acts.rank == rank))
        pauses = union(parts.start[own], parts.start[own] + parts.length[own])
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


def _short(claim: BoundClaim) -> str:
    batches = claim.batches
    waits = f" It waits for {batches.waited:,} of {batches.total:,} batches: only a faster loader helps."
    pace = " What it waits for sets the pace." if claim.source and claim.about == "outside" else ""
    return f"{bound_text(claim)}.{waits * claim.by_workers}{_late(claim)}{pace}"


def bound_text(claim: BoundClaim) -> str:
    """Return the bound of a job, the gain without the cause, and the next cause: a sentence without a full stop."""
    said = _own(claim) if claim.late is None else (*_own(claim), "head")  # which has a sentence
    shares = [(each, share) for each, share in claim.shares.items() if each not in said]
    shares = [(each, share) for each, share in shares if share >= MIN_PERCENT]
    others = [f"{_called(claim, category)} {share:.0f} %" for category, share in shares]
    text = f"{_where(claim)}ound by {_cause_and_share(claim)} of {_path(claim)}{_rank_in_short(claim)}"
    silence = _in_silence(claim)
    text += "" if claim.silent else silence
    free = _free(claim) if claim.largest is None else claim.largest  # of nothing but host code, no gain is news
    then = f"; then {', '.join(others[: 1 if free else SHORT_LIST])}" if others else ""
    return (
        text
        + free
        + (silence if claim.silent else "")
        + ((_larger(claim, *shares[0]) if free and shares else "") or then)
    )


def _cause_and_share(claim: BoundClaim) -> str:
    """Return the cause in words and its share; time in a region of which nothing is recorded is no host code."""
    silent = claim.silent if claim.about == "host" else None
    if silent and silent.percent > MOST * claim.figure:
        return f"what {silent.name} does or waits for, of which nothing is recorded: {share_text(silent.percent)}"
    share = share_text(claim.figure - (silent.percent if silent else 0.0))
    word = "host time" if is_unrecorded(claim) and not silent else _called(claim, claim.about)
    return f"{word}: {share}"


def _in_silence(claim: BoundClaim) -> str:
    """Return how much of the path is host time of which nothing is recorded, behind its cause; empty for little."""
    silent = claim.silent
    if claim.about != "host":
        return ""
    if silent and silent.percent > MOST * claim.figure:
        return f"; host code is {share_text(claim.figure - silent.percent)}"
    if silent:
        return f"; {share_text(silent.percent)} is in {silent.name}, of which nothing is recorded (code, or a wait)"
    share = share_text(claim.unrecorded_percent)
    if is_unrecorded(claim):
        return f", {share} without any event, so what ran then is not known"
    return f", {share} without any event (code, or a wait)" if claim.unrecorded_percent >= 100 * LARGE_SHARE else ""


def _called(claim: BoundClaim, category: str) -> str:
    """Return a category in words: a wait for no data loader, or for ranks that are unknown, has a name of its own."""
    if category == "outside" and claim.source:
        return f"{CATEGORY_WORDS[category]} in {claim.source}"
    if category == "communication" and claim.absent:
        return transfers_words(claim.absent)
    return cause_words(category, claim.shares) if category == claim.about else CATEGORY_WORDS[category]


def _why(claim: BoundClaim) -> str:
    """Return the cause that bounds the job, with its share of the critical path."""
    if claim.by_workers:
        return f"The job waits for {claim.batches.waited:,} of {claim.batches.total:,} batches of its data loader."
    cause = _cause_and_share(claim)
    if is_unrecorded(claim) and not claim.silent:
        cause = f"host time, most of it without any event: {share_text(claim.figure)}"
    where = ""
    if claim.has_several_ranks and claim.rank_shares:
        rank, percent = next(iter(claim.rank_shares.items()))
        where = f", on rank {rank}" if percent >= 100 - MIN_PERCENT else ""
    kernel = claim.first_kernel
    largest = f"; the largest kernel is {in_short(kernel.name)}" if kernel else ""
    apart = "In the usual steps" if claim.usual else _apart(claim)
    start = f"{apart}, bound" if apart else "Bound"
    silence = _in_silence(claim) if claim.silent else ""
    return f"{start} by {cause} of {_path(claim)}{where}{silence}{largest}."


def _larger(claim: BoundClaim, category: str, share: float) -> str:
    """Say of a category why it is not the cause, if it takes more of the path; else empty."""
    if category not in claim.free_ns or share <= claim.figure:
        return ""
    steps = claim.gain.steps if claim.gain else 0
    less = time_text(per_step(claim.free_ns[category] / 1000, steps))
    return f"; {_called(claim, category)} {share:.0f} %, but without that only {less} less"


def _where(claim: BoundClaim) -> str:
    """Return the start of the sentence: about what it is, where that is not the whole recording."""
    if claim.usual:
        return f"{steps_text(claim.usual)}, b"
    apart = _apart(claim)
    return f"{apart}, b" if apart else "B"


def _apart(claim: BoundClaim) -> str:
    """Return the part of the path without a share, as the start of a sentence; empty for the whole path."""
    if claim.is_started:
        return "Apart from start-up"
    return "Apart from earlier work" if claim.late and not claim.has_several_ranks else ""


def _path(claim: BoundClaim) -> str:
    """Return the path of all shares in words: the whole path, as in tables of categories, or the rest of the path."""
    is_part = not claim.usual and _apart(claim)
    return "the rest of the critical path" if is_part else "the critical path"


def is_unrecorded(claim: Claim) -> bool:
    """Return whether the host bounds the job, but mostly in time without any event."""
    return isinstance(claim, BoundClaim) and claim.about == "host" and claim.unrecorded_percent > 100 * MOST


def _advice(claim: BoundClaim) -> str:
    if is_unrecorded(claim):
        return claim.recorder.to_see("modules", "what the host does")
    if claim.about == "data_loading":
        return loader_advice(claim.batches)
    if claim.about == "outside":
        return f"Make what {claim.source or 'the job'} waits for faster, or run more of them."
    if claim.about == "computation":
        return _advice_on_computation(claim)
    advice = "" if claim.is_beside else _ADVICE.get(claim.about, "")
    is_of_transfers = claim.about == "communication" and advice
    if is_of_transfers and claim.gain and claim.overlap_us is not None:
        advice = Advice(*spoken(advice, overlap_text(claim.gain, claim.overlap_us)))
    return "Load all ranks, to split waiting from transfer." if advice and claim.absent else advice


def _advice_on_computation(claim: BoundClaim) -> str:
    """Return where to begin where computation bounds the job."""
    kernel = claim.first_kernel
    path = "this rest" if _path(claim) != "the critical path" else "the path"
    if kernel and kernel.is_tuned:
        less = f"Give {in_short(kernel.name)} less work, or larger sizes: it multiplies in low precision already."
        roof = "See how near its peaks the device is (htagraph roofline)."
        return Advice(less, roof) if claim.has_roofs else less
    near = ", and how near its peaks (htagraph roofline)" if claim.has_roofs else ""
    look = f"See what takes the device's time (htagraph kernels){near}."
    if kernel:
        return Advice(f"Begin with {in_short(kernel.name)}, {share_text(kernel.percent)} of {path}.", look)
    return look


def _late(claim: BoundClaim) -> str:
    """Return which recording begins late, where the path waits for that, or that it waits for earlier work."""
    late = claim.late
    if late is None or late.percent < MIN_PERCENT:
        return ""
    if not claim.has_several_ranks:
        return f" The path begins {time_text(late.us)} after the recording, behind work begun earlier."
    return f" Rank {late.rank}'s recording begins {time_text(late.us)} late ({late.percent:.0f} %)."


def _free(claim: BoundClaim) -> str:
    """Return how much less time the job would take without its cause; empty where that is unknown."""
    gain = claim.gain
    if gain is None or claim.by_workers or is_unrecorded(claim):
        return ""
    who = "a step" if gain.scope == "step" else "the job"
    interval = likely(gain) if claim.about == "host" else ""
    without = _WITHOUT.get(claim.about, "without it")
    return f"; {without} {who} takes {time_text(gain.per_step_us)} less ({gain.percent:.0f} %{interval})"


def _own(claim: BoundClaim) -> tuple[str, ...]:
    """Return the categories that are the cause."""
    return HOST_CATEGORIES if claim.about == "host" else (claim.about,)


def _rank_in_short(claim: BoundClaim) -> str:
    """Return the rank with most of the path, or that it is nearly no later than the next one."""
    if not claim.rank_shares or not claim.has_several_ranks:
        return ""
    rank, share = next(iter(claim.rank_shares.items()))
    alone = claim.alone
    if alone is not None and alone.percent < 100 * MIN_SHARE:
        gains = f"{alone.percent:.0f} %" if alone.percent >= 1 else "less than 1 %"
        others = [each for each in claim.rank_shares if each != alone.rank]
        return f"; speeding up rank {alone.rank} alone gains {gains}{f', rank {others[0]} is next' if others else ''}"
    return f", on rank {rank}" if share >= 100 - MIN_PERCENT else f" ({share:.0f} % on rank {rank})"


def _evidence(results: Results, claim: BoundClaim) -> Evidence:
    path, shares = results.path, claim.shares
    named = [category for category, share in shares.items() if share >= 100 * ROUNDING]
    us = int(results.parts.length.sum()) / 100_000  # of a percent
    parts = [BarPart(CATEGORY_WORDS[each], each.replace("_", "-"), shares[each] * us) for each in named]
    parts.append(BarPart("other", "other", sum(share for each, share in shares.items() if each not in named) * us))
    chart = Chart("What the critical path is spent on", stacks=[("critical path", parts)])
    longest = stretches(results, np.isin(path.segments.category, [CATEGORIES.index(each) for each in _own(claim)]))
    return Evidence(
        chart, _largest(results, claim.about), place=longest.first,
        look="the longest stretch of it", command=("critical-path",), meaning=CriticalPath.summary,
    )  # fmt: skip


def _largest(results: Results, cause: str) -> Rows:
    """Return the kernels, or for all else the operators, with most time on the path, and where each has most."""
    graph = results.warm_path.graph
    parts = results.parts
    whole = max(int(parts.length.sum()), 1)
    acts, rows = graph.activities, np.arange(len(parts))
    if cause in ("computation", "memory"):
        group, rows = "kernel", np.flatnonzero(parts.category == CATEGORIES.index(cause))
        name = acts.name[parts.activity[rows]]
    else:
        group, name = "operator", np.append(acts.name, -1)[operator_of(graph, parts.region)]
    number, used = pd.factorize(name)  # each name is shortened once: there may be millions of segments
    keys = [graph.names[each] if each >= 0 else "" for each in used.tolist()]
    words = [short_name(key) if group == "kernel" else key if step_number(key) is None else NO_OPERATOR for key in keys]
    known = ~np.isin(words, ["", "none"])[number]
    table = {"duration_us": parts.length / 1000, "start_us": (parts.start - graph.origin_ns) / 1000}
    shown = pd.DataFrame({**table, "activity": parts.activity}).iloc[rows[known]]
    each = shown["duration_us"].groupby(pd.Index(texts_of(words, number[known])), sort=False)
    sums = pd.DataFrame({"time_us": each.sum(), "segments": each.size(), "longest": each.idxmax()}).rename_axis("name")
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
    short=_short,
    why=_why,
    evidence=_evidence,
    advice=_advice,
)
