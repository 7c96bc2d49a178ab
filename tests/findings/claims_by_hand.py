"""Claims by hand, with the facts that their words need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from htagraph.findings.finding import Claim

__all__ = ["blocking", "bound", "contradictions", "gain"]


def bound(category: str, share: float = 80.0, *, ranks: dict[int, float] | None = None, **facts: Any) -> Claim:
    """Return the claim that a category bounds the job, which has several ranks if these are given."""
    shares = {category: share, "launch": 19.0, "sync": 1.0}
    known = {
        "shares": shares, "ranks": ranks or {0: 100.0}, "by_workers": False, "several": bool(ranks), "batches": (4, 10),
    }  # fmt: skip
    return Claim("bound", category, share, "percent", facts=known | facts)


def gain(
    name: str,
    us: float,
    percent: float,
    what: str = "kernel",
    *,
    interval: tuple[float, float] | None = None,
    **facts: Any,
) -> Claim:
    """Return the claim that the job is shorter by some µs if something takes no time."""
    known = {
        "what": what, "percent": percent, "target": f"name={name}", "half_us": us / 2, "note": "", "steps": 0,
        "loader": False, "around": False, "inside": "", "stacks": False,
        "batches": (4, 10),
    }  # fmt: skip
    return Claim("gain", name, us, "us", interval=interval, facts=known | facts)


def blocking(us: float, percent: float, steps: int = 0) -> Claim:
    """Return the claim that the job is shorter by some µs without the waits of an operator for the device."""
    facts = {
        "count": 3,
        "percent": percent,
        "target": "op=aten::item",
        "several": False,
        "frame": "",
    }
    return Claim("blocking", "aten::item", us, "us", facts=facts | {"steps": steps})


def contradictions(claims: Sequence[Claim]) -> list[str]:
    """Return what contradicts itself or each other among the claims of one report; empty where nothing does."""
    every = [claim.says for claim in claims]
    wrong = [f"{one} more than once" for one in ("bound", "straggler") if every.count(one) > 1]
    wrong += [f"{one} and waiting" for one in ("straggler", "slow_stage") if {one, "waiting"} <= set(every)]
    by_workers = any(claim.facts.get("by_workers") for claim in claims)
    for claim in claims:
        facts, (low, high) = claim.facts, claim.interval or (claim.figure, claim.figure)
        half = 0.0 if facts.get("what") == "group" else facts.get("half_us", 0.0)  # transfers may share links
        share = claim.figure if claim.unit == "percent" else 100.0 * (claim.says == "gain")
        if not 0 <= share <= 100 + 1e-6 or not low <= claim.figure <= high:
            wrong.append(f"{claim.says} {claim.about}: {claim.figure:g}")
        if claim.figure > facts.get("makespan_us", claim.figure) or half > claim.figure + 1e-6:
            wrong.append(f"{claim.says} {claim.about}: more than the whole")
        if by_workers and claim.says == "gain" and not facts["loader"]:
            wrong.append(f"{claim.about}, where the loader's workers set the pace")
    return wrong
