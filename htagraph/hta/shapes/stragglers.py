"""HTA's potential stragglers: ranks that start the collective in which ranks differ most later than others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.analyses.late_starts import late_starts
from htagraph.core.kinds import ActivityKind
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.names import step_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = ["potential_stragglers", "profiler_steps", "straggler_figures"]

_LONG_SHARE = 0.01
"""Share of a mean step from which a communication kernel is shown, as in HTA. Doubled, fewer are."""


def profiler_steps(job: HtaJob) -> list[int]:
    """Return the numbers of the profiler steps of any rank, ascending."""
    steps = set()
    for trace in job.traces.values():
        steps |= {step_of(trace.names[name]) for name in np.unique(trace.events.name).tolist()}
    return sorted(steps - {-1})


def potential_stragglers(
    job: HtaJob,
    steps: Sequence[int] | None = None,
    num_candidates: int = 2,
    implementation: Callable[..., pd.Series[Any]] | None = None,
) -> list[int]:
    """Return the ranks that are most often the last to start the communication kernel in which ranks differ most.

    Args:
        job: what HTA keeps of a job.
        steps: N of ProfilerStep#N; those that the job has not are ignored, None for all.
        num_candidates: how many ranks to return at most.
        implementation: called with HTA's frame of all ranks in these steps, the symbol table, `num_candidates` and
            False in place of our own; returns how often each rank (its index) is a straggler.

    Raises:
        ValueError: the job has none of the steps asked for.
    """
    known = profiler_steps(job)
    chosen = known if steps is None else [step for step in steps if step in known]
    if not chosen:
        msg = f"profiler_steps={list(steps or [])}: the job has steps {', '.join(map(str, known)) or 'none'}"
        if steps is not None:
            raise ValueError(msg)
        warnings.warn(f"{job.described()}: {msg}, so no straggler can be named", stacklevel=3)
        return []
    count = max(1, num_candidates)
    late = implementation(*_frames(job, chosen), count, False) if implementation else _late(job, chosen, count)  # noqa: FBT003
    if not len(late):
        why = "no two ranks have a long communication kernel in a step, so none can be late"
        warnings.warn(f"{job.described()}: {why}", stacklevel=3)
    return [int(rank) for rank in late.sort_values(ascending=False)[:count].index]


def straggler_figures(job: HtaJob, steps: Sequence[int] | None = None) -> list[Figure]:
    """Return HTA's three figures: long communication kernels, those that differ most, and how late they start.

    Args:
        job: what HTA keeps of a job.
        steps: N of ProfilerStep#N; those that the job has not are ignored, None for all.
    """
    from htagraph.hta.analyzers.timeline import gpu_kernels_figure
    from htagraph.output.plot.hta_shapes.launches import late_starts_figure

    chosen = [step for step in profiler_steps(job) if steps is None or step in steps]
    starts = late_starts(job.graph, steps=[step for step in chosen if step in job.graph.steps])
    frame, symbols = _frames(job, chosen)
    frame = frame[(frame["stream"] >= 0) & frame["name"].isin(_communication_names(job, symbols))]
    long = frame[frame["dur"] >= _LONG_SHARE * _mean_step_us(job, chosen)]
    of_kind = starts[["stream", "kernel"]].drop_duplicates()
    names = long["name"].map(dict(enumerate(symbols.sym_table)))
    differing = long[long["stream"].isin(of_kind["stream"]) & names.isin(of_kind["kernel"])]
    return [
        gpu_kernels_figure(f"Communication kernels longer than {_LONG_SHARE:.0%} of a step", long, symbols),
        gpu_kernels_figure("Communication kernels in which the ranks differ most", differing, symbols),
        late_starts_figure(starts),
    ]


def _communication_names(job: HtaJob, symbols: TraceSymbolTable) -> list[int]:
    """Return the numbers of the names of communication kernels."""
    acts = job.graph.activities
    names = np.unique(acts.name[acts.kind == ActivityKind.COMMUNICATION]).tolist()
    return [symbols.sym_index[job.graph.names[name]] for name in names]


def _mean_step_us(job: HtaJob, steps: Sequence[int]) -> float:
    """Return the time from the first start to the last end in some steps, over their number, µs."""
    acts, time = job.graph.activities, job.graph.time
    inside = np.flatnonzero(np.isin(acts.step, steps))
    return float(time[2 * inside + 1].max() - time[2 * inside].min()) / len(steps) / 1000 if len(inside) else 0.0


def _late(job: HtaJob, steps: list[int], count: int) -> pd.Series[Any]:
    """Return in how many steps each rank is among the `count` that start last."""
    starts = late_starts(job.graph, steps=[step for step in steps if step in job.graph.steps])
    place = starts.groupby("step")["normalized_start"].rank(method="min", ascending=False)
    return (place <= count).astype(np.int64).groupby(starts["rank"]).sum()


def _frames(job: HtaJob, steps: list[int]) -> tuple[pd.DataFrame, TraceSymbolTable]:
    ranks = sorted(job.traces)
    every = pd.concat([job.frame(rank) for rank in ranks], keys=ranks, names=["rank", "idx"]).reset_index()
    return every[every["iteration"].isin(steps)], job.symbols
