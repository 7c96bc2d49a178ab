"""A caution: some steps take far longer or shorter than the others, so that figures per step are of neither."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list, time_text
from htagraph.findings.results import Results
from htagraph.graph.measures.steps import uneven_steps

__all__ = ["UNEVEN_STEPS"]


def _when(results: Results) -> list[Claim]:
    uneven = uneven_steps(results.graph)
    if uneven is None:
        return []
    odd, (low, high), usual = uneven
    facts = {"odd": odd, "low_us": low / 1000, "high_us": high / 1000, "usual_us": usual / 1000}
    return [Claim("uneven_steps", ", ".join(map(str, odd)), len(odd), "count", facts=facts)]


def _short(claim: Claim) -> str:
    facts = claim.facts
    low, high = time_text(facts["low_us"]), time_text(facts["high_us"])
    if not facts["odd"]:
        return f"steps take {low} to {high}, so figures per step are means of unlike steps"
    steps, lasted = facts["odd"], low if low == high else f"{low} to {high}"
    if len(steps) == 1:
        which = f"step {steps[0]} takes"
    else:
        which = f"steps {and_list(map(str, steps))} take" if len(steps) <= MAX_LISTED else f"{len(steps)} steps take"
    return f"{which} {lasted}, the others about {time_text(facts['usual_us'])}, so means per step fit neither"


UNEVEN_STEPS = Finding(
    "uneven_steps",
    when=_when,
    short=_short,
    is_caution=True,
    advice=lambda _: "Read the steps that are alike (--steps).",
)
