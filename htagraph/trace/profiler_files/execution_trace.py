"""Execution traces (Chakra host traces, JSON): operators with schema, shapes and types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd

from htagraph.core.errors import NotATraceError
from htagraph.trace.profiler_files.files import content

__all__ = ["LISTS", "read_execution_trace"]

_KINDS: Final = {"name": "str", "parent": "int64", "rf_id": "int64", "op_schema": "str"}
LISTS: Final = ("input_shapes", "input_types", "output_shapes", "output_types")
"""Columns of nodes that hold a list each, one entry per argument."""


def read_execution_trace(path: str | Path) -> pd.DataFrame:
    """Return the nodes of an execution trace, as ``torch.profiler.ExecutionTraceObserver`` writes it.

    Args:
        path: the JSON file, gzipped or not; of schema 1.0 or 1.1.

    Returns:
        One row per node, indexed by ``et_node`` (int64, its id), in the order of the file: ``name`` (str), ``parent``
        (int64: id of the enclosing node), ``rf_id`` (int64: the record-function id, 0 for nodes that have none),
        ``op_schema`` (str), ``input_shapes``, ``input_types``, ``output_shapes``, ``output_types`` (object: lists as
        in the file).

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: the file is not an execution trace.

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
        nodes = [_node(raw) for raw in msgspec.json.decode(content(path))["nodes"]]
        columns = {name: [node[name] for node in nodes] for name in (*_KINDS, *LISTS)}
        index = pd.Index([node["id"] for node in nodes], dtype="int64", name="et_node")
        kinds: dict[str, Any] = _KINDS | dict.fromkeys(LISTS, "object")
        frame = pd.DataFrame({name: pd.Series(columns[name], index, dtype=kind) for name, kind in kinds.items()})
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ):  # msgspec's errors are ValueErrors
        msg = f"{path}: not an execution trace (expected: JSON with 'nodes', each with id and name)"
        raise NotATraceError(msg) from None
    return frame


def _node(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a node in the form of schema 1.0; schema 1.1 has ids in ``attrs``, shapes and types beside the values."""
    attrs = {attr["name"]: attr.get("value") for attr in raw.get("attrs") or ()}
    node = {
        "id": int(raw["id"]), "name": str(raw["name"]),
        "parent": int(raw.get("parent", raw.get("ctrl_deps")) or 0),
        "rf_id": int(raw.get("rf_id", attrs.get("rf_id")) or 0),
        "op_schema": str(raw.get("op_schema", attrs.get("op_schema")) or ""),
    }  # fmt: skip
    for side in ("input", "output"):
        values = raw.get(f"{side}s")
        for part in ("shapes", "types"):
            newer = values.get(part) if isinstance(values, dict) else None
            node[f"{side}_{part}"] = raw.get(f"{side}_{part}", newer) or []
    return node
