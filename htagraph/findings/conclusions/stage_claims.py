"""The claim about a pipeline whose stages are unequal: which takes longest, how others wait for it, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.findings.claim import Claim, Says
from htagraph.graph.measures.steps import whole_steps
from htagraph.queries.rank_speed import slow_stage
from htagraph.whatif.options import criteria_text
from htagraph.whatif.scenario import what_if

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["stage_claims"]

_MIN_SHARE = 0.05
"""Share of the makespan that equal stages save, at least; chosen: less is not worth moving layers for. Doubled, a stage
that costs 5 to 10 % is not named."""
_OWN_WORK = ["host", "computation", "memory"]
"""Kinds of what a rank does by itself."""
_DIGITS = 3
"""Decimals of a factor that is shown and replayed; chosen: 0.1 %. Doubled, only the command gets longer."""


def stage_claims(graph: DependencyGraph, slow: Stragglers) -> list[Claim]:
    """Return the claim about the stage of a pipeline that takes longer than the others, if balance would gain.

    The gain is a replay in which every stage does the mean of what the stages do. A stage whose rank is the straggler
    of its peers is left to that claim.

    Args:
        graph: the job.
        slow: result of `htagraph.stragglers`.
    """
    stage = slow_stage(graph)
    makespan = int(graph.time.max()) - graph.origin_ns if len(graph.time) else 0
    if stage is None or slow.straggler in stage.ranks or not makespan:
        return []
    scenario, options = what_if(graph), []
    for rank, factor in stage.even.items():
        wanted = {"rank": rank, "kind": _OWN_WORK}
        scenario = scenario.scale(factor=round(factor, _DIGITS), **wanted)
        options.append(f"{criteria_text(wanted)}:{round(factor, _DIGITS)}")
    outcome = scenario.run()
    if outcome.saved_ns < _MIN_SHARE * makespan:
        return []
    gain, ranks = outcome.saved_ns / 1000, slow.to_frame()
    charged = float(ranks.loc[ranks["rank"].isin(stage.ranks), "blamed_us"].sum())
    low, high = (each / 1000 for each in outcome.saved_range_ns)
    facts = {
        "ranks": stage.ranks, "own_us": stage.own_ns / 1000, "least_us": stage.least_ns / 1000,
        "most_us": stage.most_ns / 1000, "others": len(stage.others), "options": tuple(options),
        "waited_us": charged / (stage.steps * len(stage.others)), "percent": 100 * outcome.saved_ns / makespan,
        "makespan_us": makespan / 1000, "steps": whole_steps(graph),
    }  # fmt: skip
    about = ", ".join(map(str, stage.ranks))
    return [Claim(Says.SLOW_STAGE, about, gain, "us", interval=(low, high), facts=facts)]
