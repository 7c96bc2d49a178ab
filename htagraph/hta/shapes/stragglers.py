"""HTA's potential stragglers: ranks that start the collective in which ranks differ most later than others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.analyses.late_starts import late_starts
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.names import step_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["late_starts_figure", "potential_stragglers", "profiler_steps"]


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


def late_starts_figure(job: HtaJob, steps: Sequence[int] | None = None) -> Figure:
    """Return how late each rank starts in each step, as a figure."""
    from htagraph.output.plot.launches import late_starts_figure as figure_of

    return figure_of(
        late_starts(job.graph, steps=None if steps is None else [n for n in steps if n in job.graph.steps])
    )


def _late(job: HtaJob, steps: list[int], count: int) -> pd.Series[Any]:
    """Return in how many steps each rank is among the `count` that start last."""
    starts = late_starts(job.graph, steps=[step for step in steps if step in job.graph.steps])
    place = starts.groupby("step")["normalized_start"].rank(method="min", ascending=False)
    return (place <= count).astype(np.int64).groupby(starts["rank"]).sum()


def _frames(job: HtaJob, steps: list[int]) -> tuple[pd.DataFrame, Any]:
    ranks = sorted(job.traces)
    every = pd.concat([job.frame(rank) for rank in ranks], keys=ranks, names=["rank", "idx"]).reset_index()
    return every[every["iteration"].isin(steps)], job.symbols
