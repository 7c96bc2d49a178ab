"""The claim about what recording itself costs: host code that is recorded is slower than host code that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.findings.claim import Claim, Says

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.path_segments import Bound

__all__ = ["recording_claims"]


def recording_claims(graph: DependencyGraph, bound: Bound) -> list[Claim]:
    """Return the claim that the recorded job is slower than an unrecorded one, if the host that launches bounds it.

    How much slower is not in a recording. The host of a job without a device does the work itself, in few and long
    operators, which recording slows little.

    Args:
        graph: the job.
        bound: what bounds it.
    """
    acts = graph.activities
    if bound.cause != "host" or not acts.on_device.any():
        return []
    stacks = bool(of_kinds(acts.kind, (ActivityKind.PYTHON,)).any())
    return [Claim(Says.RECORDED, "", bound.causes["host"], "percent", facts={"stacks": stacks})]
