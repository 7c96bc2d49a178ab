"""Where the host spends the time on a critical path: functions, operators, calls and what no event covers, by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array, coded
from htagraph.core.kinds import OPERATORS, ActivityKind, GapKind, of_kinds
from htagraph.core.naming import is_source_frame, names_that

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath

__all__ = ["host_pauses"]

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

    top = _summed(_each(path)).head(count)
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
    rank, one = table["rank"].to_numpy(), table["one"].to_numpy()
    group, first = _groups(coded(one, rank)) if len(table) else (one, one)  # what it is and where say all keys
    ns = np.bincount(group, table["ns"], len(first)).astype(np.int64)  # exact: sums of ns below 2^53
    return table.iloc[first].assign(ns=ns).drop(columns="one").reset_index(drop=True)


def _summed(each: pd.DataFrame) -> pd.DataFrame:
    """Return a row per key, the most time first: the `_KEYS`, ``count``, ``total_ns``, and of the longest the rest."""
    each = each.iloc[np.argsort(-each["ns"].to_numpy(), kind="stable")]
    if not len(each):
        return each.assign(count=0, total_ns=0, longest_ns=0)
    group, first = _groups(coded(*(each[key].to_numpy() for key in _KEYS)))
    total = np.bincount(group, each["ns"]).astype(np.int64)
    best = each.iloc[first].rename(columns={"ns": "longest_ns"}).assign(count=np.bincount(group), total_ns=total)
    return best.iloc[np.argsort(-total, kind="stable")].reset_index(drop=True)


def _groups(code: Array) -> tuple[Array, Array]:
    """Return (the group of each row, the first row of each group); groups are in the order of their first rows."""
    count = int(code.max()) + 1
    first = np.full(count, len(code))
    np.minimum.at(first, code, np.arange(len(code)))
    order = np.argsort(first, kind="stable")
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    return number[code], first[order]


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
    operator = graph.tree.nearest(of_kinds(kind, OPERATORS), begin)
    region = graph.tree.nearest(kind == ActivityKind.ANNOTATION, begin)  # steps are everywhere
    is_call = (owner >= 0) & of_kinds(kind[owner], (ActivityKind.LAUNCH, ActivityKind.SYNC, ActivityKind.RUNTIME))
    place = np.where(is_call & (operator >= 0), operator, np.where(source >= 0, source, operator))
    place = np.where(place >= 0, place, region)
    itself = (owner >= 0) & in_file[owner] & (kind[owner] == ActivityKind.PYTHON)
    return np.where(itself, -1, place)
