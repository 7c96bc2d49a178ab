"""One stage of a pipeline takes longer than the others, and the job would be shorter if it did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htagraph.findings.change import PredictedChange, gain_of, less_text
from htagraph.findings.finding import MEASURES, Claim, Finding, gain_in
from htagraph.findings.limits import MAX_LISTED, MIN_SHARE
from htagraph.findings.phrases import ranks_text, time_text
from htagraph.findings.results import Results
from htagraph.findings.waiting import waits_evidence
from htagraph.graph.measures.steps import usual_step_ns
from htagraph.queries.rank_speed import slow_stage
from htagraph.whatif.options import criteria_text
from htagraph.whatif.scenario import what_if

__all__ = ["SLOW_STAGE", "SlowStageClaim"]

_OWN_WORK = ["host", "computation", "memory"]
"""Kinds of what a rank does by itself."""


@dataclass(frozen=True, kw_only=True)
class SlowStageClaim(Claim):
    """One stage of a pipeline takes longer than the others; the figure is the gain with equal stages, µs."""

    own_us: float
    """The work of a rank of this stage in a step, µs."""
    least_us: float
    """The same of the other stage with the least work, µs."""
    most_us: float
    """The same of the other stage with most work, µs."""
    stages_beside: int
    """How many other stages there are."""
    waited_us: float = 0.0
    """How long another stage waits for this one in a step, µs; 0 where that is not known."""


def _when(results: Results) -> list[SlowStageClaim]:
    """Claim the stage if a replay with balanced stages would gain, unless its rank is the straggler of its peers."""
    graph, makespan, slow = results.graph, results.makespan_ns, results.slow
    stage = slow_stage(graph)
    if stage is None or slow.straggler in stage.ranks or not makespan:
        return []
    scenario, options = what_if(results.warm_graph), []
    for rank, factor in stage.even.items():
        wanted = {"rank": rank, "kind": _OWN_WORK}
        shown = round(factor, 3)  # to 0.1 %, so that the command is short
        scenario = scenario.scale(factor=shown, **wanted)
        options.append(f"{criteria_text(wanted)}:{shown}")
    outcome = scenario.run()
    if outcome.saved_ns < MIN_SHARE * makespan:
        return []
    ranks = slow.to_frame()
    charged = float(ranks.loc[ranks["rank"].isin(stage.ranks), "blamed_us"].sum())
    waited = charged / (stage.steps * len(stage.others))
    # waits of sends and receives at once add up to more
    left = (usual_step_ns(graph, graph.time) - stage.most_ns) / 1000
    gain = gain_of(outcome, makespan, results.steps)
    about = ", ".join(map(str, stage.ranks))
    words = _scale_options(options)
    change = PredictedChange("equal work in all stages", words, gain) if words else None
    claim = SlowStageClaim(
        "slow_stage",
        about,
        gain.value_us,
        "us",
        (gain.low_us, gain.high_us),
        gain=gain,
        change=change,
        ranks=tuple(stage.ranks),
        own_us=stage.own_ns / 1000,
        least_us=stage.least_ns / 1000,
        most_us=stage.most_ns / 1000,
        stages_beside=len(stage.others),
        waited_us=waited if waited <= left else 0.0,
    )
    return [claim]


def _words(claim: SlowStageClaim) -> str:
    least, most = time_text(claim.least_us), time_text(claim.most_us)
    s = "s" if len(claim.ranks) > 1 else ""
    beside = "s" if claim.stages_beside > 1 else ""
    who = "each" if beside else "the other"
    waited = f"; {who} waits {time_text(claim.waited_us)} for it" if claim.waited_us else ""
    range_text = most if least == most else f"{least} to {most}"
    whose = ranks_text(claim.ranks)
    works = f"work{'' if s else 's'} {time_text(claim.own_us)}"
    return (
        f"The pipeline stage{s} of {whose} {works} a step, the "
        f"other{beside} {range_text}{waited}. With equal stages {less_text(gain_in(claim))}."
    )


def _why(claim: SlowStageClaim) -> str:
    """Return how much longer the slow stage works than any stage beside it."""
    works = "work" if len(claim.ranks) > 1 else "works"
    longer_us = claim.own_us - claim.most_us
    return f"The stage of {ranks_text(claim.ranks)} {works} {time_text(longer_us)} longer a step than the others."


def _advice(claim: SlowStageClaim) -> str:
    """Return that the slow stage should do less, and every further stage more."""
    stages = "stages" if len(claim.ranks) > 1 else "stage"
    further = "others" if claim.stages_beside > 1 else "other"
    return f"Give the {stages} of {ranks_text(claim.ranks)} less to do, and the {further} more."


def _scale_options(scales: Sequence[str]) -> tuple[str, ...]:
    """Return the options that make the stages equal, by the values of `--scale`; none if too many for a command."""
    if len(scales) > MAX_LISTED:
        return ()
    return tuple(word for scale in scales for word in ("--scale", scale))


SLOW_STAGE = Finding(
    "slow_stage", needs=MEASURES, when=_when, short=_words, why=_why, evidence=waits_evidence,
    advice=_advice,
)  # fmt: skip
