"""The device work inside activities as sequences of kernel names, and which of these sequences are equal."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, Ints, coded, marked
from htagraph.core.kinds import FRAMES, ActivityKind, of_kinds
from htagraph.core.naming import names_that
from htagraph.core.parents import nearest
from htagraph.core.tables import Col, Table
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "PATTERNS",
    "Sequences",
    "containing",
    "launching_most",
    "named",
    "numbered",
    "sequences_below",
    "work_below",
]

PATTERNS = Table(
    "Kernel sequences, the most frequent first",
    Col("rank", "int64"),
    Col("operator", "str", "whole name of the operator"),
    Col("pattern", "str", "names of the operator and of its kernels and copies, with ``|`` between"),
    Col("kernels", "int64", "number of kernels and copies in the pattern"),
    Col("count", "int64", "number of occurrences"),
    Col("kernel_us", doc="summed durations of the kernels and copies of all occurrences"),
    Col("operator_us", doc="summed durations of the operator in all occurrences"),
    Col("example", "int64", "activity number of the operator in the first occurrence"),
)


_EXAMINED = 5
"""Names that are looked at for each one that is returned. Chosen: recursive functions, and functions that run once,
wrap repeated functions. Doubled, deeper stacks are looked into."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Occurrences of operators with the sequence of device work inside each."""

    graph: DependencyGraph
    root: Array
    """The activity of each occurrence, ascending."""
    pattern: Array
    """Per occurrence: the number of its pattern, which is equal for equal rank, operator name and kernel names."""
    work: Array
    """The kernels and copies of all occurrences, by occurrence and then by start."""
    occurrence: Array
    """Per kernel or copy: its occurrence, an index into `root`."""
    above: Array
    """Per activity: its parent in the tree that was given, -1 for none."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pattern, as documented at `htagraph.kernel_patterns`, numbered as in `pattern`."""
        acts, names = self.graph.activities, self.graph.names
        count = int(self.pattern.max()) + 1 if len(self.pattern) else 0
        _, first = np.unique(self.pattern, return_index=True)
        offsets = np.searchsorted(self.occurrence, [first, first + 1]) if count else np.zeros((2, 0), np.int64)
        texts = [[names[i] for i in acts.name[self.work[slice(*each)]].tolist()] for each in offsets.T.tolist()]
        operator = [names[i] for i in acts.name[self.root[first]].tolist()]
        table = {
            "rank": acts.rank[self.root[first]],
            "operator": operator,
            "pattern": ["|".join((name, *text)) for name, text in zip(operator, texts, strict=True)],
            "kernels": offsets[1] - offsets[0],
            "count": np.bincount(self.pattern, minlength=count),
            "kernel_us": np.bincount(self.pattern[self.occurrence], acts.duration[self.work] / 1000, count),
            "operator_us": np.bincount(self.pattern, acts.duration[self.root] / 1000, count),
            "example": self.root[first],
        }
        return PATTERNS.frame(table)

    def members(self) -> Array:
        """Return for each activity the pattern of the occurrence that it is or is inside of; -1 for the others."""
        number = np.full(len(self.graph.activities), -1, np.int64)
        number[self.root] = self.pattern
        is_root = number >= 0
        root = nearest(self.above, is_root, np.arange(len(number)))
        return np.where(root >= 0, number[root], -1)


def named(graph: DependencyGraph, matches: Callable[[str], bool]) -> Array:
    """Return which activities are operators, annotations or Python frames with a name that matches."""
    fits = names_that(matches, graph.names)
    return fits[graph.activities.name] & of_kinds(graph.activities.kind, FRAMES)


def containing(graph: DependencyGraph, text: str) -> Array:
    """Return which activities are operators, annotations or Python frames with a text in their name, or named so."""
    if not isinstance(text, str):
        msg = f"operator={text!r}: give a text in the name of an operator, annotation or Python frame, or a glob"
        raise TypeError(msg)
    whole = re.compile(fnmatch.translate(text))
    return named(graph, lambda name: text in name or whole.match(name) is not None)


def launching_most(graph: DependencyGraph, min_length: int, most: int) -> list[str]:
    """Return the names of operators, annotations and Python frames that launch the most device time, the most first.

    Args:
        graph: the job.
        min_length: kernels and copies that an activity launches at least; two activities of a rank do, at least.
        most: how many names at most. Steps, which contain everything, are left out.

    Example:
        >>> import htagraph as hg
        >>> launching_most(hg.load("data/demo"), 3, 1)
        ['autograd::engine::evaluate_function: AddmmBackward0']
    """
    acts = graph.activities
    counts, times_ns = _launched_inside(graph)
    is_enough = counts >= max(1, min_length)
    rows = np.flatnonzero(of_kinds(acts.kind, FRAMES) & (acts.kind != ActivityKind.STEP) & is_enough)
    sums = np.bincount(acts.name[rows], times_ns[rows], len(graph.names))
    names = np.argsort(-sums, kind="stable")[: int((sums > 0).sum())]
    repeated = []
    for name in names[: _EXAMINED * most].tolist():
        outermost = graph.tree.outermost(marked(rows[acts.name[rows] == name], len(acts)))
        if np.bincount(acts.rank[outermost]).max() > 1:
            repeated.append(graph.names[name])
        if len(repeated) == most:
            break
    return repeated


def _launched_inside(graph: DependencyGraph) -> tuple[Ints, Ints]:
    """Return the number of kernels and copies launched inside each activity, and the time of their work, ns."""
    acts, size = graph.activities, len(graph.activities)
    counts = np.zeros(size, np.int64)
    times_ns = np.zeros(size, np.int64)
    work = np.flatnonzero(acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER))
    above = graph.tree.parent[work]
    while len(work):
        is_inside = above >= 0
        work = work[is_inside]
        above = above[is_inside]
        counts += np.bincount(above, minlength=size)
        times_ns += np.bincount(above, acts.duration[work], size).astype(np.int64)
        above = graph.tree.parent[above]
    return counts, times_ns


def sequences_below(graph: DependencyGraph, root: Array, above: Array, min_length: int) -> Sequences:
    """Return the sequences of device work inside activities (`root`, ascending, none inside another).

    Activities with fewer than `min_length` kernels and copies are left out; `above` is the parent of every activity.
    """
    if not isinstance(min_length, int | np.integer):
        msg = f"min_length={min_length!r}: give a whole number"
        raise TypeError(msg)
    acts = graph.activities
    work, owner = work_below(graph, above, root)
    owner = np.searchsorted(root, owner)
    enough = np.bincount(owner, minlength=len(root)) >= max(1, min_length)
    work, owner = work[enough[owner]], (np.cumsum(enough) - 1)[owner[enough[owner]]]
    order = np.lexsort((acts.start[work], owner))
    work, owner, root = work[order], owner[order], root[enough]
    return Sequences(graph, root, numbered(graph, root, work, owner), work, owner, above)


def work_below(graph: DependencyGraph, above: Array, roots: Array) -> tuple[Array, Array]:
    """Return (device work inside some activities, the innermost of them around each kernel or copy)."""
    acts = graph.activities
    wanted = marked(roots, len(acts))
    work = np.flatnonzero(acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER))
    owner = nearest(above, wanted, work)
    return work[owner >= 0], owner[owner >= 0]


def numbered(graph: DependencyGraph, root: Array, work: Array, occurrence: Array) -> Array:
    """Return a number for each occurrence: equal for equal rank, operator name and sequence of kernel names.

    The kernels and copies of an occurrence, which its activity `root` launched, stand one after the other in `work`.
    """
    acts, first = graph.activities, np.searchsorted(occurrence, np.arange(len(root) + 1))
    length, at, size = np.diff(first), first[:-1].copy(), 1
    code, number = acts.name[work].astype(np.int64), coded(acts.rank[root], acts.name[root], length)
    # a sequence is stretches of 1, 2, 4, … names, which have codes: those of twice the size follow from two of them
    while size <= length.max(initial=0):
        has = np.flatnonzero(length & size)
        stretch = pd.factorize(number[has] * (len(graph.names) + len(work)) + code[at[has]])[0]
        number[has] = len(root) + stretch  # numbers below are those of other lengths
        number, at[has] = pd.factorize(number)[0], at[has] + size
        code = pd.factorize(code[:-size] * (len(graph.names) + len(work)) + code[size:])[0]
        size *= 2
    return pd.factorize(number)[0]
