"""Arguments that no column holds: read again from the files, for many activities at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import Selection
from htagraph.trace.readers import reader_of

__all__ = ["argument_texts", "arguments"]


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
        msg = f"activities {chosen.min()} to {chosen.max()}: this graph has activities 0 to {len(acts) - 1}"
        raise SelectionError(msg)
    columns = _columns(graph, names, chosen, as_text=False)
    return pd.DataFrame(columns, index=pd.Index(chosen, dtype="int64", name="activity"), dtype=object)


def argument_texts(graph: DependencyGraph, names: Sequence[str], activities: Array) -> dict[str, Array]:
    """Return arguments by name as `arguments` does, each as the JSON (bytes) that it is in the file; None if absent.

    Args:
        graph: the job.
        names: the arguments' keys in the file.
        activities: numbers of activities.
    """
    return _columns(graph, names, activities, as_text=True)


def _columns(graph: DependencyGraph, names: Sequence[str], chosen: Array, *, as_text: bool) -> dict[str, Array]:
    """Return a column of each argument, as its file has it or as JSON text."""
    columns = {name: np.full(len(chosen), None, object) for name in names}
    rank, event = graph.activities.rank[chosen], graph.activities.event[chosen]
    for number in np.unique(rank[event >= 0]).tolist() if names else ():
        trace = graph.traces.get(number)
        if trace is not None:
            rows = np.flatnonzero((rank == number) & (event >= 0))
            found = reader_of(trace).arguments(trace.unchanged_path(), names, event[rows], as_text=as_text)
            for name in names:
                columns[name][rows] = found[name]
    return columns


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
