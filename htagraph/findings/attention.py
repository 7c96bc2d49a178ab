"""Attention by hand: operators between two batched products, which a fused kernel of attention does without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from htagraph.core import naming
from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import MOST
from htagraph.findings.limits import MIN_PERCENT
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import backward_of
from htagraph.whatif.options import criteria_text

__all__ = ["Attention", "attention_in"]


class Attention(NamedTuple):
    """The operators on scores of attention."""

    softmax: Ints
    """The operators that compute a softmax of scores."""
    operators: Ints
    """All operators on scores, each the outermost one; operators that run backward for them are not listed."""
    names: tuple[int, ...]
    """The names of the operators, indices into `DependencyGraph.names`; the name with the most time comes first."""
    changes: tuple[tuple[str, str], ...]
    """The options of the command line, with their values, that take the time of the operators away."""


def attention_in(graph: DependencyGraph) -> Attention | None:
    """Return the operators on scores, from the first product of each attention to the second; None for none.

    Example:
        >>> import htagraph as hg
        >>> attention_in(hg.load("data/demo")) is None
        True
    """
    acts = graph.activities
    cores = _cores(graph)
    if not len(cores.softmax):
        return None
    elsewhere = _share_elsewhere(graph, cores)
    if elsewhere >= MOST:  # no criteria tell attention from routers and classifiers
        return None
    scores = _work_on_scores(graph, cores)
    names = _names(graph, scores)
    changes = _changes(graph, names, scores)
    glob = naming.exact_glob(graph.names[acts.name[cores.softmax[0]]])
    # the glob has a star for the operator that runs backward, where no arrow says which one that is
    softmax = ("--scale", f"op={glob}*:{round(elsewhere, 4):g}")
    return Attention(cores.softmax, scores.operators, tuple(names), (softmax, *changes))


def _share_elsewhere(graph: DependencyGraph, cores: _Cores) -> float:
    """Return the share of softmax operators, of the name that attention has, that are in no attention."""
    acts = graph.activities
    name = acts.name[cores.softmax[0]]
    named = graph.tree.outermost((acts.name == name) & (acts.kind == ActivityKind.OP))
    return 1 - float(np.isin(named, cores.softmax).mean())


class _Cores(NamedTuple):
    """The softmax of each attention, and the products before and behind it."""

    first: Ints
    softmax: Ints
    second: Ints


def _cores(graph: DependencyGraph) -> _Cores:
    """Return each softmax that follows one batched product, and that another one follows, on a thread."""
    acts = graph.activities
    is_product = _operators(graph, naming.is_product)
    is_batched = _operators(graph, naming.is_batched_product)
    is_softmax = marked(graph.tree.outermost(_operators(graph, naming.is_softmax)), len(acts))
    rows = np.flatnonzero(is_product | is_batched | is_softmax)
    order = rows[np.lexsort((acts.start[rows], acts.lane[rows]))]
    first = order[:-2]
    middle = order[1:-1]
    last = order[2:]
    is_core = is_batched[first] & is_softmax[middle] & is_batched[last]
    is_core &= acts.lane[first] == acts.lane[last]
    return _Cores(first[is_core], middle[is_core], last[is_core])


def _operators(graph: DependencyGraph, fits: Callable[[str], bool]) -> Mask:
    """Return which activities are operators whose name fits."""
    acts = graph.activities
    return naming.names_that(fits, graph.names)[acts.name] & (acts.kind == ActivityKind.OP)


class _WorkOnScores(NamedTuple):
    """The work on scores, and the time of all activities."""

    operators: Ints
    """The operators on scores, each the outermost one."""
    forward: Mask
    """Which activities are operators on scores, or inside of one."""
    covered: Mask
    """Which activities are work on scores, forward or backward."""
    time: Ints
    """How long each activity takes itself, ns."""


def _work_on_scores(graph: DependencyGraph, cores: _Cores) -> _WorkOnScores:
    """Return the work on the scores of some attentions."""
    acts = graph.activities
    operators = graph.tree.outermost(_on_scores(graph, cores))
    forward = marked(operators, len(acts))
    forward |= graph.tree.inside(forward)
    covered = forward | backward_of(graph, forward)
    time = np.where(acts.on_device, acts.duration, graph.own_time)
    return _WorkOnScores(operators, forward, covered, time)


def _names(graph: DependencyGraph, scores: _WorkOnScores) -> list[int]:
    """Return the names of operators on scores that take a share worth naming, the name with the most time first."""
    least = MIN_PERCENT / 100 * scores.time[scores.covered].sum()
    spent = dict[int, float]()
    for name in np.unique(graph.activities.name[scores.operators]).tolist():
        ns = scores.time[scores.forward & _of(graph, name)].sum()
        if ns > least:
            spent[name] = ns
    return sorted(spent, key=lambda name: -spent[name])


def _on_scores(graph: DependencyGraph, cores: _Cores) -> Mask:
    """Return which operators of some names run behind the first product of an attention and before the second."""
    acts = graph.activities
    rows = np.flatnonzero(_operators(graph, naming.is_on_scores))
    second = _whole(graph, cores)
    lanes = acts.lane[cores.first]
    chosen = np.zeros(len(acts), np.bool_)
    for lane in np.unique(lanes).tolist():
        of_lane = lanes == lane
        begin = acts.end[cores.first[of_lane]]
        end = acts.start[second[of_lane]]
        candidates = rows[acts.lane[rows] == lane]
        place = np.searchsorted(begin, acts.start[candidates], "right") - 1
        is_between = (place >= 0) & (acts.end[candidates] <= end[place])
        chosen[candidates[is_between]] = True
    return chosen


def _whole(graph: DependencyGraph, cores: _Cores) -> Ints:
    """Return the outermost operator around each second product that begins behind the softmax: ``aten::matmul``."""
    acts = graph.activities
    rows = cores.second
    while True:
        around = acts.parent[rows]
        is_further = (around >= 0) & (acts.kind[around] == ActivityKind.OP)
        is_further &= acts.start[around] >= acts.end[cores.softmax]
        if not is_further.any():
            return rows
        rows = np.where(is_further, around, rows)


def _of(graph: DependencyGraph, name: int) -> Mask:
    """Return which activities have a name or are inside one of that name."""
    named = graph.activities.name == name
    return named | graph.tree.inside(named)


def _changes(graph: DependencyGraph, names: list[int], scores: _WorkOnScores) -> Iterator[tuple[str, str]]:
    """Yield the changes that take away the time of names; operators of a name are mostly attention, or stay.

    Where a smaller part of a name is elsewhere, the same part of each of its times stays.
    """
    for name in names:
        glob = naming.exact_glob(graph.names[name])
        inside = _of(graph, name)
        yield from _change(criteria_text({"op": glob}), inside, scores)
        backward = backward_of(graph, inside)
        yield from _change(criteria_text({"backward_of": glob}), backward, scores)


def _change(selected: str, rows: Mask, scores: _WorkOnScores) -> Iterator[tuple[str, str]]:
    """Yield the change that takes the work on scores out of the time of some activities, if it is most of that time.

    Args:
        selected: the criteria that select the activities, as options of the command line have them.
        rows: which activities they are.
        scores: the work on scores.
    """
    whole = scores.time[rows].sum()
    share = scores.time[rows & scores.covered].sum() / whole if whole else 0.0
    if share > MOST:
        yield "--scale", f"{selected}:{round(1 - share, 4):g}"
