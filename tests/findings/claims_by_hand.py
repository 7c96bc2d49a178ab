"""Claims by hand, with the facts that their words need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from htagraph.findings.change import Gain, PredictedChange
from htagraph.findings.finding import Claim, saved_claim
from htagraph.findings.gain import proposed

__all__ = ["blocking", "bound", "contradictions", "gain", "gained"]


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
    half_us: float | None = None,
    steps: int = 0,
    **facts: Any,
) -> Claim:
    """Return the claim that the job is shorter by some µs if something takes no time."""
    known = {
        "what": what,
        "target": f"name={name}",
        "loader": False,
        "around": False,
        "inside": "",
        "stacks": False,
        "batches": (4, 10),
        "started": False,
        "unknown": False,
    }
    whole = gained(us, percent, steps, interval)
    interval_of_half = interval and (interval[0], interval[1] / 2)
    half = gained(us / 2 if half_us is None else half_us, percent / 2, steps, interval_of_half)
    claim = Claim("gain", name, us, "us", interval, gain=whole, facts=known | facts | {"half": half})
    return replace(claim, change=proposed(claim))


def gained(us: float, percent: float, steps: int = 0, interval: tuple[float, float] | None = None) -> Gain:
    """Return a gain of some µs, which are some percent of the job."""
    low_us, high_us = interval or (us, us)
    return Gain(us, low_us, high_us, steps, 100 * us / percent if percent else 0.0)


def blocking(us: float, percent: float, steps: int = 0) -> Claim:
    """Return the claim that the job is shorter by some µs without the waits of an operator for the device."""
    facts = {"count": 3, "target": "op=aten::item", "frame": "", "computes": False}
    gain = gained(us, percent, steps)
    change = PredictedChange("no waiting for the device in aten::item", ("--remove-sync=op=aten::item",), gain)
    return saved_claim("blocking", "aten::item", change, facts)


def contradictions(claims: Sequence[Claim]) -> list[str]:
    """Return what contradicts itself or each other among the claims of one report; empty where nothing does."""
    every = [claim.says for claim in claims]
    wrong = [f"{one} more than once" for one in ("bound", "straggler") if every.count(one) > 1]
    wrong += [f"{one} and waiting" for one in ("straggler", "slow_stage") if {one, "waiting"} <= set(every)]
    by_workers = any(claim.facts.get("by_workers") for claim in claims)
    for claim in claims:
        facts, (low, high) = claim.facts, claim.interval or (claim.figure, claim.figure)
        is_shared = claim.says != "gain" or facts["what"] == "group"  # transfers may share links
        half_us = 0.0 if is_shared else facts["half"].value_us
        share = claim.figure if claim.unit == "percent" else 100.0 * (claim.says == "gain")
        if not 0 <= share <= 100 + 1e-6 or not low <= claim.figure <= high:
            wrong.append(f"{claim.says} {claim.about}: {claim.figure:g}")
        is_above = claim.gain is not None and claim.gain.value_us > claim.gain.makespan_us
        if is_above or half_us > claim.figure + 1e-6:
            wrong.append(f"{claim.says} {claim.about}: more than the whole")
        if by_workers and claim.says == "gain" and not facts["loader"]:
            wrong.append(f"{claim.about}, where the loader's workers set the pace")
    return wrong
