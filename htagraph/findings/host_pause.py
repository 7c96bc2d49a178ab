"""On the critical path, the host spends its time mostly on a few things."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.core.naming import short_name
from htagraph.findings.bound import BOUND, is_unrecorded
from htagraph.findings.finding import (
    PREDICTS,
    Bar,
    Chart,
    Claim,
    Evidence,
    Finding,
    Place,
    Rows,
    claims_that_are,
    in_short,
)
from htagraph.findings.interrupted import INTERRUPTED, InterruptedClaim
from htagraph.findings.limits import LARGE_SHARE, MAX_LISTED, MAX_NAMED, MIN_PERCENT
from htagraph.findings.phrases import ranks_text, share_text, steps_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.measures.ledger import Part
from htagraph.queries.host_time import host_pauses, steps_of_pause
from htagraph.queries.interruptions import LONG_NS
from htagraph.queries.paths import CriticalPath

__all__ = ["HOST_PAUSE", "HostPauseClaim"]


@dataclass(frozen=True, kw_only=True)
class HostPauseClaim(Claim):
    """The host spends its time on one thing; the figure is the share of the critical path, percent.

    It is about the function, operator or call, or about nothing where no event covers the time.
    """

    inside: str
    """The innermost Python function, operator or annotation around it; empty for none."""
    before: str
    """The activity that comes next, where no event covers the time."""
    after: str
    """The activity that ended before the longest gap."""
    count: int
    """How many activities or gaps it is."""
    total_us: float
    """All of them together, on the path, µs."""
    longest_us: float
    """The longest of them, µs."""
    has_several_ranks: bool = False
    """Whether the job has several ranks."""
    has_stacks: bool = True
    """Whether Python functions were recorded."""
    in_steps: tuple[int, ...] = ()
    """The few steps with nearly all of it; empty where many steps have some."""
    is_awaited: bool = False
    """Whether other threads wait for it, as it has Python's interpreter."""


def _when(results: Results) -> list[HostPauseClaim]:
    """Claim what the host does longest; in a job that it does not bound, only what is long and much of the path."""
    if not results.bound.cause or any(map(is_unrecorded, results.claims(BOUND.when))):
        return []
    is_bound = results.bound.cause == "host"
    percent, longest_us = (MIN_PERCENT, 0.0) if is_bound else (100 * LARGE_SHARE, LONG_NS / 1000)
    stopped = claims_that_are(InterruptedClaim, results.claims(INTERRUPTED.when))
    outside = frozenset(results.first_calls).union(*(claim.activities for claim in stopped))
    edges, kind = results.graph.edges, results.graph.activities.kind
    python = (edges.kind == EdgeKind.THREAD) & (kind[edges.target >> 1] == ActivityKind.PYTHON)
    held = set(edges.source[python].tolist())  # by who has the interpreter
    has_stacks = bool((kind == ActivityKind.PYTHON).any())
    of_ranks = host_pauses(results.warm_path, MAX_NAMED * len(results.graph.ranks))  # the most time first
    table = of_ranks.groupby(["what", "inside", "before"], sort=False, as_index=False).agg(
        ranks=("rank", list), count=("count", "sum"), total_us=("total_us", "sum"), longest_us=("longest_us", "max"),
        after=("after", "first"), activity=("activity", "first"), share_percent=("share_percent", "sum"),
    )  # fmt: skip
    largest = table.nlargest(MAX_NAMED, "total_us").to_dict("records")
    pauses = [{str(key): value for key, value in pause.items()} for pause in largest]
    return [
        HostPauseClaim(
            "host_pause",
            str(row["what"]),
            float(row["share_percent"]),
            "percent",
            rows=(int(row["activity"]),),
            ranks=tuple(map(int, row["ranks"])),
            inside=row["inside"],
            before=row["before"],
            after=row["after"],
            count=row["count"],
            total_us=row["total_us"],
            longest_us=row["longest_us"],
            has_several_ranks=len(results.graph.ranks) > 1,
            has_stacks=has_stacks,
            in_steps=tuple(steps_of_pause(results.warm_path, row)),
            is_awaited=bool(row["what"]) and 2 * int(row["activity"]) + 1 in held,  # of a pause: what follows it
        )
        for row in pauses
        if row["share_percent"] >= percent and row["longest_us"] >= longest_us
        and int(row["activity"]) not in outside  # which is said elsewhere
    ]  # fmt: skip


def _short(*claims: HostPauseClaim) -> str:
    parts = []
    for claim in claims:
        what = in_short(claim.about) if claim.about else "untraced time"  # of code, or of a wait
        where = f" in {in_short(claim.inside)}" if claim.inside else ""
        where += f" before {in_short(claim.before)}" if claim.before and not claim.about else ""
        where += f" on {ranks_text(sorted(set(claim.ranks)))}" if claim.has_several_ranks else ""
        is_short = 0 < len(claim.in_steps) <= MAX_LISTED
        where += f" {steps_text(claim.in_steps).lower()}" if is_short else ""
        times = f", {claim.count:,} times" if claim.count > 1 else ""
        held = ", for which other threads wait" * claim.is_awaited
        parts.append(f"{what}{where}{times}, {time_text(claim.total_us)} ({claim.figure:.0f} %){held}")
    return f"On the critical path, most host time is: {'; '.join(parts)}."


def _why(*claims: HostPauseClaim) -> str:
    """Return the host time that is most of the critical path."""
    longest = claims[0]
    what = in_short(longest.about) if longest.about else "time without any event"
    inside = f" in {in_short(longest.inside)}" if longest.inside else ""
    ranks = f" on {ranks_text(sorted(set(longest.ranks)))}" if longest.has_several_ranks else ""
    return f"The largest host time on the critical path is {what}{inside}{ranks} ({share_text(longest.figure)})."


def _evidence(_results: Results, *claims: HostPauseClaim) -> Evidence:
    frame = pd.DataFrame([
        {
            "what": short_name(claim.about) or "untraced time",
            "inside": short_name(claim.inside),
            "ranks": ", ".join(map(str, claim.ranks)),
            "count": claim.count,
            "total_us": claim.total_us,
            "longest_us": claim.longest_us,
            "share_percent": claim.figure,
        }
        for claim in claims
    ])  # fmt: skip
    places = [Place(claim.rows[0]) for claim in claims]
    bars = [
        Bar(what, us, place=place) for what, us, place in zip(frame["what"], frame["total_us"], places, strict=True)
    ]
    return Evidence(
        Chart("Time on the critical path", bars, "host"), Rows(frame, "On the critical path, summed", places),
        place=places[0], look="the longest", command=("critical-path",), meaning=CriticalPath.to_frame,
    )  # fmt: skip


def _advice(*claims: HostPauseClaim) -> str:
    """Return the setting to record with, or the work to move to another process.

    Args:
        claims: pauses of the host on the critical path, the longest pause first.
    """
    longest = claims[0]
    is_untraced = not longest.about
    is_large = longest.figure >= 100 * LARGE_SHARE
    if is_untraced and is_large and not longest.has_stacks:
        return longest.recorder.to_see("modules", "what runs in that time")
    if not any(claim.is_awaited for claim in claims):
        return ""
    return "Only one thread at a time runs Python (GIL): do this work in another process."


HOST_PAUSE = Finding(
    "host_pause",
    needs=PREDICTS | {Part.HOST},
    when=_when,
    short=_short,
    why=_why,
    evidence=_evidence,
    is_list=True,
    advice=_advice,
)
