"""What HTA says of launches: statistics, ATen operators, kernel sequences, ranks that start late.

Each function whose name begins with ``get_`` is a method of `TraceAnalysis`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.analyses.late_starts import late_starts
from htagraph.analyses.launch_stats import launch_stats
from htagraph.analyses.operator_kernels import operator_kernels
from htagraph.core.arrays import Array
from htagraph.core.kinds import ADDED, ActivityKind
from htagraph.core.naming import is_memory_call, names_that
from htagraph.core.parents import nearest
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes import figures
from htagraph.hta.shapes.frame import in_whole, smallest_type
from htagraph.hta.shapes.job import HasJob, HtaJob, Ranks, analyzer
from htagraph.hta.shapes.names import step_of, under_main
from htagraph.hta.utils.utils import is_comm_kernel, is_valid_directory
from htagraph.queries.kernel_sequences import sequences_below

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "get_aten_op_kernels_and_delay", "get_cuda_kernel_launch_stats", "get_frequent_cuda_kernel_sequences",
    "get_potential_stragglers", "get_profiler_steps",
]  # fmt: skip

_LAUNCH = {"launch_us": "cpu_duration", "work_us": "gpu_duration", "delay_us": "launch_delay"}
_ATEN = {
    "operator": "aten_op_name", "kernel_sequence": "kernel_sequence", "count": "occurrence_count",
    "launch_delay_us": "avg_aten_op_launch_delay", "kernel_delay_us": "avg_runtime_delay",
}  # fmt: skip
_PATTERNS = {
    "pattern": ("pattern", "str"), "count": ("count", "int64"), "kernel_us": ("GPU kernel duration (us)", "float64"),
    "operator_us": ("CPU op duration (us)", "float64"),
}  # fmt: skip


def get_cuda_kernel_launch_stats(
    self: HasJob,
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
        launch_delay_cutoff: µs beyond which a delay is shown as an outlier.
        include_memory_events: copies and sets too.
        visualize: show short kernels, runtime outliers and delay outliers.

    Returns:
        For each rank ``correlation``, ``cpu_duration``, ``gpu_duration``, ``launch_delay`` (µs), in the order of the
        file.
    """
    job, acts = self.job, self.job.graph.activities
    native = launch_stats(job.graph).rename(columns=_LAUNCH)
    if not include_memory_events:
        of_memory = names_that(is_memory_call, job.graph.names)
        native = native[~of_memory[acts.name[native["launch"].to_numpy()]]]
    tables = {}
    for rank in job.ranks(ranks):
        table = native[(native["rank"] == rank).to_numpy()]
        table = table.iloc[np.lexsort((acts.event[table["work"].to_numpy()], acts.event[table["launch"].to_numpy()]))]
        correlation = table["correlation"].to_numpy()
        kept_as = smallest_type(job.of_rank(rank).events.arg("correlation"))
        times = in_whole(job, {name: table[name].to_numpy() for name in _LAUNCH.values()})
        tables[rank] = pd.DataFrame({"correlation": correlation.astype(kept_as), **times})
        if not len(table):
            job.warn("no launch with its device work is in the trace", [rank])
    if visualize:
        for rank, table in tables.items():
            figures.show(*figures.launch_stats(table, f"rank {rank}", runtime_cutoff, launch_delay_cutoff))
    return tables


def get_aten_op_kernels_and_delay(
    self: HasJob, ranks: Ranks = None, sort_by: Sequence[str] | None = None, visualize: bool = True
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
    native = operator_kernels(self.job.graph, op="aten::*", memory=False)
    tables = {}
    for rank in self.job.ranks(ranks):
        table = native.loc[native["rank"] == rank, list(_ATEN)].rename(columns=_ATEN)
        table = table.sort_values(["aten_op_name", "kernel_sequence"], ignore_index=True)
        table = table.sort_values(list(sort_by or ["occurrence_count"]), ascending=False)
        tables[rank] = table.round({"avg_aten_op_launch_delay": 3, "avg_runtime_delay": 3})
        if not len(table):
            self.job.warn("no ATen operator launches a kernel", [rank])
    if visualize:
        figures.show(*(figures.operator_kernels(table, f"rank {rank}") for rank, table in tables.items()))
    return tables


def get_frequent_cuda_kernel_sequences(
    self: HasJob,
    operator_name: str,
    output_dir: str,
    min_pattern_len: int = 3,
    rank: int = 0,
    top_k: int = 5,
    visualize: bool = False,
    compress_other_kernels: bool = True,
) -> pd.DataFrame:
    """Return the kernel sequences that operators launch most often, and mark them in a copy of the trace.

    Of operators within one another that have this text in their names, only the outermost counts. (HTA counts only the
    operators at the least depth of all, and so loses the forward calls where the backward calls lie less deep.)

    Args:
        operator_name: a part of the operator's or annotation's name.
        output_dir: where the marked trace is written, as ``overlaid_<file>``; an existing folder.
        min_pattern_len: the least number of kernels in a sequence.
        rank: which rank.
        top_k: how many sequences are marked.
        visualize: show them.
        compress_other_kernels: shorten the events that are no part of a marked sequence.

    Returns:
        ``pattern`` (names joined by ``|``), ``count``, ``GPU kernel duration (us)``, ``CPU op duration (us)``,
        most frequent first; empty, and no file is written, where there are none.
    """
    from htagraph.output.export.patterns import overlay_patterns  # brings numba

    self.job.of_rank(rank)  # refuses a rank that was not read
    graph = self.job.graph
    if not operator_name:
        return _nothing("operator_name must be part of an operator's name")
    if not is_valid_directory(output_dir, must_be_writable=True).success:
        return _nothing(f"output_dir {output_dir!r} is no folder that can be written to")
    above = _hta_parents(graph, rank)
    sequences = sequences_below(graph, _roots(graph, rank, above, operator_name), above, min_pattern_len)
    if not len(sequences.root):
        return _nothing(f"no operator with {operator_name!r} in its name has {min_pattern_len} kernels on rank {rank}")
    native = sequences.to_frame().sort_values(["count", "pattern"], ascending=[False, True])
    target = Path(output_dir) / f"overlaid_{Path(self.job.files[rank]).name}"
    overlay_patterns(sequences, native.index.to_numpy()[: max(0, top_k)], rank, target, compress=compress_other_kernels)
    renamed = {name: shown for name, (shown, _) in _PATTERNS.items()}
    table = native.rename(columns=renamed)[list(renamed.values())].reset_index(drop=True)
    if visualize:
        figures.show(figures.patterns(table, f"{operator_name} on rank {rank}", top_k))
    return table


def _nothing(why: str) -> pd.DataFrame:
    warnings.warn(f"no frequent kernel sequences: {why}", stacklevel=3)
    return pd.DataFrame({shown: pd.Series(dtype=dtype) for shown, dtype in _PATTERNS.values()})


def _roots(graph: DependencyGraph, rank: int, above: Array, text: str) -> Array:
    """Return the outermost of a rank's host activities with a text in their name."""
    acts = graph.activities
    out = acts.on_device | np.isin(acts.kind, ADDED)
    wanted = names_that(lambda name: text in name, graph.names)[acts.name] & ~out & (acts.rank == rank)
    found = np.flatnonzero(wanted)
    return found[nearest(above, wanted, above[found]) < 0]


def _hta_parents(graph: DependencyGraph, rank: int) -> Array:
    """Return the parent of each activity as HTA links it, see `under_main`."""
    acts = graph.activities
    host = (acts.rank == rank) & ~acts.on_device & (acts.kind != ActivityKind.BOUNDARY)
    above = np.where(acts.on_device, acts.cause, acts.parent).astype(np.int64)
    return under_main(
        above, host, acts.lane, acts.start, acts.end, lambda test: names_that(test, graph.names)[acts.name]
    )


def get_profiler_steps(self: HasJob) -> list[int]:
    """Return the profiler steps that are analysed.

    Returns:
        Their numbers, ascending.
    """
    traces = self.job.traces.values()
    steps = {step_of(trace.names[name]) for trace in traces for name in np.unique(trace.events.name).tolist()}
    return sorted(steps - {-1})


def get_potential_stragglers(
    self: HasJob,
    profiler_steps: Sequence[int] | None = None,
    num_candidates: int = 2,
    visualize: bool = False,
    straggler_identification_impl: Callable[..., pd.Series[Any]] | None = None,
) -> list[int]:
    """Return the ranks that arrive late at collectives most often.

    Args:
        profiler_steps: which steps; all if not given. Steps that the job does not have are ignored.
        num_candidates: the number of ranks to return at most.
        visualize: show the long communication kernels over time, the kernels in which ranks differ most, and how
            late each rank starts them.
        straggler_identification_impl: HTA's hook for other metrics: called with the frame of these steps, the symbol
            table, the number of candidates and ``visualize``, it returns how often each rank is a candidate.

    Returns:
        Ranks. `htagraph.stragglers` also reports who waited for whom, for how long and why.

    Raises:
        ValueError: none of the steps was recorded.
    """
    job, known = self.job, get_profiler_steps(self)
    steps = [step for step in known if profiler_steps is None or step in profiler_steps]
    if not steps:
        msg = f"profiler_steps={list(profiler_steps or [])}: the job has steps {', '.join(map(str, known)) or 'none'}"
        if profiler_steps is not None:
            raise ValueError(msg)
        job.warn(f"{msg}, so no straggler can be named")
        return []
    starts, count = late_starts(job.graph, steps=[step for step in steps if step in job.graph.steps]), num_candidates
    if straggler_identification_impl is not None:
        late = straggler_identification_impl(*_frame(job, steps), max(1, count), False)
    else:  # in how many steps each rank is among those that start last
        place = starts.groupby("step")["normalized_start"].rank(method="min", ascending=False)
        late = (place <= max(1, count)).astype(np.int64).groupby(starts["rank"]).sum()
    if not len(late):
        job.warn("no two ranks have a long communication kernel in a step, so none can be late")
    found = [int(rank) for rank in late.sort_values(ascending=False)[: max(1, count)].index]
    if visualize and found:
        figures.show(*_straggler_figures(job, steps, starts, found))
    return found


def extract_iteration_info(trace: HasJob) -> pd.DataFrame:
    """Return ``rank``, ``iter`` (N of ``ProfilerStep#N``), ``ts``, ``dur`` and ``end`` (µs) of each profiler step."""
    parts = []
    for rank in sorted(trace.job.traces):
        frame, names = trace.job.frame(rank), trace.job.symbols.sym_table
        steps = frame[frame["name"].isin(trace.job.symbols.get_profiler_step_ids())]
        number = [step_of(names[name]) for name in steps["name"]]
        parts.append(steps[["ts", "dur"]].assign(rank=rank, iter=number, end=steps["ts"] + steps["dur"]))
    return pd.concat(parts, ignore_index=True)[["rank", "iter", "ts", "dur", "end"]]


def find_stragglers_with_late_start_comm_kernels(
    df: pd.DataFrame, symbol_table: TraceSymbolTable, n_stragglers: int = 2, visualize: bool = False
) -> pd.Series[int]:
    """Return in how many steps each rank is among those that start the kernel last in which ranks differ most.

    Args:
        df: the frames of some ranks and steps, with the column ``rank``.
        symbol_table: what the numbers in ``name`` stand for.
        n_stragglers: how many ranks of a step are late.
        visualize: HTA's; `get_potential_stragglers` draws.
    """
    del visualize
    place, steps = ["stream", "name"], df.loc[df["iteration"] >= 0, "iteration"].unique()
    names = [number for name, number in symbol_table.sym_index.items() if is_comm_kernel(name)]
    inside = df[df["iteration"].isin(steps)]
    mean_us = ((inside["ts"] + inside["dur"]).max() - inside["ts"].min()) / max(1, len(steps))
    long = inside[inside["stream"].ge(0) & inside["dur"].ge(mean_us / 100) & inside["name"].isin(names)]
    last = long.sort_values("ts").drop_duplicates(["rank", "iteration", *place], keep="last")
    spread = last.groupby([*place, "iteration"])["dur"].std().groupby(place).mean().dropna()
    chosen = last[last.set_index(place).index.isin([spread.idxmax()])] if len(spread) else last.head(0)
    late = chosen.groupby("iteration")["ts"].rank(method="min", ascending=False) <= max(1, n_stragglers)
    return late.astype(np.int64).groupby(chosen["rank"]).sum()


def _straggler_figures(job: HtaJob, steps: Sequence[int], starts: pd.DataFrame, found: Sequence[int]) -> list[Figure]:
    """Return HTA's three figures: long communication kernels, the candidates of them, and how late ranks start."""
    from htagraph.hta.common.timeline import gpu_kernels_figure

    acts, time = job.graph.activities, job.graph.time
    frame, symbols = _frame(job, steps)
    names = np.unique(acts.name[acts.kind == ActivityKind.COMMUNICATION]).tolist()
    communicates = frame["name"].isin([symbols.sym_index[job.graph.names[name]] for name in names])
    frame = frame[(frame["stream"] >= 0) & communicates]
    inside = np.flatnonzero(np.isin(acts.step, steps))
    mean_us = (time[2 * inside + 1].max() - time[2 * inside].min()) / len(steps) / 1000 if len(inside) else 0.0
    long = frame[frame["dur"] >= mean_us / 100]  # HTA's share
    texts = long["name"].map(dict(enumerate(symbols.sym_table)))
    differing = long[long["stream"].isin(starts["stream"]) & texts.isin(starts["kernel"])].sort_values("ts")
    candidates = differing.drop_duplicates(["rank", "iteration"], keep="last")  # the last of each step is compared
    return [
        gpu_kernels_figure("Communication kernels longer than 1% of a step", long, symbols),
        gpu_kernels_figure("Candidates: the kernels in which the ranks differ most", candidates, symbols),
        figures.late_starts(starts, found),
    ]


def _frame(job: HtaJob, steps: Sequence[int]) -> tuple[pd.DataFrame, TraceSymbolTable]:
    """Return the events of all ranks in some steps, and what the numbers in the frame stand for."""
    ranks = sorted(job.traces)
    every = pd.concat([job.frame(rank) for rank in ranks], keys=ranks, names=["rank", "idx"]).reset_index()
    return every[every["iteration"].isin(steps)], job.symbols


CudaKernelAnalysis = analyzer(
    "CudaKernelAnalysis", get_aten_op_kernels_and_delay, get_frequent_cuda_kernel_sequences,
    cuda_kernel_launch_stats=get_cuda_kernel_launch_stats,
)  # fmt: skip
StragglerAnalysis = analyzer("StragglerAnalysis", get_potential_stragglers, get_profiler_steps)
