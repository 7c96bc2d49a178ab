"""The critical path by HTA's own path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.hta.critical_path.analysis import (
    BoundType,
    CPEdge,
    CPEdgeType,
    CPGraph,
    CPNode,
    critical_path_analysis,
    overlay_critical_path_analysis,
    restore_cpgraph,
)

if TYPE_CHECKING:
    from htagraph.hta.common.trace import Trace

__all__ = ["BoundType", "CPEdge", "CPEdgeType", "CPGraph", "CPNode", "CriticalPathAnalysis", "restore_cpgraph"]


class CriticalPathAnalysis:
    """HTA's class behind `TraceAnalysis.critical_path_analysis` and `overlay_critical_path_analysis`."""

    @classmethod
    def critical_path_analysis(
        cls,
        t: Trace,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None = None,
        data_load_events: Sequence[str] | None = None,
    ) -> tuple[CPGraph, bool] | None:
        """Return the graph of a window with its critical path, and whether there is one.

        Args:
            t: a job that was read.
            rank: one of its ranks.
            annotation: part of an annotation's name; ``""`` for the whole trace.
            instance_id: which of its occurrences, or the first and the last of several; the first if None.
            data_load_events: parts of the names of what loads data.

        Returns:
            As `TraceAnalysis.critical_path_analysis`.
        """
        return critical_path_analysis(t.job, rank, annotation, instance_id, data_load_events, stacklevel=3)

    @classmethod
    def overlay_critical_path_analysis(
        cls,
        t: Trace,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        """Write the trace again, with the critical path marked, and return the path of the file.

        Args:
            t: a job that was read.
            rank: one of its ranks.
            critical_path_graph: what `critical_path_analysis` returned.
            output_dir: where to write; made if it is not there.
            only_show_critical_events: leave out other events.
            show_all_edges: draw all edges, not only those of the path that cross lanes.
        """
        return overlay_critical_path_analysis(
            t.job, rank, critical_path_graph, output_dir,
            only_show_critical_events=only_show_critical_events, show_all_edges=show_all_edges,
        )  # fmt: skip
