"""What gains most, by simulating the job again without each kind of work; and whether "at most" holds."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.conclusions_truth.bound import makespan_ns
from benchmarks.conclusions_truth.findings import Finding
from htagraph.simulate import (
    Category,
    Job,
    ScaleKernels,
    ScaleLaunches,
    ScaleLoader,
    ScaleNetwork,
    ScaleOptimizer,
    simulate,
)  # fmt: skip

__all__ = ["Row", "ceiling_findings", "gain_findings", "true_gains"]

TOP = 3
TIE = 0.5
"""Percent of the makespan; gains this close may stand in any order. Source: five times the p95 error that accuracy.py
finds on these jobs. Doubled, orders that a reader would notice count as right."""
MIN_GAIN = 2.0
"""Percent of the makespan from which a gain is expected to be listed. Source: what a summary names at least. Doubled,
gains of 2 to 4 % may be missing."""
ASKED = 10
"""Rows of the list, as the summary asks for them."""
SAME = 0.03
"""Relative difference of gains of which `opportunities` lists only the one inside the other, as it documents."""
OFF = 0.03
"""Relative error that a stated gain may have, besides `TIE`. Chosen: it changes no decision; doubled, neither."""


_TIMED = tuple(each for each in Category if each.on_device)


class Row(NamedTuple):
    """One stated opportunity."""

    what: str
    name: str
    percent: float
    """Gain, of the makespan."""


def true_gains(job: Job, *, groups: int) -> dict[tuple[str, str], float]:
    """Return by how many percent the job is shorter without some work, by (kind, name), the largest first.

    Kernels and copies by name where they may gain 2 %, launch calls, the data loader, the optimizer; the network where
    there is one group.
    """
    whole = makespan_ns(job)
    time: dict[str, int] = {}
    for rank in simulate(job).ranks:
        for at in rank.select(*_TIMED):
            time[rank.name[at]] = time.get(rank.name[at], 0) + int(rank.end_ns[at] - rank.start_ns[at])
    changes: dict[tuple[str, str], Any] = {
        ("kernel", name): ScaleKernels(name=glob.escape(name), factor=0)
        for name, ns in time.items()
        if 100 * ns >= MIN_GAIN * whole and "nccl" not in name.lower()  # no gain is larger than the time of all ranks
    }
    changes |= {
        ("phase", "launch calls"): ScaleLaunches(factor=0), ("phase", "data loading"): ScaleLoader(factor=0),
        ("phase", "optimizer"): ScaleOptimizer(factor=0),
    }  # fmt: skip
    if groups == 1:
        changes["group", ""] = ScaleNetwork(factor=0, latency_factor=0)
    gains = {
        key: 100 * (whole - makespan_ns(job.model_copy(update={"changes": (*job.changes, change)}))) / whole
        for key, change in changes.items()
    }
    return dict(sorted(gains.items(), key=lambda item: -item[1]))


def key_of(row: Row) -> tuple[str, str] | None:
    """Return which true gain a stated row is comparable with; None for none."""
    if row.what == "kernel":
        return "kernel", row.name
    if row.what == "group" or row.name == "all transfers between ranks":
        return "group", ""
    if row.name.startswith("Optimizer.step"):
        return "phase", "optimizer"
    return ("phase", row.name) if row.name in ("data loading", "launch calls") else None


def gain_findings(rows: Sequence[Row], true: Mapping[tuple[str, str], float]) -> list[Finding]:
    """Return whether the true first three gains are listed, the listed first three are true, and their figures."""
    stated = [(key, row) for row in rows if (key := key_of(row)) in true and key is not None]
    third = [*true.values(), 0.0, 0.0, 0.0][TOP - 1]
    text = "; ".join(f"{name or kind} {gain:.1f} %" for (kind, name), gain in [*true.items()][:TOP])
    findings = []
    for key, row in stated[:TOP]:
        said = f"{row.name[:50]} {row.percent:.1f} %"
        findings.append(Finding("top gains", said, "", true[key] >= third - TIE, text))
    for key, row in stated:
        off = abs(row.percent - true[key])
        said = f"{row.name[:50]} {row.percent:.1f} %"
        findings.append(Finding("gain's figure", said, "", off <= max(TIE, OFF * true[key]), f"true {true[key]:.2f} %"))
    least = rows[-1].percent if len(rows) >= ASKED else 0.0
    for (kind, name), gain in [*true.items()][:TOP]:
        if gain >= max(MIN_GAIN, least):  # a full list has room for nothing that gains less than its last row
            listed = any(key == (kind, name) for key, _ in stated) or any(
                abs(row.percent - gain) <= max(SAME * gain, TIE) for row in rows
            )
            expected = f"{(name or kind)[:50]} {gain:.1f} %"
            findings.append(Finding("top gains", "", expected, listed, f"least listed {least:.1f} %"))
    return findings


def ceiling_findings(said: str, percent: float, interval: tuple[float, float] | None, true: float) -> list[Finding]:
    """Return whether a gain called the most that can be saved, or its interval, holds the true gain, all in percent."""
    low, high = interval or (-np.inf, percent)
    right = bool(low - TIE <= true <= high + max(TIE, OFF * abs(high)))
    text = f"{said[:50]} {percent:.1f} %" + (f" ({low:.1f} to {high:.1f})" if interval else " at most")
    return [Finding("at most", text, "", right, f"true {true:.2f} %")]
