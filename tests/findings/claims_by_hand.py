"""Claims by hand, with what their words need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from htagraph.core.kinds import Category
from htagraph.findings.blocking import BlockingClaim
from htagraph.findings.bound import BoundClaim
from htagraph.findings.change import Gain, PredictedChange
from htagraph.findings.finding import Claim, saved_claim
from htagraph.findings.gain import GainClaim, proposed
from htagraph.queries.path_segments import Batches
from htagraph.whatif.candidates import What

__all__ = ["blocking", "bound", "contradictions", "gain", "gained"]


def bound(category: Category, share: float = 80.0, *, ranks: dict[int, float] | None = None, **more: Any) -> BoundClaim:
    """Return the claim that a category bounds the job, which has several ranks if these are given."""
    known: dict[str, Any] = {
        "shares": {category: share, "launch": 19.0, "sync": 1.0},
        "rank_shares": ranks or {0: 100.0},
        "has_several_ranks": bool(ranks),
        "batches": Batches(4, 10),
    }
    return BoundClaim("bound", category, share, "percent", **(known | more))


def gain(
    name: str,
    us: float,
    percent: float,
    what: What = "kernel",
    *,
    interval: tuple[float, float] | None = None,
    half_us: float | None = None,
    steps: int = 0,
    **more: Any,
) -> GainClaim:
    """Return the claim that the job is shorter by some µs if something takes no time."""
    known: dict[str, Any] = {"target": f"name={name}", "batches": Batches(4, 10)}
    whole = gained(us, percent, steps, interval)
    interval_of_half = interval and (interval[0], interval[1] / 2)
    half = gained(us / 2 if half_us is None else half_us, percent / 2, steps, interval_of_half)
    claim = GainClaim("gain", name, us, "us", interval, gain=whole, what=what, half=half, **(known | more))
    return replace(claim, change=proposed(claim))


def gained(us: float, percent: float, steps: int = 0, interval: tuple[float, float] | None = None) -> Gain:
    """Return a gain of some µs, which are some percent of the job."""
    low_us, high_us = interval or (us, us)
    return Gain(us, low_us, high_us, steps, 100 * us / percent if percent else 0.0)


def blocking(us: float, percent: float, steps: int = 0) -> BlockingClaim:
    """Return the claim that the job is shorter by some µs without the waits of an operator for the device."""
    gain = gained(us, percent, steps)
    change = PredictedChange("no waiting for the device in aten::item", ("--remove-sync=op=aten::item",), gain)
    return saved_claim(
        BlockingClaim("blocking", "aten::item", us, "us", change=change, count=3, target="op=aten::item")
    )


def contradictions(claims: Sequence[Claim]) -> list[str]:
    """Return what contradicts itself or each other among the claims of one report; empty where nothing does."""
    every = [claim.says for claim in claims]
    wrong = [f"{one} more than once" for one in ("bound", "straggler") if every.count(one) > 1]
    wrong += [f"{one} and waiting" for one in ("straggler", "slow_stage") if {one, "waiting"} <= set(every)]
    by_workers = any(isinstance(claim, BoundClaim) and claim.by_workers for claim in claims)
    for claim in claims:
        low, high = claim.interval or (claim.figure, claim.figure)
        work = claim if isinstance(claim, GainClaim) else None
        is_alone = work is not None and work.what != "group"  # transfers may share links
        half_us = work.half.value_us if work and is_alone else 0.0
        share = claim.figure if claim.unit == "percent" else 100.0 * bool(work)
        if not 0 <= share <= 100 + 1e-6 or not low <= claim.figure <= high:
            wrong.append(f"{claim.says} {claim.about}: {claim.figure:g}")
        is_above = claim.gain is not None and claim.gain.value_us > claim.gain.makespan_us
        if is_above or half_us > claim.figure + 1e-6:
            wrong.append(f"{claim.says} {claim.about}: more than the whole")
        if by_workers and work and not work.is_loader:
            wrong.append(f"{claim.about}, where the loader's workers set the pace")
    return wrong
