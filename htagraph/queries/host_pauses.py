"""Where the host spends the time on a critical path: functions, operators, calls and what no event covers, by place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import OPERATORS, ActivityKind, GapKind
from htagraph.core.naming import is_source_frame, names_that

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath

__all__ = ["host_pauses"]

Array: TypeAlias = npt.NDArray[Any]
_CATEGORIES = ("host", "launch", "sync")
_KEYS = ["what", "inside", "before", "rank"]
_COLUMNS = {
    "what": "str", "inside": "str", "before": "str", "after": "str", "rank": "int64", "count": "int64",
    "total_us": "float64", "longest_us": "float64", "share_percent": "float64", "activity": "int64",
}  # fmt: skip


def host_pauses(path: CriticalPath, count: int = 5) -> pd.DataFrame:
    """Return what the host did on a critical path, by what ran and where, the most time first.

    Args:
        path: the critical path.
        count: how many rows at most.

    Returns:
        One row per rank, activity's name and place: ``what`` (str: the function, operator or call whose own time it is;
        empty for host code that no event covers), ``inside`` (str: the innermost Python function with a source file
        around it, else the operator, else the annotation; empty for none or one of the same name), ``before`` (str:
        what came next, where no event covers the time), ``after`` (str: what ended before the longest of these),
        ``rank`` (int64), ``count`` (int64, activities or gaps), ``total_us``, ``longest_us`` (float64),
        ``share_percent`` (float64, of the path), ``activity`` (int64: the longest one, or what followed the longest
        gap).

    Example:
        >>> import htagraph as hg
        >>> table = host_pauses(hg.critical_path(hg.load("data/demo")))
        >>> bool(table["total_us"].is_monotonic_decreasing)
        True
    """
    import pandas as pd

    each = _each(path)
    longest = each.sort_values("ns", ascending=False, kind="stable").groupby(_KEYS, sort=False)
    sums = longest.agg(
        count=("ns", "size"), total_ns=("ns", "sum"), longest_ns=("ns", "first"), activity=("activity", "first"),
        after=("after", "first"),
    )  # fmt: skip
    top = sums.sort_values("total_ns", ascending=False, kind="stable").head(count).reset_index()
    words = np.array([*path.graph.names, ""], object)
    texts = {key: pd.array(words[top[key].to_numpy(np.int64)], dtype="str") for key in (*_KEYS[:3], "after")}
    return pd.DataFrame({
        **texts, "rank": top["rank"], "count": top["count"], "total_us": top["total_ns"] / 1000,
        "longest_us": top["longest_ns"] / 1000, "share_percent": 100 * top["total_ns"] / max(path.makespan_ns, 1),
        "activity": top["activity"],
    })[list(_COLUMNS)].astype(_COLUMNS)  # fmt: skip


def _each(path: CriticalPath) -> pd.DataFrame:
    """Return a row per activity of the host, or gap, on a path: the `_KEYS` (codes of names), ``ns``, ``activity``."""
    import pandas as pd

    from htagraph.queries.paths import CATEGORIES

    graph, parts = path.graph, path.segments
    rows = np.flatnonzero(np.isin(parts.category, [CATEGORIES.index(word) for word in _CATEGORIES]))
    owner, target = parts.activity[rows], parts.target[rows]
    name, gap = graph.activities.name, parts.gap[rows] != GapKind.NONE
    parent = np.append(graph.tree.parent, -1)
    at_start = parts.start[rows] + parts.length[rows] == graph.time[2 * target]
    begin = np.where(gap, parts.region[rows], parent[owner])
    begin = np.where(gap & at_start & (begin == target), parent[target], begin)  # before it, so not inside it
    place, what = _places(path, begin, np.where(gap, -1, owner)), np.where(gap, -1, name[owner])
    table = pd.DataFrame({
        "what": what, "inside": np.where((place >= 0) & (name[place] != what), name[place], -1),
        "before": np.where(gap & at_start, name[target], -1),
        "after": np.where(gap, _ended_before(graph, 2 * target + ~at_start), -1),
        "rank": graph.activities.rank[parts.place[rows]].astype(np.int64),
        "one": np.where(gap, len(name) + rows, owner),  # slices of one activity are one; each gap is one
        "ns": parts.length[rows], "activity": np.where(gap, target, owner),
    })  # fmt: skip
    return (
        table.groupby([*_KEYS, "one"], sort=False)
        .agg(ns=("ns", "sum"), activity=("activity", "first"), after=("after", "first"))
        .reset_index()
    )


def _ended_before(graph: DependencyGraph, vertex: Array) -> Array:
    """Return the name of what ended on the same thread before the gap at each vertex; -1 where something only began."""
    edge, acts = graph.binding[vertex], graph.activities
    source = np.where(edge >= 0, graph.edges.source[edge], -1)
    same = acts.lane[source >> 1] == acts.lane[vertex >> 1]
    return np.where((source >= 0) & (source % 2 == 1) & same, acts.name[source >> 1], -1)


def _places(path: CriticalPath, begin: Array, owner: Array) -> Array:
    """Return the activity that says where something ran; -1 for none, and for functions that say it themselves.

    It is the innermost Python function with a source file around it, else operator, else annotation; for calls of the
    runtime, the operator first.
    """
    graph = path.graph
    kind = graph.activities.kind
    in_file = names_that(is_source_frame, graph.names)[graph.activities.name]
    source = graph.tree.nearest((kind == ActivityKind.PYTHON) & in_file, begin)
    operator = graph.tree.nearest(np.isin(kind, OPERATORS), begin)
    region = graph.tree.nearest(kind == ActivityKind.ANNOTATION, begin)  # steps are everywhere
    is_call = (owner >= 0) & np.isin(kind[owner], (ActivityKind.LAUNCH, ActivityKind.SYNC, ActivityKind.RUNTIME))
    place = np.where(is_call & (operator >= 0), operator, np.where(source >= 0, source, operator))
    place = np.where(place >= 0, place, region)
    itself = (owner >= 0) & in_file[owner] & (kind[owner] == ActivityKind.PYTHON)
    return np.where(itself, -1, place)
