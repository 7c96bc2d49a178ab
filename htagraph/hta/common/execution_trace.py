"""Execution traces beside Kineto traces, in HTA's way: which node is behind each operator, as columns of the frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.hta.common.trace import Trace
from htagraph.queries.arguments import link_execution_trace
from htagraph.trace.profiler_files.files import LISTS, read_execution_trace

__all__ = [
    "EXECUTION_TRACE_SUPPORTED_EVENTS", "ExecutionTrace", "Node", "add_et_column", "correlate_execution_trace",
    "load_execution_trace",
]  # fmt: skip

EXECUTION_TRACE_SUPPORTED_EVENTS = ["cpu_op", "user_annotation"]
"""The categories of events that have nodes."""

_COLUMNS = {"et_node_name": "name", "op_schema": "op_schema", **{name: name for name in LISTS}}
"""What `add_et_column` adds, and what a node calls it."""


@dataclass(frozen=True)
class Node:
    """One node of an execution trace."""

    id: int
    name: str
    parent: int
    rf_id: int
    """The record-function id, the ``External id`` of the event; 0 of what is no operator."""
    op_schema: str
    input_shapes: Sequence[Any]
    input_types: Sequence[Any]
    output_shapes: Sequence[Any]
    output_types: Sequence[Any]


class ExecutionTrace:
    """The nodes of an execution trace.

    Args:
        frame: what `read_execution_trace` returned.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The nodes by id."""
        columns = self.frame[["name", "parent", "rf_id", "op_schema", *LISTS]]
        return {row[0]: Node(*row) for row in columns.itertuples(name=None)}


def load_execution_trace(et_file: str) -> ExecutionTrace:
    """Return the execution trace in a file, as ``torch.profiler.ExecutionTraceObserver`` writes it.

    Args:
        et_file: the JSON file, gzipped or not.

    Raises:
        TraceError: the file cannot be read or is no execution trace.
    """
    return ExecutionTrace(read_execution_trace(Path(et_file).expanduser()))


def correlate_execution_trace(trace: Trace, rank: int, et: ExecutionTrace) -> None:
    """Add a column ``et_node`` to a rank's frame: the node behind each operator and annotation, NaN for none.

    A node is behind an event if its record-function id is the event's ``External id`` and the names are the same.

    Args:
        trace: a job that was read.
        rank: whose execution trace it is.
        et: what `load_execution_trace` returned.

    Raises:
        ValueError: the rank was not read.
        TraceError: ids are shared but most names differ: the two were not recorded in one run.
    """
    frame = trace.get_trace(rank)
    links = link_execution_trace(trace.job.graph, et.frame, rank)
    event = trace.job.graph.activities.event[links.index.to_numpy()]
    node = pd.Series(links["et_node"].to_numpy(np.float64), index=event)
    frame["et_node"] = frame["index"].map(node)


def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: str) -> None:
    """Add what the nodes hold to a frame with a column ``et_node``.

    Args:
        trace_df: a frame that went through `correlate_execution_trace`.
        et: the same execution trace.
        column: ``op_schema``, ``input_shapes``, ``input_types``, ``output_shapes``, ``output_types`` or
            ``et_node_name``; it is NaN for events without a node.

    Raises:
        SelectionError: there is no such column of nodes, or the frame has no ``et_node``.
    """
    if column not in _COLUMNS:
        msg = f"column {column!r}: choose one of {', '.join(_COLUMNS)}"
        raise SelectionError(msg)
    if "et_node" not in trace_df:
        msg = "the frame has no column 'et_node': call correlate_execution_trace first"
        raise SelectionError(msg)
    trace_df[column] = trace_df["et_node"].map(et.frame[_COLUMNS[column]].astype(object))
