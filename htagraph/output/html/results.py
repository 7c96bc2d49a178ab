"""What the sections of a report share: the job, its summary, its critical path, and the words that read it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from htagraph.analyses.collectives import collectives
from htagraph.analyses.critical_path import critical_path
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.summary import Summary, summarize
from htagraph.queries.paths import CriticalPath

__all__ = ["Results"]


@dataclass(frozen=True)
class Results:
    """The results that a report shows, each computed once."""

    graph: DependencyGraph
    inputs: Sequence[str]
    """The words of a command line that read the same."""
    key: str = "job"
    """The id of the timeline that links lead to."""

    @cached_property
    def summary(self) -> Summary:
        """The summary of the job."""
        return summarize(self.graph)

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the whole job."""
        return critical_path(self.graph)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """Each rank's part in each collective."""
        return collectives(self.graph)

    def at(self, activity: int) -> str:
        """Return the address of an activity in the timeline."""
        return f"#on={self.key}&event={activity}"

    def between(self, start_us: float, end_us: float, activity: int = -1) -> str:
        """Return the address of a stretch of time in the timeline, and of an activity in it."""
        selected = f"&event={activity}" if activity >= 0 else ""
        return f"#on={self.key}&from={round(1000 * start_us)}&to={round(1000 * end_us)}{selected}"

    def rows(self, activities: np.ndarray) -> pd.DataFrame:
        """Return activities as a table: ``name``, ``rank``, ``where``, ``step``, ``start_us``, ``duration_us``."""
        graph, acts = self.graph, self.graph.activities
        start, end = graph.time[2 * activities], graph.time[2 * activities + 1]
        return pd.DataFrame({
            "name": [graph.names[each] for each in acts.name[activities].tolist()],
            "rank": acts.rank[activities].astype(np.int64),
            "where": [graph.lane_of(each).label for each in activities.tolist()],
            "start_us": (start - graph.origin_ns) / 1000,
            "duration_us": (end - start) / 1000,
        })  # fmt: skip
