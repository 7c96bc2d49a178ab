"""A caution: some steps take far longer or shorter than the others, so that figures per step are of neither."""

from __future__ import annotations

import numpy as np

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import cadence_of, mean_step_ns, usual_step_ns
from htagraph.graph.tolerances import LIMITS

__all__ = ["UNEVEN_STEPS", "step_text"]


def step_text(graph: DependencyGraph) -> str:
    """Return how long a step takes: the usual time, and the mean where that differs, or the range where none is usual.

    Example:
        >>> import htagraph as hg
        >>> step_text(hg.load("data/demo"))
        '8.70 ms'
    """
    cadence = cadence_of(graph)
    if cadence is None:
        return ""
    usual, mean = usual_step_ns(graph, graph.time), mean_step_ns(graph, graph.time)
    if not cadence.alike and len(cadence.steps) > 1:
        least, most = (time_text(end(cadence.lengths) / 1000) for end in (np.nanmin, np.nanmax))
        return f"{time_text(usual / 1000)} ({least} to {most})" if len(cadence.steps) > 2 else f"{least} to {most}"
    differs = usual < LIMITS.nearly_all * mean
    return time_text(usual / 1000) + (f" ({time_text(mean / 1000)} on average)" if differs else "")


def _when(results: Results) -> list[Claim]:
    cadence = cadence_of(results.graph)
    if cadence is None or len(cadence.steps) < 2 or not cadence.odd.any():
        return []
    odd, uneven = cadence.odd, not cadence.alike
    some = cadence.lengths if uneven else cadence.lengths[odd]
    numbers = () if uneven else tuple(cadence.steps[odd].tolist())
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
    which = f"steps {and_list(map(str, steps))} take" if len(steps) <= MAX_LISTED else f"{len(steps)} steps take"
    which = f"step {steps[0]} takes" if len(steps) == 1 else which
    why = "and the usual step is without first steps" if facts["warm_up"] else "so means per step fit neither"
    return f"{which} {lasted}, the others about {time_text(facts['usual_us'])}, {why}"


UNEVEN_STEPS = Finding(
    "uneven_steps",
    when=_when,
    short=_short,
    is_caution=True,
    advice=lambda _: "Read the steps that are alike (--steps).",
)
