"""The part of a step's change that no cause names, or the changes that make up for named causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from htagraph.analyses.differences.diff import Diff
from htagraph.analyses.overlap import overlap
from htagraph.findings.differences.origins import NamedCause, large_changes, named_causes
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.words import effect_text, few, longer
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.limits import MAX_NAMED, MIN_SHARE, ROUNDING
from htagraph.findings.phrases import and_list, time_text
from htagraph.graph.tolerances import LIMITS

__all__ = ["REST", "Reason", "RestClaim", "RestPart", "in_region"]

Reason: TypeAlias = Literal["visible", "work", "order", "mixed"]
"""Why a part of the change remains: communication beside less work, changed work without a sentence, the order of
waits, or changed work and waits that cannot be told apart."""


class RestPart(NamedTuple):
    """A part of the change that no cause has named."""

    reason: Reason
    us: float
    """The part, µs."""
    largest: tuple[str, ...] = ()
    """The work that changed most in it, with its region."""


@dataclass(frozen=True, kw_only=True)
class RestClaim(Claim):
    """A part of the change remains, or is made up for; the figure is that part, µs."""

    parts: tuple[RestPart, ...] = ()
    """The parts that remain; empty where other changes make up for the named causes."""
    made_up_by: tuple[str, ...] = ()
    """The changes that make up for the named causes."""
    causes_count: int = 0
    """How many causes are named."""
    named_us: float = 0.0
    """The effect of these on the step, µs."""
    step_change_us: float
    """The change of the step, µs."""
    span: str
    """The span of the times: ``step`` or ``job``."""


def _when(pair: JobPair) -> list[RestClaim]:
    step_us = pair.diff.change_us
    if not pair.effects.change_us:
        return []
    named = named_causes(pair)
    named_us = sum(cause.effect_us for cause in named)
    left_us = step_us - named_us
    if named_us / step_us >= 1 and abs(left_us) <= pair.noise_us:
        return []
    if named_us / step_us > 1 + (MIN_SHARE if len(named) == 1 else ROUNDING):
        against = large_changes(pair).against
        is_part = abs(sum(work.effect_us for work in against)) < (1 - MIN_SHARE) * abs(left_us)
        names = (*few([work.name for work in against]), *(["other changes and waits"] if is_part else []))
        return [
            RestClaim(
                "rest", pair.diff.unit, left_us, "us", made_up_by=names, causes_count=len(named), named_us=named_us,
                step_change_us=step_us, span=pair.diff.unit,
            )
        ]  # fmt: skip
    left = _parts(pair, named, left_us)
    claim = RestClaim(
        "rest", pair.diff.unit, left_us, "us", parts=tuple(left), causes_count=len(named), named_us=named_us,
        step_change_us=step_us, span=pair.diff.unit,
    )  # fmt: skip
    return [claim] if left else []


def _parts(pair: JobPair, named: Sequence[NamedCause], left_us: float) -> list[RestPart]:
    """Return the parts of the rest that are worth a sentence."""
    step_us = pair.diff.change_us
    other_us = pair.effects.explained_us - (step_us - left_us)
    is_apart = (
        -MIN_SHARE <= other_us / step_us <= 1 + MIN_SHARE
    )  # else changes of work and waits make up for each other
    is_rest = abs(left_us - other_us) <= pair.noise_us  # then no more than remains
    other_us = (sorted((0.0, other_us, left_us))[1] if is_rest else other_us) if is_apart else 0.0
    visible_us = _visible_us(pair.diff, left_us - other_us)
    rest_us = left_us - other_us - visible_us
    left = [
        RestPart("visible", visible_us),
        RestPart("work", other_us, _largest(pair, named)),
        RestPart("order" if is_apart else "mixed", rest_us),
    ]
    large = [gap for gap in left if abs(gap.us / step_us) >= MIN_SHARE]
    beyond = [gap for gap in large if abs(gap.us) > pair.noise_us]  # recordings of one job differ by less
    return beyond if named or beyond else large


def _short(claim: RestClaim) -> str:
    step_us = claim.step_change_us
    if claim.made_up_by or not claim.parts:
        count = "Together" if claim.causes_count > 1 else "Alone"
        back = f"{time_text(abs(claim.figure))} of this is made up for by {and_list(claim.made_up_by)}"
        return f"{count}, that would be {effect_text(claim.named_us, step_us)}; {back}."
    text = "; ".join(_part_text(claim, left) for left in claim.parts)
    return f"Beyond that, {text}." if claim.causes_count else f"{text[0].upper()}{text[1:]}."


def _part_text(claim: RestClaim, part: RestPart) -> str:
    """Return a part of the rest in words."""
    effect = effect_text(part.us, claim.step_change_us)
    if part.reason == "visible":
        ran = ("ran", "no longer does") if part.us > 0 else ("did not run", "now does")
        return f"communication that {ran[0]} beside computation {ran[1]}, which makes the {claim.span} {effect}"
    if part.reason == "work":
        largest = f" (the largest: of {and_list(part.largest)})" if part.largest else ""
        changes = "all other changes" if claim.causes_count else "changes"
        return f"{changes} of work{largest} together make the {claim.span} {effect}"
    if part.reason == "order":
        return (
            f"longer or shorter work does not explain {time_text(abs(part.us))} {longer(part.us)}, which is in what "
            "waits for what, and in pauses"
        )
    more = "other " * (claim.causes_count > 0)
    return f"{more}changes of work and what waits for what make the {claim.span} {effect}"


def _largest(pair: JobPair, named: Sequence[NamedCause]) -> tuple[str, ...]:
    """Return the work that changed most of all without a sentence, because steps differ as much or it is less."""
    said = {work.key for cause in named for work in cause.work}
    step_us = pair.diff.change_us
    unsaid = [work for work in pair.work if work.key not in said]
    most = sorted(unsaid, key=lambda work: -work.effect_us / step_us)[:MAX_NAMED]
    large = [work.name for work in most if work.effect_us / step_us >= MIN_SHARE]
    return tuple(f"{name}{in_region(name, pair.diff)}" for name in large)


def in_region(name: str, diff: Diff) -> str:
    """Return the annotation that holds nearly all of the change of work which also runs elsewhere."""
    tree = diff.alignment
    before, after = (
        job.sums(path, len(tree))[1] / job.repeats for job, path in zip(diff.parts, tree.path, strict=True)
    )
    work = np.flatnonzero(np.array(tree.names) == name)
    change = pd.Series((after - before)[work]).groupby(tree.region[work]).sum()
    whole = change.sum()
    if len(change) < 2 or not whole:
        return ""
    largest = int(change.abs().to_numpy().argmax())
    root = int(change.index.to_numpy()[largest])
    is_there = root >= 0 and change.to_numpy()[largest] / whole >= LIMITS.nearly_all
    return f" in {tree.names[root]}" if is_there else ""


def _visible_us(diff: Diff, most_us: float) -> float:
    """Return how much communication of a rank and step lost overlap with computation, µs; below 0 where it gained.

    It is no more than the change leaves open, and 0 where the jobs are not compared as a whole.
    """
    tables = [overlap(job.graph).set_index("rank").loc[list(job.chosen_ranks)] for job in diff.parts]
    if any(job.steps is not None and len(job.steps) < len(job.graph.steps) for job in diff.parts):
        return 0.0
    exposed, hidden = (
        np.diff([each.sum() / part.repeats for each, part in zip(columns, diff.parts, strict=True)])[0]
        for columns in ([t["communication_us"] - t["hidden_us"] for t in tables], [t["hidden_us"] for t in tables])
    )
    sign = np.sign(most_us)
    return float(sign * max(0.0, min(sign * exposed, -sign * hidden, abs(most_us))))


REST = Finding("rest", when=_when, short=_short)
