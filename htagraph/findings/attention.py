"""Attention by hand: operators between two batched products, which a fused kernel of attention does without."""

from __future__ import annotations

from collections.abc import Iterator
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
    """The names of these, indices into `DependencyGraph.names`; the name with the most time comes first."""
    changes: tuple[tuple[str, str], ...]
    """The options of ``htagraph what-if``, with their values, that take this time away."""


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
    operators = graph.tree.outermost(_on_scores(graph, cores))
    forward = marked(operators, len(acts))
    forward |= graph.tree.inside(forward)
    backward = backward_of(graph, forward)
    covered = forward | backward
    time = np.where(acts.on_device, acts.duration, graph.own_time)
    least = MIN_PERCENT / 100 * time[covered].sum()
    spent = {name: time[forward & _of(graph, name)].sum() for name in np.unique(acts.name[operators]).tolist()}
    names = sorted((name for name in spent if spent[name] > least), key=lambda name: -spent[name])
    changes = tuple(_changes(graph, names, covered, time))
    glob = naming.exact_glob(graph.names[acts.name[cores.softmax[0]]])
    softmax = ("--scale", f"op={glob}*:0")  # and the operator that runs backward for it, where no arrow says which
    return Attention(cores.softmax, operators, tuple(names), (softmax, *changes))


class _Cores(NamedTuple):
    """The softmax of each attention, and the products before and behind it."""

    first: Ints
    softmax: Ints
    second: Ints


def _cores(graph: DependencyGraph) -> _Cores:
    """Return each softmax that follows one batched product, and that another one follows, on a thread."""
    acts = graph.activities
    product, batched, soft = (
        naming.names_that(which, graph.names)[acts.name] & (acts.kind == ActivityKind.OP)
        for which in (naming.is_product, naming.is_batched_product, naming.is_softmax)
    )
    order = np.flatnonzero(product | batched | soft)
    order = order[np.lexsort((acts.start[order], acts.lane[order]))]
    first = order[:-2]
    middle = order[1:-1]
    last = order[2:]
    is_one = batched[first] & soft[middle] & batched[last] & (acts.lane[first] == acts.lane[last])
    return _Cores(first[is_one], middle[is_one], last[is_one])


def _on_scores(graph: DependencyGraph, cores: _Cores) -> Mask:
    """Return which operators of some names run behind the first product of an attention and before the second."""
    acts = graph.activities
    is_one = naming.names_that(naming.is_on_scores, graph.names)[acts.name] & (acts.kind == ActivityKind.OP)
    rows = np.flatnonzero(is_one)
    second = _whole(graph, cores)
    chosen = np.zeros(len(acts), np.bool_)
    for lane in np.unique(acts.lane[cores.first]).tolist():
        of_lane = acts.lane[cores.first] == lane
        begin = acts.end[cores.first[of_lane]]
        end = acts.start[second[of_lane]]
        rows_of_lane = rows[acts.lane[rows] == lane]
        place = np.searchsorted(begin, acts.start[rows_of_lane], "right") - 1
        chosen[rows_of_lane[(place >= 0) & (acts.end[rows_of_lane] <= end[place])]] = True
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


def _changes(graph: DependencyGraph, names: list[int], covered: Mask, time: Ints) -> Iterator[tuple[str, str]]:
    """Yield the changes that take away the time of names; operators of a name are mostly attention, or stay.

    Where a smaller part of a name is elsewhere, the same part of each of its times stays.
    """
    for name in names:
        glob = naming.exact_glob(graph.names[name])
        inside = _of(graph, name)
        yield from _change(criteria_text({"op": glob}), inside, covered, time)
        backward = backward_of(graph, inside)
        yield from _change(criteria_text({"backward_of": glob}), backward, covered, time)


def _change(which: str, rows: Mask, covered: Mask, time: Ints) -> Iterator[tuple[str, str]]:
    """Yield the change that takes away the covered part of the time of some rows, if that is most of it."""
    whole = time[rows].sum()
    share = time[rows & covered].sum() / whole if whole else 0.0
    if share > MOST:
        yield "--scale", f"{which}:{round(1 - share, 4):g}"
