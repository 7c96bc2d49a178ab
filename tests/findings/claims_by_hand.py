"""Claims by hand, with the facts that their words need."""

from __future__ import annotations

from typing import Any

from htagraph.findings.finding import Claim

__all__ = ["blocking", "bound", "gain"]


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
        "shared": False, "loader": False, "around": False, "inside": "", "stacks": False,
    }  # fmt: skip
    return Claim("gain", name, us, "us", interval=interval, facts=known | facts)


def blocking(us: float, percent: float, steps: int = 0) -> Claim:
    """Return the claim that the job is shorter by some µs without the waits of an operator for the device."""
    facts = {
        "count": 3,
        "blocked_us": 2000.0,
        "percent": percent,
        "target": "op=aten::item",
        "several": False,
        "frame": "",
    }
    return Claim("blocking", "aten::item", us, "us", facts=facts | {"steps": steps})
