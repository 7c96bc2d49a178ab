"""The claim about host code that something outside of it interrupts: how often, in how many places, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.findings.claim import Claim, Says
from htagraph.graph.measures.steps import whole_steps
from htagraph.queries.interruptions import interrupted, interrupted_ranks, places_of
from htagraph.whatif.scenario import what_if

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["interruption_claims"]

_MIN_SHARE = 0.05
"""Share of the makespan that the job would be shorter by, at least; chosen: every machine interrupts code now and then.
Doubled, interruptions that cost 5 to 10 % are not named."""
_MAX_ROWS = 3
"""Activities that prove it, the longest; chosen as for other claims. Doubled, twice as many."""


def interruption_claims(graph: DependencyGraph) -> list[Claim]:
    """Return the claim about interruptions of host code, if the job would be shorter without them.

    Args:
        graph: the job.
    """
    found = interrupted(graph)
    makespan = int(graph.time.max()) - graph.origin_ns if len(graph.time) else 0
    if not len(found) or int(found.length.sum()) < _MIN_SHARE * makespan:
        return []
    outcome = what_if(graph).no_interruptions().run()
    if outcome.saved_ns < _MIN_SHARE * makespan:
        return []
    acts, ranks = graph.activities, interrupted_ranks(graph, found)
    rank = acts.rank[found.vertex >> 1]
    counts = {one: int((rank == one).sum()) for one in graph.ranks}
    activity = np.where(found.activity >= 0, found.activity, found.vertex >> 1)
    longest = np.argsort(-found.length, kind="stable")[:_MAX_ROWS]
    low, high = (each / 1000 for each in outcome.saved_range_ns)
    facts = {
        "count": len(found), "counts": counts, "shares": {one: 100 * share for one, share in ranks.shares.items()},
        "places": len(np.unique(places_of(graph, found.activity, found.vertex))),
        "least_us": int(found.length.min()) / 1000, "most_us": int(found.length.max()) / 1000,
        "pattern": ranks.pattern, "going": ranks.going, "together_percent": 100 * ranks.share,
        "chance_percent": 100 * ranks.by_chance, "percent": 100 * outcome.saved_ns / makespan,
        "makespan_us": makespan / 1000, "steps": whole_steps(graph), "activities": frozenset(activity.tolist()),
    }  # fmt: skip
    return [
        Claim(
            Says.INTERRUPTED, "", outcome.saved_ns / 1000, "us", interval=(low, high),
            rows=tuple(activity[longest].tolist()), facts=facts,
        )
    ]  # fmt: skip
