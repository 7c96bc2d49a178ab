"""CUPTI's counters with the operators that launched the kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.naming import COUNTER_RANGE
from htagraph.hta.shapes.job import HasJob, HtaJob, Ranks, analyzer
from htagraph.queries.recorded_events import counter_ranges, operators_around

__all__ = ["CUDA_SASS_INSTRUCTION_COUNTER_FLOPS", "CuptiCounterAnalysis", "get_cupti_counter_data_with_operators"]

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: dict[str, int] = {
    f"smsp__sass_thread_inst_executed_op_{width}{op}_pred_on.sum": 2 if op == "fma" else 1
    for width in "fhd"
    for op in ("fma", "mul", "add")
}
"""Floating-point operations per count of each counter."""

_BEHIND_COUNTERS = ["index_correlation", "iteration", "end"]
_NOWHERE: dict[str, float] = {
    "depth": -1, "height": -1, "parent": -1, "num_kernels": 0, "kernel_dur_sum": 0.0, "kernel_span": 0.0,
    "first_kernel_start": -1.0, "last_kernel_end": -1.0,
}  # fmt: skip
"""Values of HTA's call-graph columns for an event that is on none of its threads, such as a counter range."""


def get_cupti_counter_data_with_operators(t: HasJob, ranks: Ranks = None) -> list[pd.DataFrame]:
    """Return the hardware counters of each kernel with the operators that launched it.

    Args:
        t: a job that was read.
        ranks: rank 0 if not given.

    Returns:
        For each rank with as many kernel launches as counter ranges: the columns of its frame with ``cat`` and ``name``
        as texts and a column per counter, in the order of the file; the columns of HTA's call graph, in which no range
        lies; and ``index_runtime`` (the launch, as position in the file), ``op_stack`` (list of the operators around
        it, the outermost first), ``top_level_op``, ``bottom_level_op``.
    """
    chosen, tables = t.job.ranks(ranks), []
    if COUNTER_RANGE not in t.job.symbols.sym_index:
        t.job.warn(f"has no {COUNTER_RANGE} events", chosen)
        return []
    for rank in chosen:
        table = _of_rank(t.job, rank)
        if table is not None:
            tables.append(table)
    return tables


CuptiCounterAnalysis = analyzer(
    "CuptiCounterAnalysis", get_counter_data_with_operators=get_cupti_counter_data_with_operators
)


def _of_rank(job: HtaJob, rank: int) -> pd.DataFrame | None:
    ranges = counter_ranges(job.graph, rank)
    launch = ranges["launch"].to_numpy()
    if not len(ranges) or (launch < 0).any():
        why = "has no cuda_profiler_range events" if not len(ranges) else "has not as many launches as counter ranges"
        job.warn(why, [rank], stacklevel=4)
        return None
    acts, names = job.graph.activities, job.graph.names
    stacks = [[names[name] for name in acts.name[stack]] for stack in operators_around(job.graph, launch)]
    frame = job.frame(rank).loc[ranges["range"]].reset_index(drop=True)
    words = np.array(job.symbols.get_sym_table(), object)
    for column in ("cat", "name"):
        frame[column] = pd.Series(words[frame[column].to_numpy()], dtype="str")
    counters = ranges[ranges.columns[3:]].apply(_narrow)
    front = frame.drop(columns=_BEHIND_COUNTERS)
    table = pd.concat([front.drop(columns=front.columns.intersection(counters.columns)), counters], axis=1)
    return pd.concat([table, frame[_BEHIND_COUNTERS]], axis=1).assign(
        **_NOWHERE,
        index_runtime=_narrow(pd.Series(acts.event[launch])),
        op_stack=pd.Series(stacks, dtype=object),
        top_level_op=pd.Series([stack[0] if stack else "" for stack in stacks], dtype="str"),
        bottom_level_op=pd.Series([stack[-1] if stack else "" for stack in stacks], dtype="str"),
    )


def _narrow(values: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    return pd.to_numeric(numbers, downcast="integer") if numbers.dtype.kind == "i" else numbers
