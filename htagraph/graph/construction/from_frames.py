"""The user's own activities and dependencies → DependencyGraph."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core import traverse
from htagraph.core.errors import GraphError
from htagraph.core.flops import elements, labelled_cost
from htagraph.core.kernels import SIZES, number_format
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import is_product_label
from htagraph.graph.activities import Activities, Edges, Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.columns import SparseColumn

__all__ = ["from_frames"]

_MAX_TEXT = 10_000
"""Characters of the text of an operator's shapes that are read. Chosen: shapes of hundreds of inputs are shorter.
Doubled, damaged texts take longer."""
_INT64_LIMIT_NS = 2.0**63
"""ns: times must stay below this to fit into 64-bit integers (292 years). Doubled, sums would overflow."""


def from_frames(activities: pd.DataFrame, dependencies: pd.DataFrame) -> DependencyGraph:
    """Return the graph of a user's own frames; documented at `DependencyGraph.from_frames`."""
    _require(activities, ("duration_ns",), "activities")
    _require(dependencies, ("source", "target"), "dependencies")
    if not activities.index.is_unique:
        twice = activities.index[activities.index.duplicated()][0]
        msg = f"activities: the index holds ids, and {twice!r} is there twice"
        raise GraphError(msg)
    activities = activities.iloc[np.lexsort((_int32(activities, "rank", 0), _joins(activities)))]
    names: dict[str, int] = {}
    acts, lanes = _activities(activities, names)
    row = np.arange(len(acts))
    bodies = Edges.of(2 * row, 2 * row + 1, acts.duration, EdgeKind.BODY, Provenance.OBSERVED, activity=row)
    edges = Edges.concatenate([bodies, _dependencies(activities.index, dependencies)])
    _refuse_overflow(acts, edges)
    graph = DependencyGraph.build(acts, edges, names=tuple(names), lanes=lanes)
    if "start_ns" not in activities:
        graph = _as_early_as_possible(graph)
    graph.check()
    return graph


def _activities(frame: pd.DataFrame, names: dict[str, int]) -> tuple[Activities, tuple[Lane, ...]]:
    count = len(frame)
    none = np.full(count, -1, np.int32)
    ranked = count - int(_joins(frame).sum())  # JOINs are between ranks: they have neither rank nor lane
    rank, lane = none.copy(), none.copy()
    rank[:ranked] = _int32(frame, "rank", 0)[:ranked]
    rows = frame.iloc[:ranked]
    number, texts = _texts(rows["lane"]) if "lane" in frame else (np.zeros(ranked, np.int64), [""])
    lane[:ranked], keys = pd.factorize(rank[:ranked] * np.int64(len(texts)) + number)
    lanes = [(int(key) // len(texts), texts[int(key) % len(texts)]) for key in keys]
    number, texts = _texts(frame.get("name", frame.index))
    codes = [names.setdefault(text, len(names)) for text in texts]
    # a boundary belongs to the step of a trace; nothing else may look like one
    words = {kind.label: int(kind) for kind in ActivityKind if kind != ActivityKind.BOUNDARY}
    made = Activities(
        rank=rank, kind=_codes(frame, "activities", words, ActivityKind.OP), lane=lane, parent=none,
        cause=none.copy(), event=none.copy(),
        name=np.array(codes, np.int32)[number],
        category=np.full(count, names.setdefault("", len(names)), np.int32),
        start=_integers(frame, "start_ns", 0), duration=_integers(frame, "duration_ns", 0),
        step=_int32(frame, "step", -1), args=_args(frame, names),
    )  # fmt: skip
    return made, tuple(Lane(rank, 0, name, thread=name) for rank, name in lanes)


def _args(frame: pd.DataFrame, names: dict[str, int]) -> dict[str, SparseColumn]:
    """Return what the frame says of devices and of the work of operators, as arguments of activities."""
    columns = {name: [_count(each) for each in frame[name]] for name in ("flop", "bytes") if name in frame}
    for column, argument in (("device", "device_name"), ("dtype", "dtype")):
        if column in frame:
            columns[argument] = [
                names.setdefault(each, len(names)) if isinstance(each, str) else -1 for each in frame[column]
            ]
    if "input_shapes" in frame:
        for name, values in zip(("flop", "written", "bytes"), zip(*_work(frame), strict=True), strict=False):
            columns.setdefault(name, list(map(_count, values)))
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    rows = {name: np.flatnonzero(values >= 0).astype(np.int32) for name, values in arrays.items()}
    return {name: SparseColumn(rows[name], values[rows[name]], -1) for name, values in arrays.items()}


def _count(value: Any) -> int:  # noqa: ANN401 - whatever a frame holds
    """Return a number of operations, elements or bytes; -1 for what is none."""
    number = isinstance(value, int | float | np.integer | np.floating) and 0 <= value < _INT64_LIMIT_NS
    return int(value) if number else -1


def _work(frame: pd.DataFrame) -> Iterator[tuple[int | None, int | None, int | None]]:
    """Yield (operations, elements of the result, bytes moved) of each operator, by its shapes."""
    nothing = [None] * len(frame)
    named, dtypes = frame.get("name", frame.index), frame.get("dtype", nothing)
    rows = zip(named, frame["input_shapes"], frame.get("output_shape", nothing), dtypes, strict=True)
    for name, given, made, dtype in rows:
        inputs, output = _shapes(given), _shapes(made)
        size = SIZES.get(number_format(str(dtype)), 4)
        cost = labelled_cost(inputs, output) if is_product_label(str(name)) else None
        moved = cost[2] if cost else elements(inputs) + elements([output])
        yield *(cost[:2] if cost else (None, None)), moved * size or None


def _shapes(given: Any) -> list[Any]:  # noqa: ANN401 - a list, or its text
    """Return shapes that are given as lists or as their text; none for anything else."""
    if isinstance(given, str):
        try:
            given = ast.literal_eval(given[:_MAX_TEXT])
        except (MemoryError, RecursionError, SyntaxError, ValueError):
            return []
    return list(given) if isinstance(given, list | tuple) else []


def _codes(frame: pd.DataFrame, what: str, words: Mapping[str, int], default: int) -> np.ndarray:
    """Return the code of each word in the column `kind`."""
    if "kind" not in frame:
        return np.full(len(frame), default, np.int8)
    number, used = pd.factorize(frame["kind"], use_na_sentinel=False)
    unknown = sorted((word for word in used if word not in words), key=str)
    if unknown:
        msg = f"{what}: kind {unknown[0]!r}; choose from {', '.join(words)}"
        raise GraphError(msg)
    return np.array([words[word] for word in used], np.int8)[number]


def _texts(column: pd.Series[Any] | pd.Index[Any]) -> tuple[np.ndarray, list[str]]:
    """Return (the number of each row's text, the texts in order of appearance)."""
    number, values = pd.factorize(column, use_na_sentinel=False)
    texts: dict[str, int] = {}
    of_value = [texts.setdefault(str(value), len(texts)) for value in values]
    return np.array(of_value, np.int64)[number], list(texts)


def _joins(frame: pd.DataFrame) -> np.ndarray:
    if "kind" not in frame:
        return np.zeros(len(frame), np.bool_)
    return (frame["kind"] == ActivityKind.JOIN.label).to_numpy(np.bool_)


def _dependencies(ids: pd.Index[Any], frame: pd.DataFrame) -> Edges:
    ends = [_positions(ids, frame[column], column) for column in ("source", "target")]
    owner = np.full(len(frame), -1, np.int64)
    if "owner" in frame:
        known = frame["owner"].notna().to_numpy()
        owner[known] = _positions(ids, frame["owner"][known], "owner")
    # a body is what `duration_ns` says, and no other edge may look like one
    words = {kind.label: int(kind) for kind in EdgeKind if kind != EdgeKind.BODY}
    from_start, to_end = _booleans(frame, "from_start"), _booleans(frame, "to_end")
    edges = Edges.of(
        2 * ends[0] + ~from_start, 2 * ends[1] + to_end, _integers(frame, "lag_ns", 0),
        EdgeKind.USER, Provenance.OBSERVED, activity=owner,
    )  # fmt: skip
    return replace(edges, kind=_codes(frame, "dependencies", words, EdgeKind.USER))


def _positions(ids: pd.Index[Any], wanted: pd.Series[Any], column: str) -> np.ndarray:
    at = ids.get_indexer(pd.Index(wanted))
    if (at < 0).any():
        unknown = wanted.tolist()[int(np.argmax(at < 0))]
        msg = f"dependencies: {column} {unknown!r} is not the id of an activity"
        raise GraphError(msg)
    return at.astype(np.int64)


def _refuse_overflow(acts: Activities, edges: Edges) -> None:
    """Refuse numbers whose sum along a path could be too large for an integer of 64 bits."""
    reach = sum(float(np.abs(part.astype(np.float64)).sum()) for part in (acts.duration, edges.lag))
    reach += float(np.abs(acts.start.astype(np.float64)).max(initial=0.0))
    if reach >= _INT64_LIMIT_NS:
        msg = f"durations, lags and starts sum to {reach:.3g} ns: more than 64 bits hold (292 years)"
        raise GraphError(msg)


def _as_early_as_possible(graph: DependencyGraph) -> DependencyGraph:
    """Return the graph with every activity at the earliest moment its dependencies allow."""
    edges, nothing = graph.edges, np.zeros(graph.vertex_count, np.int64)
    order = graph.topological_order
    time = traverse.schedule(order, graph.in_offsets, graph.in_edges, edges.source, edges.lag, nothing, nothing)
    acts = graph.activities
    return graph.replace(activities=replace(acts, start=time[0::2], duration=time[1::2] - time[0::2]))


def _require(frame: pd.DataFrame, columns: tuple[str, ...], what: str) -> None:
    absent = [column for column in columns if column not in frame]
    if absent:
        msg = f"{what}: column {absent[0]!r} is missing (has {', '.join(map(str, frame.columns))})"
        raise GraphError(msg)


def _integers(frame: pd.DataFrame, column: str, default: int) -> np.ndarray:
    if column not in frame:
        return np.full(len(frame), default, np.int64)
    values = frame[column].to_numpy()
    whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and bool((np.abs(values) < 2.0**63).all()))
    if not whole or not np.array_equal(np.rint(values), values):
        msg = f"column {column!r} holds whole numbers (ns are integers here), not {values.dtype}"
        raise GraphError(msg)
    return values.astype(np.int64)


def _int32(frame: pd.DataFrame, column: str, default: int) -> np.ndarray:
    values = _integers(frame, column, default)
    beyond = values[values != values.astype(np.int32)]
    if len(beyond):
        msg = f"column {column!r} holds numbers below 2^31, not {beyond[0]}"
        raise GraphError(msg)
    return values.astype(np.int32)


def _booleans(frame: pd.DataFrame, column: str) -> np.ndarray:
    return frame[column].to_numpy(dtype=bool) if column in frame else np.zeros(len(frame), np.bool_)
