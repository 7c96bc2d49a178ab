"""A caution: nothing of a device was recorded, though the job launched work or its machine has devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import COUNTER_RANGE
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.incomplete import INCOMPLETE
from htagraph.findings.phrases import plural
from htagraph.findings.results import Results
from htagraph.queries.device_record import device_record

__all__ = ["NO_DEVICE_WORK", "NoDeviceWorkClaim"]


@dataclass(frozen=True, kw_only=True)
class NoDeviceWorkClaim(Claim):
    """Nothing that a device did was recorded; the figure is how many calls launched work."""

    counted: int = 0
    """Kernels that ran one by one for a profiler of counters."""


def _when(results: Results) -> list[NoDeviceWorkClaim]:
    graph = results.graph
    acts = graph.activities
    if not device_record(graph).is_lost:
        return []
    if INCOMPLETE.when(results):  # the same, with figures
        return []
    launches = int(np.count_nonzero(acts.kind == ActivityKind.LAUNCH))
    kernels = sum(int(trace.in_categories(COUNTER_RANGE).sum()) for trace in graph.traces.values())
    return [NoDeviceWorkClaim("no_device_work", "", launches, "count", counted=kernels)]


def _short(claim: NoDeviceWorkClaim) -> str:
    if claim.counted:
        kernels = plural(claim.counted, "kernel")
        no_bound = "and what bounds the job cannot be said"
        return f"{kernels} ran one by one for a profiler of counters, whose times are not the job's, {no_bound}"
    launches = f"the host launched work in {plural(int(claim.figure), 'call')}, but " if claim.figure else ""
    return f"{launches}nothing that a device did was recorded, so when the host waits for it is not known"


def _why(claim: NoDeviceWorkClaim) -> str:
    """Return that times of the device are not known."""
    if claim.counted:
        return "when kernels run in the job: a profiler of counters ran them one by one"
    return "what the device does: none of its work was recorded"


NO_DEVICE_WORK = Finding(
    "no_device_work", when=_when, short=_short, why=_why, is_caution=True, advice=lambda claim:
    "Record times without counters." if claim.counted else f"Record with {claim.recorder.setting('device')}.",
)  # fmt: skip
