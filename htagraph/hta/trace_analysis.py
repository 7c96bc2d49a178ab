"""TraceAnalysis with the methods, defaults and results of Holistic Trace Analysis, on the dependency graph.

Change ``from hta.trace_analysis import TraceAnalysis`` to ``from htagraph.trace_analysis import TraceAnalysis``: names,
arguments, columns, units (µs) and rounding are those of HTA 0.6.1; docs/HTA.md lists where the numbers differ, and why.
Each method is a function of `htagraph.hta.shapes`, which gives the results of `htagraph.analyses` HTA's shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes import breakdowns, counters, launches
from htagraph.hta.shapes.counters import TimeSeriesTypes, get_cupti_counter_data_with_operators
from htagraph.hta.shapes.job import TraceFiles, open_job

if TYPE_CHECKING:
    from htagraph.hta.analyzers.critical_path_analysis import CPGraph

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]


class TraceAnalysis:
    """A job's traces, and HTA's analyses of them.

    Example:
        >>> from htagraph.hta.trace_analysis import TraceAnalysis
        >>> analysis = TraceAnalysis(trace_dir="data/demo")
        >>> analysis.get_temporal_breakdown(visualize=False).columns[0]
        'rank'
    """

    def __init__(
        self, trace_files: TraceFiles = None, trace_dir: str = "", include_last_profiler_step: bool | None = False
    ) -> None:
        """Read the traces.

        Args:
            trace_files: a map from rank to file, or files whose headers name their ranks.
            trace_dir: the folder to read where no files are given.
            include_last_profiler_step: keep the last ProfilerStep, which HTA leaves out since it may be cut off.

        Raises:
            HtagraphError: a file or folder is absent or no trace, or two files claim one rank.
        """
        self.job = open_job(trace_files, trace_dir, include_last_profiler_step=include_last_profiler_step)
        self.t = Trace.of(self.job)

    # where the time goes
    get_temporal_breakdown = breakdowns.get_temporal_breakdown
    get_comm_comp_overlap = breakdowns.get_comm_comp_overlap
    get_idle_time_breakdown = breakdowns.get_idle_time_breakdown
    get_gpu_kernel_breakdown = breakdowns.get_gpu_kernel_breakdown
    get_gpu_user_annotation_breakdown = breakdowns.get_gpu_user_annotation_breakdown
    get_gpu_kernels_with_user_annotations = breakdowns.get_gpu_kernels_with_user_annotations

    # launches, and what lies behind them
    get_cuda_kernel_launch_stats = launches.get_cuda_kernel_launch_stats
    get_aten_op_kernels_and_delay = launches.get_aten_op_kernels_and_delay
    get_frequent_cuda_kernel_sequences = launches.get_frequent_cuda_kernel_sequences
    get_profiler_steps = launches.get_profiler_steps
    get_potential_stragglers = launches.get_potential_stragglers

    # counters
    get_queue_length_time_series = counters.get_queue_length_time_series
    get_queue_length_summary = counters.get_queue_length_summary
    get_queue_length_summary_from_time_series = counters.get_queue_length_summary_from_time_series
    get_time_spent_blocked_on_full_queue = counters.get_time_spent_blocked_on_full_queue
    get_memory_bw_time_series = counters.get_memory_bw_time_series
    get_memory_bw_summary = counters.get_memory_bw_summary
    generate_trace_with_counters = counters.generate_trace_with_counters
    get_cupti_counter_data_with_operators = get_cupti_counter_data_with_operators

    # the critical path, whose module brings networkx, which nothing else here needs
    def critical_path_analysis(
        self,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: Sequence[str] | None = None,
    ) -> tuple[CPGraph, bool] | None:
        """Return the critical path of a rank through one or several instances of an annotation.

        The arguments and the result are those of `CriticalPathAnalysis.critical_path_analysis`.
        """
        from htagraph.hta.analyzers.critical_path_analysis import critical_path_analysis

        return critical_path_analysis(self, rank, annotation, instance_id, data_load_events, stacklevel=3)

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        """Write a copy of the trace with the critical path marked, and return the path of the file.

        The arguments are those of `CriticalPathAnalysis.overlay_critical_path_analysis`.
        """
        from htagraph.hta.shapes.path_files import overlay_critical_path_analysis

        shown = only_show_critical_events, show_all_edges
        return overlay_critical_path_analysis(self, rank, critical_path_graph, output_dir, *shown)
