"""Where other commands speak of what is late: that host code is interrupted, which may be why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.findings.phrases import command_line
from htagraph.queries.interruptions import interrupted

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["interruption_note"]


def interruption_note(graph: DependencyGraph, inputs: Sequence[str]) -> list[str]:
    """Return the sentence that host code is interrupted, where the summary says so; else nothing.

    Args:
        graph: the job.
        inputs: the words of the command line that choose what is read.

    Example:
        >>> import htagraph as hg
        >>> interruption_note(hg.load("data/demo"), ["data/demo"])
        []
    """
    if not len(interrupted(graph)):
        return []
    from htagraph.findings.conclusions.interruption_claims import interruption_claims  # it loads what replays

    return [
        f"Host code is interrupted{_where(claim.facts['counts'])}. To see how often, and what it costs: "
        f"{command_line('summary', inputs)}"
        for claim in interruption_claims(graph)
    ]


def _where(counts: dict[int, int]) -> str:
    """Return on how many ranks, of the number of interruptions of each; empty for a single rank."""
    some = sum(count > 0 for count in counts.values())
    if len(counts) == 1:
        return ""
    return " on all ranks" if some == len(counts) else f" on {some} of {len(counts)} ranks"
