"""The part of a step's change that no cause names, or the changes that make up for named causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from htagraph.analyses.differences.compared_parts import ComparedPart
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
    """Return the claim on the part of the change that no named cause explains."""
    step_us = pair.diff.change_us
    if not pair.effects.change_us:
        return []
    named = named_causes(pair)
    named_us = sum(cause.effect_us for cause in named)
    left_us = step_us - named_us
    if named_us / step_us >= 1 and abs(left_us) <= pair.noise_us:
        return []
    is_too_much = named_us / step_us > 1 + (MIN_SHARE if len(named) == 1 else ROUNDING)
    made_up_by = _made_up_by(pair, left_us) if is_too_much else ()
    remaining = () if is_too_much else tuple(_parts(pair, named, left_us))
    if not remaining and not is_too_much:
        return []
    claim = RestClaim(
        "rest",
        pair.diff.unit,
        left_us,
        "us",
        parts=remaining,
        made_up_by=made_up_by,
        causes_count=len(named),
        named_us=named_us,
        step_change_us=step_us,
        span=pair.diff.unit,
    )
    return [claim]


def _made_up_by(pair: JobPair, left_us: float) -> tuple[str, ...]:
    """Return the changes that make up for the named causes."""
    against = large_changes(pair).against
    names = few([work.name for work in against])
    against_us = abs(sum(work.effect_us for work in against))
    if against_us < (1 - MIN_SHARE) * abs(left_us):
        names = [*names, "other changes and waits"]
    return tuple(names)


def _parts(pair: JobPair, named: Sequence[NamedCause], left_us: float) -> list[RestPart]:
    """Return the parts of the rest that are worth a sentence.

    Args:
        pair: the two jobs.
        named: the causes that have a sentence.
        left_us: the part of the change that these leave open, µs.
    """
    step_us = pair.diff.change_us
    other_us = pair.effects.explained_us - (step_us - left_us)
    other_share = other_us / step_us
    is_apart = -MIN_SHARE <= other_share <= 1 + MIN_SHARE  # else changes of work and waits make up for each other
    if not is_apart:
        other_us = 0.0
    elif abs(left_us - other_us) <= pair.noise_us:
        other_us = sorted((0.0, other_us, left_us))[1]  # no more than remains
    visible_us = _visible_us(pair.diff, left_us - other_us)
    rest_us = left_us - other_us - visible_us
    remaining = [
        RestPart("visible", visible_us),
        RestPart("work", other_us, _largest(pair, named)),
        RestPart("order" if is_apart else "mixed", rest_us),
    ]
    large = [left for left in remaining if abs(left.us / step_us) >= MIN_SHARE]
    beyond_noise = [left for left in large if abs(left.us) > pair.noise_us]  # recordings of one job differ by less
    return beyond_noise if named or beyond_noise else large


def _short(claim: RestClaim) -> str:
    """Return the parts that remain, or the changes that make up for the named causes, in words."""
    step_us = claim.step_change_us
    if claim.made_up_by or not claim.parts:
        count = "Together" if claim.causes_count > 1 else "Alone"
        named = effect_text(claim.named_us, step_us)
        made_up = time_text(abs(claim.figure))
        return f"{count}, that would be {named}; {made_up} of this is made up for by {and_list(claim.made_up_by)}."
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
    changes = "other changes" if claim.causes_count else "changes"
    return f"{changes} of work and what waits for what make the {claim.span} {effect}"


def _largest(pair: JobPair, named: Sequence[NamedCause]) -> tuple[str, ...]:
    """Return the work that changed most of all without a sentence, because steps differ as much or it is less."""
    named_work = {work.key for cause in named for work in cause.work}
    step_us = pair.diff.change_us
    unsaid = [work for work in pair.work if work.key not in named_work]
    by_effect = sorted(unsaid, key=lambda work: -work.effect_us / step_us)
    large = [work.name for work in by_effect[:MAX_NAMED] if work.effect_us / step_us >= MIN_SHARE]
    return tuple(f"{name}{in_region(name, pair.diff)}" for name in large)


def in_region(name: str, diff: Diff) -> str:
    """Return the annotation that holds nearly all of the change of work which also runs elsewhere.

    Args:
        name: the name of the work.
        diff: the two jobs.

    Returns:
        The words " in" and the name of the annotation; empty where no annotation holds nearly all of the change.
    """
    tree = diff.alignment
    part_before, part_after = diff.parts
    path_before, path_after = tree.path
    before_ns = part_before.sums(path_before, len(tree))[1] / part_before.repeats
    after_ns = part_after.sums(path_after, len(tree))[1] / part_after.repeats
    work = np.flatnonzero(np.array(tree.names) == name)
    by_region = pd.Series((after_ns - before_ns)[work]).groupby(tree.region[work]).sum()
    change_ns = by_region.to_numpy()
    whole_ns = change_ns.sum()
    if len(change_ns) < 2 or not whole_ns:
        return ""
    largest = int(np.abs(change_ns).argmax())
    root = int(by_region.index.to_numpy()[largest])
    is_there = root >= 0 and change_ns[largest] / whole_ns >= LIMITS.nearly_all
    return f" in {tree.names[root]}" if is_there else ""


def _visible_us(diff: Diff, most_us: float) -> float:
    """Return how much communication of a rank and step lost overlap with computation, µs; below 0 where it gained.

    It is no more than the change leaves open, and 0 where the jobs are not compared as a whole.

    Args:
        diff: the two jobs.
        most_us: the part of the change that is left open, µs; its sign is that of the result.
    """
    if any(job.steps is not None and len(job.steps) < len(job.graph.steps) for job in diff.parts):
        return 0.0
    before, after = diff.parts
    hidden_us = _hidden_us(after) - _hidden_us(before)
    exposed_us = _communication_us(after) - _communication_us(before) - hidden_us
    sign = np.sign(most_us)
    lost_us = min(sign * exposed_us, -sign * hidden_us, abs(most_us))
    return float(sign * max(0.0, lost_us))


def _hidden_us(job: ComparedPart) -> float:
    """Return how much communication of a rank and step runs beside computation, µs."""
    return _per_step_us(job, "hidden_us")


def _communication_us(job: ComparedPart) -> float:
    """Return how much communication of a rank and step there is, µs."""
    return _per_step_us(job, "communication_us")


def _per_step_us(job: ComparedPart, column: str) -> float:
    """Return a time of the table of overlap per rank and step, µs."""
    by_rank = overlap(job.graph).set_index("rank").loc[list(job.chosen_ranks)]
    return float(by_rank[column].sum()) / job.repeats


REST = Finding("rest", when=_when, short=_short)
