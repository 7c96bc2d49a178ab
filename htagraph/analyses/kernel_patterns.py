"""Sequences of kernels that an operator launches, and how often: candidates for fusing or replacing as a whole."""

from __future__ import annotations

import pandas as pd

from htagraph.core.naming import LINEAR
from htagraph.core.tables import described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.kernel_sequences import PATTERNS, containing, sequences_below

__all__ = ["kernel_patterns"]

TABLE = PATTERNS


@described(TABLE)
def kernel_patterns(graph: DependencyGraph, operator: str = LINEAR, *, min_length: int = 3) -> pd.DataFrame:
    """Return the sequences of kernels, copies and memsets that occurrences of an operator launched.

    An occurrence is an operator, annotation or Python frame of that name, outside all other occurrences. Its sequence
    is the device work that was launched inside it or inside its backward operators on the autograd engine's thread, in
    the order in which this work started, all streams together.

    Args:
        graph: the job.
        operator: text in the name of the operator, annotation or Python frame, or a glob of the whole name, such as
            ``"aten::*mm"``.
        min_length: occurrences with less device work than this do not count.

    Returns:
        One row per rank and pattern, the most frequent of a rank first: {columns}.

    Raises:
        TypeError: `operator` is no string, or `min_length` no integer.

    Example:
        >>> import htagraph as hg
        >>> table = hg.kernel_patterns(hg.load("data/demo"), "aten::addmm", min_length=1)
        >>> bool((table["count"] > 0).all())
        True

    Source: HTA's frequent CUDA kernel patterns, without its rule that only occurrences at one depth count.
    """
    root = graph.tree.outermost(containing(graph, operator))
    table = sequences_below(graph, root, graph.tree.parent, min_length).to_frame()
    order = {"rank": True, "count": False, "pattern": True}
    return table.sort_values(list(order), ascending=list(order.values()), kind="stable", ignore_index=True)
