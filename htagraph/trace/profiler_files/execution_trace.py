"""Execution traces (Chakra host traces, JSON): operators with schema, shapes and types, linked to activities."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.errors import NotATraceError, SelectionError, TraceError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.core.kinds import ActivityKind
from htagraph.trace.profiler_files.files import content

__all__ = ["link_execution_trace", "read_execution_trace"]

_KINDS: Final = {"name": "str", "parent": "int64", "rf_id": "int64", "op_schema": "str"}
_LISTS: Final = ("input_shapes", "input_types", "output_shapes", "output_types")
_LINKABLE = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.HOST_COMMUNICATION)
_BELONG = 0.5


def read_execution_trace(path: str | Path) -> pd.DataFrame:
    """Return the nodes of an execution trace, as ``torch.profiler.ExecutionTraceObserver`` writes it.

    Args:
        path: the JSON file, gzipped or not; of schema 1.0 or 1.1.

    Returns:
        One row per node, indexed by ``et_node`` (int64, its id), in the order of the file: ``name`` (str), ``parent``
        (int64: id of the node around it), ``rf_id`` (int64: the record-function id, 0 of what is no operator),
        ``op_schema`` (str), ``input_shapes``, ``input_types``, ``output_shapes``, ``output_types`` (object: lists as
        in the file).

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: it is no execution trace.

    Example:
        >>> import json, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "et.json"
        >>> node = {"id": 5, "name": "aten::mm", "rf_id": 3, "parent": 1, "op_schema": "aten::mm(Tensor self)",
        ...         "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"], "output_shapes": [], "output_types": []}
        >>> _ = path.write_text(json.dumps({"schema": "1.0.1", "nodes": [node]}))
        >>> read_execution_trace(path)[["name", "rf_id", "input_shapes"]]
                     name  rf_id input_shapes
        et_node
        5        aten::mm      3     [[2, 2]]

    Source: HTA's load_execution_trace, without et_replay.
    """
    try:
        found = [_node(each) for each in msgspec.json.decode(content(path))["nodes"]]
        columns = {name: [each[name] for each in found] for name in (*_KINDS, *_LISTS)}
        index = pd.Index([each["id"] for each in found], dtype="int64", name="et_node")
        kinds: dict[str, Any] = _KINDS | dict.fromkeys(_LISTS, "object")
        frame = pd.DataFrame({name: pd.Series(columns[name], index, dtype=kind) for name, kind in kinds.items()})
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ):  # msgspec's errors are ValueErrors
        msg = f"{path}: no execution trace: JSON with 'nodes', each with id and name, is expected"
        raise NotATraceError(msg) from None
    return frame


def _node(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a node in the form of schema 1.0; 1.1 keeps numbers in ``attrs``, shapes and types with the values."""
    attrs = {each["name"]: each.get("value") for each in raw.get("attrs") or ()}
    node = {
        "id": int(raw["id"]), "name": str(raw["name"]),
        "parent": int(raw.get("parent", raw.get("ctrl_deps")) or 0),
        "rf_id": int(raw.get("rf_id", attrs.get("rf_id")) or 0),
        "op_schema": str(raw.get("op_schema", attrs.get("op_schema")) or ""),
    }  # fmt: skip
    for side in ("input", "output"):
        whole = raw.get(f"{side}s")
        for part in ("shapes", "types"):
            newer = whole.get(part) if isinstance(whole, dict) else None
            node[f"{side}_{part}"] = raw.get(f"{side}_{part}", newer) or []
    return node


def link_execution_trace(graph: DependencyGraph, nodes: pd.DataFrame, rank: int | None = None) -> pd.DataFrame:
    """Return the node of an execution trace behind each operator of a rank.

    Both number the operators of a process: a node's record-function id is the External id of its activity. A pair whose
    names differ is no pair.

    Args:
        graph: the job, recorded in the same run.
        nodes: what `read_execution_trace` gave.
        rank: whose execution trace it is; may be left out where the graph has one rank.

    Returns:
        One row per operator or annotation that has a node, indexed by ``activity`` (int64): ``name`` (str),
        ``et_node`` (int64), ``op_schema`` (str), ``input_shapes``, ``input_types``, ``output_shapes``,
        ``output_types`` (object).

    Raises:
        SelectionError: the rank is not in the graph, or none is named where there are several.
        TraceError: the ids are shared but most names differ: the two were not recorded in one run.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load({0: "data/demo/rank-0.json.gz"})
        >>> columns = ["name", "parent", "rf_id", "op_schema", "input_shapes", "input_types", "output_shapes",
        ...            "output_types"]
        >>> len(link_execution_trace(graph, pd.DataFrame(columns=columns)))
        0

    Source: HTA's correlate_execution_trace.
    """
    acts = graph.activities
    mine = acts.of_rank(_rank(graph, rank))
    external = acts.arg("external_id")[mine]
    known = np.isin(acts.kind[mine], _LINKABLE) & (external > 0)
    rows = mine.start + np.flatnonzero(known)
    real = nodes[nodes["rf_id"] > 0].drop_duplicates("rf_id")
    at = pd.Index(real["rf_id"]).get_indexer(pd.Index(external[known]))
    rows, at = rows[at >= 0], at[at >= 0]
    names = np.array([graph.names[name] for name in acts.name[rows]], object)
    same = names == real["name"].to_numpy(object)[at]
    if len(rows) and same.mean() < _BELONG:
        first = int(np.argmin(same))
        msg = (
            f"the execution trace is not of this run: {int((~same).sum())} of {len(rows)} shared ids have other names, "
            f"such as {real['name'].iloc[at[first]]!r} for {graph.describe(int(rows[first]))}"
        )
        raise TraceError(msg)
    linked = real.iloc[at[same]].rename_axis("et_node").reset_index().set_index(pd.Index(rows[same], name="activity"))
    return linked[["name", "et_node", "op_schema", *_LISTS]].astype(
        {"name": "str", "et_node": "int64", "op_schema": "str"}
    )


def _rank(graph: DependencyGraph, rank: int | None) -> int:
    if rank in graph.ranks:
        return int(rank)
    if rank is None and len(graph.ranks) <= 1:
        return graph.ranks[0] if graph.ranks else 0
    msg = f"rank {rank}: say whose execution trace it is; this graph has ranks {', '.join(map(str, graph.ranks))}"
    raise SelectionError(msg)
