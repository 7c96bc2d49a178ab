"""A caution: some steps take far longer or shorter than the others, so that figures per step are of neither."""

from __future__ import annotations

import numpy as np

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list, time_text
from htagraph.findings.results import Results
from htagraph.graph.measures.steps import cadence_of

__all__ = ["UNEVEN_STEPS"]


def _when(results: Results) -> list[Claim]:
    cadence = cadence_of(results.graph)
    if cadence is None or len(cadence.steps) < 2 or not cadence.odd.any():
        return []
    odd = cadence.odd
    some = cadence.lengths if 2 * odd.sum() >= len(odd) else cadence.lengths[odd]
    numbers = () if len(some) == len(odd) else tuple(cadence.steps[odd].tolist())
    facts = {
        "odd": numbers, "low_us": np.nanmin(some) / 1000, "high_us": np.nanmax(some) / 1000,
        "usual_us": cadence.usual_ns / 1000, "warm_up": numbers == tuple(cadence.steps[: cadence.warm_up].tolist()),
    }  # fmt: skip
    return [Claim("uneven_steps", ", ".join(map(str, numbers)), len(numbers), "count", facts=facts)]


def _short(claim: Claim) -> str:
    facts = claim.facts
    low, high = time_text(facts["low_us"]), time_text(facts["high_us"])
    if not facts["odd"]:
        return f"steps take {low} to {high}, so no figure per step is that of most of them"
    steps, lasted = facts["odd"], low if low == high else f"{low} to {high}"
    if len(steps) == 1:
        which = f"step {steps[0]} takes"
    else:
        which = f"steps {and_list(map(str, steps))} take" if len(steps) <= MAX_LISTED else f"{len(steps)} steps take"
    why = "and the usual step is without first steps" if facts["warm_up"] else "so means per step fit neither"
    return f"{which} {lasted}, the others about {time_text(facts['usual_us'])}, {why}"


UNEVEN_STEPS = Finding(
    "uneven_steps",
    when=_when,
    short=_short,
    is_caution=True,
    advice=lambda _: "Read the steps that are alike (--steps).",
)
