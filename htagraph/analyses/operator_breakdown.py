"""Host and device time by operator, optionally by the shapes of its inputs."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.kinds import OPERATORS, ActivityKind, of_kinds
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.arguments import arguments
from htagraph.queries.attribution import names_of, operator_of
from htagraph.queries.breakdowns import kind_words, time_by_owner
from htagraph.queries.on_workers import TOTAL_BOUND, UPPER_BOUND, or_summed, over_ranks

__all__ = ["operator_breakdown"]

TABLE = Table(
    "Device time by operator",
    Col("rank", "int64"),
    Col("kind name", "str"),
    Col("input_dims", "str", "recorded shapes of the inputs, or empty; only with `by_shape`", maybe=True),
    Col("count", "int64", "calls"),
    Col("host_us", doc="summed durations of the calls; a call inside a call of the same operator does not count"),
    Col("host_self_us", doc="time of the operator and of its runtime calls, without operators inside"),
    Col("device_count", "int64", "number of kernels and copies that the operator itself launched"),
    Col("device_us", doc="summed durations of this device work"),
    Col("device_total_us", doc="``device_us`` together with the operators inside"),
    Col("share_percent", doc="share of ``device_us`` in the sum over the rank's rows; NaN without device work"),
    UPPER_BOUND,
    TOTAL_BOUND,
    rank_by="device_us",
)

_SHAPES = ("Input Dims", "Input dims")  # today's profilers write the first, those before 2022 the second


@described(TABLE)
@or_summed(job=over_ranks)
def operator_breakdown(
    graph: DependencyGraph, *, by: Literal["rank", "job"] = "rank", by_shape: bool = False
) -> pd.DataFrame:
    """Return the time of each operator: its own time on the host, and the time of the device work that it launched.

    Work that no operator launched belongs to the innermost annotation or step around the launch.

    Args:
        graph: the job.
        by: ``"rank"``: one row per rank and operator. ``"job"``: one row per operator, over all ranks.
        by_shape: one row per operator and combination of input shapes; reads the files again for the argument
            ``Input Dims``, which traces recorded with ``record_shapes=True`` have.

    Returns:
        One row per rank and operator (annotation, step), and one (empty ``kind`` and ``name``) for what has none, most
        device time first within a rank: {columns}. ``device_us`` sums to the durations of all device work of the rank.

        By job: one row per operator, most device time first: the same columns without ``rank``, summed over ranks, with
        ``ranks`` (int64: how many ran it); ``share_percent`` is of all rows.

    Raises:
        ValueError: `by` is something else.
        TraceError: with `by_shape`, a file is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> table = hg.operator_breakdown(hg.load("data/demo"))
        >>> int(table.loc[table["name"] == "aten::mm", "device_count"].iloc[0]) > 0
        True
    """
    check_choice("by", by, ("rank", "job"))
    acts = graph.activities
    members = of_kinds(acts.kind, OPERATORS)
    group = acts.name.astype(np.int64) * len(ActivityKind) + acts.kind
    shape, shapes = np.zeros(len(acts), np.int64), [""]
    if by_shape:
        shape[members], shapes = _shapes(graph, np.flatnonzero(members))
    table = time_by_owner(graph, operator_of, members, group * len(shapes) + shape)
    owner = table["owner"].to_numpy()
    dims = np.array([*shapes, ""], object)[np.where(owner >= 0, np.append(shape, 0)[owner], len(shapes))]
    table = table.assign(kind=kind_words(graph, owner), name=names_of(graph, owner), input_dims=dims)
    return TABLE.frame(table if by_shape else table.drop(columns="input_dims"))


def _shapes(graph: DependencyGraph, operators: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return (a number for each operator's shapes, the texts that they stand for)."""
    columns = arguments(graph, _SHAPES, operators)
    dims_of = [now if now is not None else old for now, old in columns.itertuples(index=False)]
    texts = ["" if dims is None else dims if isinstance(dims, str) else json.dumps(dims) for dims in dims_of]
    codes, shapes = pd.factorize(np.array(texts, object))
    return codes, list(shapes) or [""]
