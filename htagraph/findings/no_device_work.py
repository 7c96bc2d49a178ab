"""A caution: nothing of a device was recorded, though the job launched work or its machine has devices."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural
from htagraph.findings.results import Results

__all__ = ["NO_DEVICE_WORK"]


def _when(results: Results) -> list[Claim]:
    graph = results.graph
    acts = graph.activities
    if acts.on_device.any() or not len(acts):
        return []
    launched = int(np.count_nonzero(acts.kind == ActivityKind.LAUNCH))
    known = any(trace.facts.devices for trace in graph.traces.values())
    return [Claim("no_device_work", "", launched, "count")] if launched or known else []


def _short(claim: Claim) -> str:
    launched = f"the host launched work in {plural(int(claim.figure), 'call')}, but " if claim.figure else ""
    return f"{launched}nothing that a device did was recorded, so when the host waits for it is not known"


NO_DEVICE_WORK = Finding(
    "no_device_work",
    when=_when,
    short=_short,
    is_caution=True,
    advice=lambda _: "Record with activities=[CPU, CUDA].",
)
