"""What an activity belongs to: its operator, module, annotation and call stack, which name the time of its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import texts_of
from htagraph.core.kinds import ANNOTATIONS, OPERATORS, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import is_data_loader, is_module_frame, names_that, short_name
from htagraph.core.parents import nearest
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import Selection, one_activity

if TYPE_CHECKING:
    import pandas as pd
    from pandas.api.extensions import ExtensionArray

__all__ = ["annotation_of", "call_stack", "in_data_loader", "label_of", "module_of", "names_of", "operator_of"]


def operator_of(graph: DependencyGraph, activities: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return for each activity itself if it is an operator, else the innermost operator around it or its launch.

    A collective on a host thread counts as an operator. Without any operator, it is the innermost annotation or step,
    and -1 without those.
    """
    operator = graph.tree.nearest(of_kinds(graph.activities.kind, OPERATORS), activities)
    return np.where(operator >= 0, operator, annotation_of(graph, activities))


def annotation_of(graph: DependencyGraph, activities: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the innermost user annotation, steps included, around each activity or its launch; -1 for none."""
    return graph.tree.nearest(of_kinds(graph.activities.kind, ANNOTATIONS), activities)


def module_of(graph: DependencyGraph, activities: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the ``nn.Module`` frame around each activity, its launch, or the forward operator that it is backward of.

    Where the trace has no such frame (it was recorded without stacks), the innermost annotation; -1 for none.
    """
    kind = graph.activities.kind
    is_module = names_that(is_module_frame, graph.names)
    region = graph.tree.nearest(kind == ActivityKind.ANNOTATION, activities)
    if not is_module.any():
        return region
    backward = graph.edges.kind == EdgeKind.AUTOGRAD
    above = graph.tree.parent.copy()
    above[graph.edges.target[backward] >> 1] = graph.edges.source[backward] >> 1
    module = nearest(above, (kind == ActivityKind.PYTHON) & is_module[graph.activities.name], activities)
    return np.where(module >= 0, module, region)


def in_data_loader(graph: DependencyGraph, activities: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which activities run inside a data loader's call, as all work of a loader without workers does."""
    loader = names_that(is_data_loader, graph.names)[graph.activities.name]
    if not loader.any():
        return np.zeros(np.shape(activities), np.bool_)
    return np.asarray(graph.tree.nearest(loader, activities) >= 0)


def names_of(graph: DependencyGraph, activities: npt.ArrayLike) -> ExtensionArray:
    """Return the names of activities as a column of text, empty for -1."""
    rows = np.asarray(activities)
    which = np.full(rows.shape, -1)
    which[rows >= 0] = graph.activities.name[rows[rows >= 0]]
    return texts_of(graph.names, which)


def label_of(graph: DependencyGraph, activity: int) -> str:
    """Return an activity's name for use in a sentence: shortened, and for device work without its signature."""
    name = graph.names[graph.activities.name[activity]]
    name = short_name(name) if graph.activities.on_device[activity] else name
    return name if len(name) <= 60 else f"{name[:59]}…"


def call_stack(graph: DependencyGraph, activity: int | Selection) -> pd.DataFrame:
    """Return the call stack of an activity: everything that encloses it, the outermost first, and the activity itself.

    A kernel or copy is inside its launch; backward work on a thread of the autograd engine is inside the activity that
    called the engine.

    Args:
        graph: the job.
        activity: its number, or a selection of it alone.

    Returns:
        One row per level, indexed by ``activity`` (int64): ``depth`` (int64, 0 for the outermost), and the columns of
        `Selection.to_frame`: ``rank`` (int32), ``kind``, ``name``, ``lane`` (str), ``stream`` (int64), ``step``
        (int32), ``start_us``, ``duration_us`` (float64, µs), ``parent``, ``cause`` (int32), ``correlation`` (int64).

    Raises:
        SelectionError: there is no such activity.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> kernel = int(graph.select(kind="kernel", name="*gemm*").activities[0])
        >>> hg.call_stack(graph, kernel)["kind"].tolist()[-2:]
        ['launch', 'computation']
    """
    first = one_activity(graph, activity)
    above = graph.tree.parent
    path = [first]
    while above[path[-1]] >= 0:
        path.append(int(above[path[-1]]))
    frame = graph.select(activity=path).to_frame().loc[path[::-1]]
    frame.insert(0, "depth", np.arange(len(path)))
    return frame
