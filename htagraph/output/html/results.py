"""What the sections of a report share: the job's results, its summary, and the addresses of its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from htagraph.findings.evidence import Place
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.summary import Summary, summary_of

__all__ = ["PageResults"]


class PageResults(Results):
    """The results that a report shows, each computed once.

    Args:
        graph: the job.
        words: the words of a command line that read the same.
        key: the id of the timeline that links lead to.
    """

    def __init__(self, graph: DependencyGraph, words: Sequence[str], key: str = "job") -> None:
        super().__init__(graph)
        self.words, self.key = words, key

    @cached_property
    def summary(self) -> Summary:
        """The summary of the job."""
        return summary_of(self)

    def at(self, activity: int) -> str:
        """Return the address of an activity in the timeline."""
        return f"#on={self.key}&event={activity}"

    def between(self, start_us: float, end_us: float, activity: int = -1) -> str:
        """Return the address of a stretch of time in the timeline, and of an activity in it."""
        selected = f"&event={activity}" if activity >= 0 else ""
        return f"#on={self.key}&from={round(1000 * start_us)}&to={round(1000 * end_us)}{selected}"

    def address(self, place: Place | None) -> str:
        """Return the address of a place; empty for nowhere in particular."""
        if place is None:
            return ""
        if place.start_us is None:
            return self.at(place.activity)
        return self.between(place.start_us, place.end_us, place.activity)
