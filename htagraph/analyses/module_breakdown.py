"""Host and device time by module of the model."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_module_frame, names_that
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import module_of, names_of
from htagraph.queries.breakdowns import kind_words, time_by_owner
from htagraph.queries.on_workers import TOTAL_BOUND, UPPER_BOUND, by_class, over_ranks

__all__ = ["module_breakdown"]

TABLE = Table(
    "Device time by module",
    Col("rank", "int64"),
    Col("kind", "str", '``"module"``, ``"annotation"`` or empty'),
    Col("name", "str", "name of the frame or annotation"),
    Col("count", "int64", "calls"),
    Col("host_us", doc="summed durations of the module's calls, forward pass only"),
    Col("host_self_us", doc="work of host threads in the module, forward and backward, without modules inside"),
    Col("device_count", "int64", "number of kernels and copies launched in the module, without modules inside"),
    Col("device_us", doc="summed durations of this device work"),
    Col("device_total_us", doc="``device_us`` together with the modules inside"),
    Col("share_percent", doc="share of ``device_us`` in the sum over the rank's rows; NaN without device work"),
    UPPER_BOUND,
    TOTAL_BOUND,
    rank_by="device_us",
)


@described(TABLE)
def module_breakdown(graph: DependencyGraph, *, by: Literal["rank", "job", "class"] = "rank") -> pd.DataFrame:
    """Return the time of each ``nn.Module`` of the model: its forward, and the backward of its operators.

    Modules are known from the Python frames of traces recorded with ``with_stack=True``. Work outside all modules
    belongs to the innermost annotation; without Python frames, all work belongs to annotations.

    Args:
        graph: the job.
        by: ``"rank"``: one row per rank and module. ``"job"``: one row per module, over all ranks. ``"class"``: one
            row per class of modules, over all ranks: ``Linear_0`` and ``Linear_1`` are ``Linear``.

    Returns:
        One row per rank and module or annotation, and one (empty ``kind`` and ``name``) for what has neither, most
        device time first within a rank: {columns}. ``device_us`` sums to the durations of all device work of the rank.

        By job: one row per module, most device time first: the same columns without ``rank``, summed over ranks, with
        ``ranks`` (int64: how many ran it); ``share_percent`` is of all rows. By class: ``kind``, ``name``, ``count``,
        ``host_self_us``, ``device_count``, ``device_us``, ``share_percent``, summed likewise.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.module_breakdown(hg.load("data/demo"))
        >>> bool((table["device_total_us"] >= table["device_us"]).all())
        True
    """
    check_choice("by", by, ("rank", "job", "class"))
    acts = graph.activities
    is_module = names_that(is_module_frame, graph.names)
    frames = (acts.kind == ActivityKind.PYTHON) & is_module[acts.name]
    members = frames if frames.any() else acts.kind == ActivityKind.ANNOTATION
    group = acts.name.astype(np.int64) * 2 + frames
    table = time_by_owner(graph, module_of, members, group)
    owner = table["owner"].to_numpy()
    table = table.assign(kind=kind_words(graph, owner), name=names_of(graph, owner))
    table["kind"] = table["kind"].replace(ActivityKind.PYTHON.label, "module")
    table = TABLE.frame(table)
    if by == "rank":
        return table
    return over_ranks(table) if by == "job" else by_class(table)
