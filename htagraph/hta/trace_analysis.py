"""TraceAnalysis with the methods, defaults and results of Holistic Trace Analysis, on the dependency graph.

Change ``from hta.trace_analysis import TraceAnalysis`` to ``from htagraph.trace_analysis import TraceAnalysis``: names,
arguments, columns, units (µs) and rounding are those of HTA 0.6.1; docs/HTA.md lists where the numbers differ, and why.
Nothing is computed here: `htagraph.hta` gives the results of `htagraph.analyses` HTA's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes import breakdowns, counters, cupti, launches, patterns, stragglers
from htagraph.hta.shapes.counters import TimeSeriesTypes
from htagraph.hta.shapes.job import TraceFiles, open_job
from htagraph.output.plot.hta_shapes import breakdowns as breakdown_figures
from htagraph.output.plot.hta_shapes.patterns import patterns_figure
from htagraph.output.plot.hta_shapes.show import show

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.hta.critical_path.analysis import CPGraph

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]

Ranks = Sequence[int] | None


class TraceAnalysis:
    """A job's traces, and HTA's analyses of them.

    Example:
        >>> from htagraph.hta.trace_analysis import TraceAnalysis
        >>> analysis = TraceAnalysis(trace_dir="data/demo")
        >>> analysis.get_temporal_breakdown(visualize=False).columns[0]
        'rank'
    """

    def __init__(
        self,
        trace_files: TraceFiles = None,
        trace_dir: str = "",
        include_last_profiler_step: bool | None = False,
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

    def get_temporal_breakdown(self, visualize: bool = True) -> pd.DataFrame:
        """Return how each rank's time splits into computation, other device work and idle time.

        Args:
            visualize: show a stacked bar per rank.

        Returns:
            One row per rank: ``rank``, ``idle_time(us)``, ``compute_time(us)``, ``non_compute_time(us)``,
            ``kernel_time(us)`` (first start to last end of device work), and ``idle_time_pctg``,
            ``compute_time_pctg``, ``non_compute_time_pctg`` of it, rounded to 2 digits.
        """
        table = breakdowns.temporal_breakdown(self.job)
        if visualize:
            show(breakdown_figures.temporal_breakdown(table))
        return table

    def get_comm_comp_overlap(self, visualize: bool = True) -> pd.DataFrame:
        """Return the share of each rank's communication that overlaps with computation.

        Args:
            visualize: show a bar per rank.

        Returns:
            One row per rank: ``rank``, ``comp_comm_overlap_pctg`` (rounded to 2 digits, NaN without communication).
        """
        table = breakdowns.comm_comp_overlap(self.job)
        if visualize:
            show(breakdown_figures.comm_comp_overlap(table))
        return table

    def get_idle_time_breakdown(
        self,
        ranks: Ranks = None,
        streams: Sequence[int] | None = None,
        visualize: bool = True,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
        consecutive_kernel_delay: int = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Return why streams are idle: ``host_wait``, ``kernel_wait`` or ``other``.

        Args:
            ranks: rank 0 if not given.
            streams: all if not given.
            visualize: show a stacked bar per stream.
            visualize_pctg: of shares, not of µs.
            show_idle_interval_stats: return the second table too.
            consecutive_kernel_delay: gaps shorter than this (µs) that the host did not cause are ``kernel_wait``.

        Returns:
            (``rank``, ``stream``, ``idle_category``, ``idle_time``, ``idle_time_ratio``; and, if asked for, the
            statistics of the gaps by ``idle_category``: ``rank``, ``stream``, ``count``, ``mean``, ``std``, ``min``,
            ``25%``, ``50%``, ``75%``, ``max``, else None), rounded to 2 digits.
        """
        table, pauses = breakdowns.idle_time_breakdown(
            self.job, ranks, streams, consecutive_kernel_delay, show_idle_interval_stats=show_idle_interval_stats
        )
        if visualize:
            show(breakdown_figures.idle_time_breakdown(table, percent=visualize_pctg))
        return table, pauses

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return how the device time splits by kind of kernel and by kernel.

        Args:
            visualize: show the shares of the kinds, and of the kernels of each kind and rank.
            duration_ratio: kernels beyond this quantile of the cumulative time are summed up as ``others``.
            num_kernels: how many kernels of each kind and rank have a row of their own.
            include_memory_kernels: count copies and sets.
            image_renderer: plotly's name of the renderer that shows the figures.

        Returns:
            (``kernel_type``, ``sum`` (µs), ``percentage``; and ``name``, ``sum (us)``, ``max (us)``, ``min (us)``,
            ``stddev``, ``mean (us)``, ``kernel_type``, ``rank``).
        """
        types, kernels = breakdowns.gpu_kernel_breakdown(
            self.job, duration_ratio, num_kernels, include_memory_kernels=include_memory_kernels
        )
        if visualize:
            show(*breakdown_figures.gpu_kernel_breakdown(types, kernels), renderer=image_renderer)
        return types, kernels

    def get_gpu_user_annotation_breakdown(
        self,
        use_gpu_annotation: bool = True,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: Sequence[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame | None:
        """Return the time in each user annotation.

        Args:
            use_gpu_annotation: on the device, else on the host.
            visualize: show the shares of each rank.
            duration_ratio: as for kernels.
            num_kernels: how many annotations of a rank have a row of their own.
            allowlist_patterns: annotations whose names contain one of these texts have one in any case.
            image_renderer: plotly's name of the renderer that shows the figures.

        Returns:
            ``name``, ``sum (us)``, ``max (us)``, ``min (us)``, ``stddev``, ``mean (us)``, ``rank``; None if no trace
            has such annotations.
        """
        table = breakdowns.user_annotation_breakdown(
            self.job, duration_ratio, num_kernels, allowlist_patterns, use_gpu_annotation=use_gpu_annotation
        )
        if visualize and table is not None:
            show(*breakdown_figures.user_annotation_breakdown(table), renderer=image_renderer)
        return table

    def get_gpu_kernels_with_user_annotations(
        self, rank: int, expand_names: bool = True, shorten_names: bool = True
    ) -> pd.DataFrame | None:
        """Return the device events of a rank with the innermost user annotation over each.

        Args:
            rank: which rank.
            expand_names: add ``s_name``, ``s_cat`` and ``s_user_annotation``, the texts behind the numbers.
            shorten_names: without template arguments and parameters.

        Returns:
            The columns of the rank's frame and ``user_annotation`` (a symbol's number, -1 for none); None if no
            trace has annotations on the device.
        """
        return breakdowns.gpu_kernels_with_user_annotations(
            self.job, rank, expand_names=expand_names, shorten_names=shorten_names
        )

    def get_cuda_kernel_launch_stats(
        self,
        ranks: Ranks = None,
        runtime_cutoff: int = 50,
        launch_delay_cutoff: int = 100,
        include_memory_events: bool = True,
        visualize: bool = True,
    ) -> dict[int, pd.DataFrame]:
        """Return the duration of every launch and of its device work, and the delay between them.

        Args:
            ranks: rank 0 if not given.
            runtime_cutoff: µs beyond which a launching call is shown as an outlier.
            launch_delay_cutoff: µs beyond which a delay is.
            include_memory_events: copies and sets too.
            visualize: show short kernels, runtime outliers and delay outliers.

        Returns:
            For each rank ``correlation``, ``cpu_duration``, ``gpu_duration``, ``launch_delay`` (µs).
        """
        tables = launches.cuda_kernel_launch_stats(self.job, ranks, include_memory_events=include_memory_events)
        if visualize:
            for rank, table in tables.items():
                show(*launches.launch_figures(table, rank, runtime_cutoff, launch_delay_cutoff))
        return tables

    def get_aten_op_kernels_and_delay(
        self, ranks: Ranks = None, sort_by: Sequence[str] | None = None, visualize: bool = True
    ) -> dict[int, pd.DataFrame]:
        """Return which kernels ATen operators launch, and how long that takes.

        Args:
            ranks: rank 0 if not given.
            sort_by: columns to sort by, descending; ``occurrence_count`` if not given.
            visualize: show the tables, as HTA does.

        Returns:
            For each rank ``aten_op_name``, ``kernel_sequence``, ``occurrence_count``, ``avg_aten_op_launch_delay``
            (operator to first launch) and ``avg_runtime_delay`` (first launch to kernel), µs, rounded to 3 digits.
        """
        tables = launches.aten_op_kernels_and_delay(self.job, ranks, sort_by)
        if visualize:
            show(*(launches.aten_op_figure(table, rank) for rank, table in tables.items()))
        return tables

    def get_frequent_cuda_kernel_sequences(
        self,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = False,
        compress_other_kernels: bool = True,
    ) -> pd.DataFrame:
        """Return the kernel sequences that operators launch most often, and mark them in a copy of the trace.

        Args:
            operator_name: a part of the operator's or annotation's name.
            output_dir: where the marked trace is written, as ``overlaid_<file>``.
            min_pattern_len: kernels that a sequence has at least.
            rank: which rank.
            top_k: how many sequences are marked.
            visualize: show them.
            compress_other_kernels: shorten what is not part of them.

        Returns:
            ``pattern`` (names joined by ``|``), ``count``, ``GPU kernel duration (us)``, ``CPU op duration (us)``,
            most frequent first.
        """
        table = patterns.frequent_cuda_kernel_sequences(
            self.job, operator_name, output_dir, min_pattern_len, rank, top_k,
            compress_other_kernels=compress_other_kernels,
        )  # fmt: skip
        if visualize and len(table):
            show(patterns_figure(table, f"{operator_name} on rank {rank}", top_k))
        return table

    def get_queue_length_time_series(self, ranks: Ranks = None) -> dict[int, pd.DataFrame]:
        """Return each stream's queue length (kernels and copies launched, not started) at every change.

        Args:
            ranks: rank 0 if not given.

        Returns:
            For each rank that has any, indexed by event: ``ts``, ``pid``, ``tid``, ``stream``, ``queue_length``.
        """
        return counters.queue_length_time_series(self.job, ranks)

    def get_queue_length_summary(self, ranks: Ranks = None) -> pd.DataFrame | None:
        """Return statistics of the queue length of each stream.

        Args:
            ranks: rank 0 if not given.

        Returns:
            Indexed by ``rank`` and ``stream``, the columns of `DataFrame.describe` under ``queue_length``; None if
            nothing was launched.
        """
        return counters.queue_length_summary(self.job, ranks)

    def get_queue_length_summary_from_time_series(
        self, queue_length_dict: Mapping[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """Return what `get_queue_length_summary` does, from time series that were computed before.

        Args:
            queue_length_dict: what `get_queue_length_time_series` returned.

        Returns:
            As `get_queue_length_summary`.
        """
        return counters.queue_length_summary_from_time_series(queue_length_dict)

    def get_time_spent_blocked_on_full_queue(
        self, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int = 1024
    ) -> pd.DataFrame:
        """Return how long each stream's queue was full.

        Args:
            queue_length_dict: what `get_queue_length_time_series` returned.
            max_queue_length: the queue length at which a queue is full.

        Returns:
            ``rank``, ``stream``, ``duration_at_max_queue_length`` (µs) and its share of the rank's trace,
            ``relative_duration_at_max_queue_length``; a row per stream that was full.
        """
        return counters.time_spent_blocked_on_full_queue(self.job, queue_length_dict, max_queue_length)

    def get_memory_bw_time_series(self, ranks: Ranks = None) -> dict[int, pd.DataFrame]:
        """Return the bandwidth of copies and sets by kind, at every change.

        Args:
            ranks: rank 0 if not given.

        Returns:
            For each rank that has any: ``ts``, ``pid``, ``name``, ``memory_bw_gbps`` (GB/s).
        """
        return counters.memory_bw_time_series(self.job, ranks)

    def get_memory_bw_summary(self, ranks: Ranks = None) -> pd.DataFrame | None:
        """Return statistics of the bandwidth while there is any.

        Args:
            ranks: rank 0 if not given.

        Returns:
            Indexed by ``rank`` and ``name``, the columns of `DataFrame.describe` under ``memory_bw_gbps``; None if
            nothing was copied.
        """
        return counters.memory_bw_summary(self.job, ranks)

    def generate_trace_with_counters(
        self,
        time_series: TimeSeriesTypes | None = None,
        ranks: Ranks = None,
        output_suffix: str = "_with_counters",
    ) -> None:
        """Write copies of the traces with queue lengths and bandwidths as counters.

        Args:
            time_series: which; both if not given.
            ranks: rank 0 if not given.
            output_suffix: put before ``.json`` in the name of the file.
        """
        counters.write_trace_with_counters(self.job, ranks, time_series, output_suffix)

    def get_profiler_steps(self) -> list[int]:
        """Return the profiler steps that are analysed.

        Returns:
            Their numbers, ascending.
        """
        return stragglers.profiler_steps(self.job)

    def get_potential_stragglers(
        self,
        profiler_steps: Sequence[int] | None = None,
        num_candidates: int = 2,
        visualize: bool = False,
        straggler_identification_impl: Callable[..., Any] | None = None,
    ) -> list[int]:
        """Return the ranks that arrive late at collectives most often.

        Args:
            profiler_steps: which steps; all if not given.
            num_candidates: the number of ranks to return at most.
            visualize: show the long communication kernels over time, those in which the ranks differ most, and how
                late each rank starts them.
            straggler_identification_impl: HTA's hook for other metrics: called with the frame of these steps, the
                symbol table, the number of candidates and ``visualize``, it returns how often each rank is one.

        Returns:
            Ranks. `htagraph.stragglers` also reports who waited for whom, for how long and why.

        Raises:
            ValueError: none of the steps was recorded.
        """
        late_starts = stragglers.potential_stragglers(
            self.job, profiler_steps, num_candidates, straggler_identification_impl
        )
        if visualize and late_starts:
            show(*stragglers.straggler_figures(self.job, profiler_steps))
        return late_starts

    def get_cupti_counter_data_with_operators(self, ranks: Ranks = None) -> list[pd.DataFrame]:
        """Return the hardware counters of each kernel with the operators that launched it.

        Args:
            ranks: rank 0 if not given.

        Returns:
            For each rank with counters: the columns of its frame, the counters, ``index_runtime``, ``op_stack``,
            ``top_level_op``, ``bottom_level_op``.
        """
        return cupti.cupti_counter_data_with_operators(self.job, ranks)

    def critical_path_analysis(
        self,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: Sequence[str] | None = None,
    ) -> tuple[CPGraph, bool] | None:
        """Return the critical path of a rank through one or several instances of an annotation.

        Args:
            rank: which rank.
            annotation: a part of the annotation's name; ``""`` for the whole trace.
            instance_id: which of its occurrences, or the first and the last of several; the first if None.
            data_load_events: parts of the names of what loads data.

        Returns:
            (the graph with its critical path, whether there is one); None if there is no such annotation.
        """
        from htagraph.hta.critical_path import (
            analysis as critical_path,  # brings networkx, which nothing else here needs
        )

        return critical_path.critical_path_analysis(
            self.job, rank, annotation, instance_id, data_load_events, stacklevel=3
        )

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        """Write a copy of the trace with the critical path marked.

        Args:
            rank: which rank.
            critical_path_graph: what `critical_path_analysis` returned.
            output_dir: where to write; made if it is not there.
            only_show_critical_events: leave out other events.
            show_all_edges: draw all edges, not only those of the path that cross lanes.

        Returns:
            The path of the file.
        """
        from htagraph.hta.critical_path import analysis as critical_path

        return critical_path.overlay_critical_path_analysis(
            self.job, rank, critical_path_graph, output_dir,
            only_show_critical_events=only_show_critical_events, show_all_edges=show_all_edges,
        )  # fmt: skip
