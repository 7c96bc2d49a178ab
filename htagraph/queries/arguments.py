"""Arguments that no column holds, read again from the files; and the nodes of execution traces by operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError, TraceError
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import Selection, numbers_text
from htagraph.trace.columns import Trace
from htagraph.trace.readers import reader_of

__all__ = ["argument_texts", "arguments", "link_execution_trace", "recorded_numbers", "records_shapes"]

LINKS = Table(
    "Activities and their nodes",
    Col("name", "str"),
    Col("et_node", "int64"),
    Col("op_schema", "str"),
    Col("input_shapes input_types output_shapes output_types", "list"),
)

_LINKABLE = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.HOST_COMMUNICATION)


def arguments(
    graph: DependencyGraph, names: Sequence[str], activities: npt.ArrayLike | Selection | None = None
) -> pd.DataFrame:
    """Return arguments of activities as recorded in their files; each file is read again, once.

    For one activity with all its arguments there is `DependencyGraph.event`.

    Args:
        graph: the job.
        names: the arguments' keys in the file, such as ``"Input Dims"``.
        activities: numbers of activities, or a selection of `DependencyGraph.select`; all activities of the graph if
            not given.

    Returns:
        One row per activity asked for, in that order, indexed by its number (``activity``, int64), with one column
        (object) per name: numbers, texts and lists as the file has them, None where an activity lacks the argument
        or no file recorded it.

    Raises:
        SelectionError: there is no such activity, or `activities` is no list of activity numbers.
        TypeError: `names` is no list of strings.
        ValueError: a name has quotes, backslashes or control characters, which cannot be looked up.
        TraceError: a file is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> kernels = graph.select(kind="kernel", rank=0).activities
        >>> bool(hg.arguments(graph, ["grid", "block"], kernels)["grid"].notna().all())
        True
    """
    acts = graph.activities
    _refuse_names(names)
    chosen = np.arange(len(acts)) if activities is None else _numbers(graph, activities)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(acts):
        msg = f"activities {chosen.min()} to {chosen.max()}: {numbers_text(len(acts))}"
        raise SelectionError(msg)
    columns = _columns(graph, names, chosen, as_text=False)
    return pd.DataFrame(columns, index=pd.Index(chosen, dtype="int64", name="activity"), dtype=object)


def argument_texts(graph: DependencyGraph, names: Sequence[str], activities: Array) -> dict[str, Array]:
    """Return arguments by name as `arguments` does, each as the JSON (bytes) that it is in the file; None if absent."""
    return _columns(graph, names, activities, as_text=True)


def records_shapes(graph: DependencyGraph) -> bool:
    """Return whether the shapes of any operator's inputs were recorded.

    Example:
        >>> import htagraph as hg
        >>> records_shapes(hg.load("data/gloo_ddp")), records_shapes(hg.load("data/demo"))
        (True, False)
    """
    operators = np.flatnonzero(graph.activities.kind == ActivityKind.OP)
    shapes = argument_texts(graph, ["Input Dims"], operators)["Input Dims"]
    return any(text is not None and any(letter.isdigit() for letter in text.decode()) for text in shapes)


def recorded_numbers(graph: DependencyGraph, names: Sequence[str], activities: Array) -> dict[str, Array]:
    """Return arguments by name as `arguments` does, each as float64; NaN where no number was recorded."""
    texts = argument_texts(graph, names, activities)
    return {name: np.array([_number(text) for text in column], np.float64) for name, column in texts.items()}


def _number(text: bytes | None) -> float:
    """Return the number that JSON text holds, also inside quotes; NaN for any other text."""
    try:
        return np.nan if text is None else float(text.strip(b'"'))
    except ValueError:
        return np.nan


@described(LINKS)
def link_execution_trace(graph: DependencyGraph, nodes: pd.DataFrame, rank: int | None = None) -> pd.DataFrame:
    """Return the node of an execution trace that each operator of a rank belongs to.

    Both files number the operators of a process: a node's record-function id is the External id of its activity. Pairs
    with different names are left out.

    Args:
        graph: the job, recorded in the same run.
        nodes: the nodes, as `read_execution_trace` returns them.
        rank: the rank of the execution trace; may be left out if the graph has only one rank.

    Returns:
        One row per operator or annotation that has a node, indexed by ``activity`` (int64): {columns}.

    Raises:
        SelectionError: the rank is not in the graph, or there are several ranks and none is given.
        TraceError: ids are shared but most names differ, so the two were not recorded in one run.

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
    of_rank = acts.of_rank(_rank(graph, rank))
    external = acts.arg("external_id")[of_rank]
    known = of_kinds(acts.kind[of_rank], _LINKABLE) & (external > 0)
    rows = of_rank.start + np.flatnonzero(known)
    real = nodes[nodes["rf_id"] > 0].drop_duplicates("rf_id")
    at = pd.Index(real["rf_id"]).get_indexer(pd.Index(external[known]))
    rows, at = rows[at >= 0], at[at >= 0]
    names = np.array([graph.names[name] for name in acts.name[rows]], object)
    same = names == real["name"].to_numpy(object)[at]
    if len(rows) and same.mean() < MOST:
        first = int(np.argmin(same))
        msg = (
            f"the execution trace is not of this run: {int((~same).sum())} of {len(rows)} shared ids have other names, "
            f"such as {real['name'].iloc[at[first]]!r} for {graph.describe(int(rows[first]))}"
        )
        raise TraceError(msg)
    linked = real.iloc[at[same]].rename_axis("et_node").reset_index().set_index(pd.Index(rows[same], name="activity"))
    return LINKS.frame(linked)


def _columns(graph: DependencyGraph, names: Sequence[str], chosen: Array, *, as_text: bool) -> dict[str, Array]:
    """Return a column of each argument, as its file has it or as JSON text."""
    columns = {name: np.full(len(chosen), None, object) for name in names}
    rank, event = graph.activities.rank[chosen], graph.activities.event[chosen]
    for number in np.unique(rank[event >= 0]).tolist() if names else ():
        trace = graph.traces.get(number)
        if trace is not None:
            rows = np.flatnonzero((rank == number) & (event >= 0))
            _read_into(columns, trace, rows, event[rows], as_text=as_text)
    lent = graph.activities.arg("captured_event")[chosen] if names and graph.captures else np.full(len(chosen), -1)
    for number in np.unique(lent[lent >= 0] >> 32).tolist():
        rows = np.flatnonzero((lent >= 0) & (lent >> 32 == number))
        _read_into(columns, graph.captures[number], rows, lent[rows] & (1 << 32) - 1, as_text=as_text)
    return columns


def _read_into(columns: dict[str, Array], trace: Trace, rows: Array, events: Array, *, as_text: bool) -> None:
    found = reader_of(trace).arguments(trace.unchanged_path(), [*columns], events, as_text=as_text)
    for name, column in columns.items():
        column[rows] = found[name]


def _refuse_names(names: Sequence[str]) -> None:
    """Raise an error for names that cannot be looked up, and for a string in place of a list."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        msg = f"names={names!r}: give a list of strings, such as ['Input Dims']"
        raise TypeError(msg)
    odd = [name for name in names if '"' in name or "\\" in name or any(letter < " " for letter in name)]
    if odd:
        msg = f"{odd[0]!r}: argument names with quotes, backslashes or control characters cannot be looked up"
        raise ValueError(msg)


def _numbers(graph: DependencyGraph, activities: npt.ArrayLike | Selection) -> Array:
    if isinstance(activities, Selection):
        if activities.graph is not graph:
            msg = "activities: selected from another graph; select them from this one"
            raise SelectionError(msg)
        return activities.activities
    try:
        numbers = np.asarray(activities)
    except (ValueError, OverflowError):  # lists of several lengths
        numbers = np.zeros((0, 0))
    if numbers.ndim != 1 or (len(numbers) and not np.issubdtype(numbers.dtype, np.integer)):
        msg = f"activities={activities!r}: give a flat list of activity numbers, or a selection"
        raise SelectionError(msg)
    return numbers.astype(np.int64)


def _rank(graph: DependencyGraph, rank: int | None) -> int:
    if rank in graph.ranks:
        return int(rank)
    if rank is None and len(graph.ranks) <= 1:
        return graph.ranks[0] if graph.ranks else 0
    msg = f"rank={rank}: give the rank of the execution trace; this graph has ranks {', '.join(map(str, graph.ranks))}"
    raise SelectionError(msg)
