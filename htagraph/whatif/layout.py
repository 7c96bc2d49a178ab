"""The layout of a job: which process groups are data, tensor and pipeline parallel, and what other sizes change."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np

from htagraph.core import naming
from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.core.statistics import least_of
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import Matches
from htagraph.queries.fetches import fetch_time
from htagraph.queries.weights import OwnTime, State, Unsure, of_kind, time_of, waiting, with_factor
from htagraph.whatif.unknown_layout import REDUCTIONS, in_forward_pass, normalizes, of_undecided, unshared_work

__all__ = [
    "STAGE_ERROR", "Axis", "group_sizes", "groups_of_axis", "in_groups", "known_groups", "pattern_of", "stages_of",
    "undecided_groups",
    "with_more_stages", "with_shared_work", "works_of",
]  # fmt: skip

Axis: TypeAlias = Literal["data", "tensor", "pipeline"]

_WORDS: Final[dict[Axis, set[str]]] = {
    "data": {"dp", "data", "ddp", "fsdp", "dpcp"},
    "tensor": {"tp", "tensor"},
    "pipeline": {"pp", "pipe", "pipeline", "embd", "embedding"},
}
"""Words of labels of process groups by axis, as PyTorch's meshes, Megatron and DeepSpeed name them."""
_SHRINKS: Final = 0.12
"""How much of the time that half of the work saves may be lost, because smaller kernels use a device less well.
Source: models with half the batch take 0.43 to 0.55 of the time (NeuSight 6945927, 21 pairs on 7 devices; one of a
mixture of experts 0.55). Doubled, such predictions have intervals that are twice as wide."""
STAGE_ERROR = 0.15
"""Relative error of the time of a stage, of a turn of a pipeline or of a wait for it. Chosen: stages of equally many
layers differ, as the first has the embedding and the last one the head. Doubled, their intervals are twice as wide."""


def group_sizes(matches: Matches) -> Ints:
    """Return, per collective, how many ranks its group has: all of its members where the recording does not say."""
    return np.where(matches.size > 0, matches.size, np.bincount(matches.collective)).astype(np.int64)


def in_groups(matches: Matches, pattern: str) -> Mask:
    """Return True for each collective whose group's label is a text, or matches it as a glob.

    Raises:
        SelectionError: none does.
    """
    chosen = np.array([group == pattern or fnmatch.fnmatchcase(group, pattern) for group in matches.group], np.bool_)
    if not chosen.any():
        msg = f"no process group matches {pattern!r}; the graph has: {', '.join(sorted(set(matches.group)))}"
        raise SelectionError(msg)
    return chosen


def groups_of_axis(graph: DependencyGraph, axis: Axis, pattern: str | None = None) -> Mask:
    """Return True for each collective of the process groups of an axis of the layout.

    Labels that name this axis and no other say it, or a `pattern` for labels, and that a group exchanges activations,
    which makes it tensor parallel; how groups lie among ranks does not.

    Raises:
        SelectionError: the groups do not tell, or differ in size, as those of two axes do.
    """
    matches = graph.matches
    assert matches is not None  # the job has transfers
    chosen = known_groups(graph, axis) if pattern is None else in_groups(matches, pattern)
    chosen &= np.array([op != "send_recv" for op in matches.op], np.bool_)
    sizes = np.unique(group_sizes(matches)[chosen])
    if len(sizes) != 1:
        why = f"these have {' and '.join(map(str, sizes))} ranks" if len(sizes) else "the recording does not show it"
        more = f"groups= says it, such as groups={pattern_of(matches.group[0])}; or give the number of ranks"
        msg = f"{axis}=: which process groups are {axis} parallel? {why}; {more}"
        raise SelectionError(msg)
    return chosen


def pattern_of(label: str) -> str:
    """Return a short glob that matches a label, without the commas, brackets and spaces that labels may have."""
    return f"*{max(re.findall('[A-Za-z_]+', label), key=len, default='')}*"


def known_groups(graph: DependencyGraph, *axes: Axis) -> Mask:
    """Return True for each collective of a group whose label names one axis, of these, or that shows to be on it.

    Groups that reduce in the forward pass, a fifth of the time or more, reduce activations: they are tensor parallel.
    (A backward pass reduces as much, or twice as much if it computes the forward pass again.) A reduction is of the
    forward pass if it was asked for in an operator or module of it, or between two forward operators.
    """
    acts, tree, matches = graph.activities, graph.tree, graph.matches
    assert matches is not None  # the job has transfers
    ops = acts.kind == ActivityKind.OP
    asks, engine, module = (
        naming.names_that(each, graph.names)[acts.name]
        for each in (naming.is_collective_call, naming.is_backward, naming.is_module_frame)
    )
    call = tree.nearest(ops & asks, matches.activity)
    forward = (call >= 0) & tree.inside((ops & ~asks) | module)[call] & ~tree.inside(ops & engine)[call]
    forward |= in_forward_pass(graph, call)
    took = least_of(acts.duration[matches.activity], matches.collective)
    took *= np.isin(matches.op, REDUCTIONS)[matches.collective]
    named, group = {label: _axes_of(label) for label in {*matches.group}}, np.array(matches.group)[matches.collective]
    for label in [label for label, axes_ in named.items() if not axes_]:
        own = group == label
        if took[own].sum() < 5 * took[own & forward].sum():
            named[label] = ["tensor"]
    return np.array([named[label] in [[axis] for axis in axes] for label in matches.group], np.bool_)


def undecided_groups(graph: DependencyGraph) -> Mask:
    """Return True for each collective of a group that neither its label nor the recording puts on an axis."""
    assert graph.matches is not None  # the job has transfers
    return of_undecided(graph, [label for label in graph.matches.group if not _axes_of(label)])


def _axes_of(label: str) -> list[Axis]:
    words = set(re.findall("[a-z]+", label.lower()))
    return [axis for axis, known in _WORDS.items() if words & known]


def stages_of(graph: DependencyGraph) -> tuple[int, float]:
    """Return (how many stages the job's pipelines have, how many micro-batches a step has); (1, 0) without messages.

    Raises:
        SelectionError: messages do not go along a line of stages, as those of interleaved stages and of rings.
    """
    matches = graph.matches
    assert matches is not None  # the job has transfers
    count = Counter(label for label, op in zip(matches.group, matches.op, strict=True) if op == "send_recv")
    rank, group = graph.activities.rank[matches.activity], np.array(matches.group)[matches.collective]
    pairs = {frozenset(rank[group == label].tolist()) for label in count}
    lines: list[frozenset[int]] = []
    for pair in pairs:
        near = [line for line in lines if line & pair]
        lines = [line for line in lines if not line & pair] + [pair.union(*near)]
    if len(pairs) != sum(len(line) - 1 for line in lines):
        msg = "pipeline=: messages between ranks form rings, as of interleaved stages, for which no formula is known"
        raise SelectionError(msg)
    steps = max(len(np.unique(graph.step_spans.step)), 1)
    return max(map(len, lines), default=1), float(np.median(list(count.values()) or [0])) / steps


def works_of(graph: DependencyGraph, *, optimizer: bool) -> Mask:
    """Return True for each activity that computes: kernels, or operators where no rank has any; last an extra False.

    Without `optimizer`, the optimizer's step is left out.
    """
    acts = graph.activities
    within = naming.names_that(naming.is_optimizer, graph.names)[acts.name]
    within |= graph.tree.inside(within)
    works = acts.kind == ActivityKind.COMPUTATION
    if works.any():
        within = (acts.cause >= 0) & within[acts.cause]
    else:
        asks = naming.names_that(naming.is_collective_call, graph.names)[acts.name]
        works = (acts.kind == ActivityKind.OP) & ~asks & ~graph.tree.around(asks)
    return np.append(works & (optimizer | ~within), False)


def with_shared_work(state: State, factor: float, axis: Axis) -> State:
    """Return the state in which each rank has `factor` times the work: kernels, or operators where there are none.

    Along the data axis, that is a part of the batch: the data loader and copies to the device take a part of their
    time, too, and the optimizer's step stays, because it goes over all parameters. Tensor parallel ranks share products
    of matrices and attention, but each rank normalizes all activations; the interval holds that each rank does other
    work on activations as a whole, too. Smaller kernels may use the device less well, which the interval holds.
    """
    graph = state.graph
    acts = graph.activities
    optimizer = axis != "data"
    works = works_of(graph, optimizer=optimizer)
    if axis == "tensor":
        works[:-1] &= ~naming.names_that(normalizes, graph.names)[acts.name]
    loading = OwnTime(*(np.zeros(0, np.int64),) * 3)
    if not optimizer:
        copies = acts.kind == ActivityKind.MEMORY
        works[:-1] |= copies & naming.names_like(naming.DEFAULT_NAMING.to_device, graph.names, acts.name)
        loading = fetch_time(state)
    time = time_of(state, works, loader=False, outside=np.zeros(len(acts), np.bool_))
    edges = np.union1d(time.edges, loading.edges).astype(np.int64)
    state = with_factor(state, OwnTime(edges, waiting(state, edges), loading.gaps), factor)
    rows = np.union1d(np.flatnonzero(works), graph.edges.activity[loading.edges])
    rows, vertices = rows[rows >= 0].astype(np.int64), loading.gaps
    lost = np.full(len(rows) + len(vertices), 1 + _SHRINKS * abs(1 - 1 / factor) * min(factor, 1))
    state = replace(state, unsure=(*state.unsure, Unsure(rows, 1 / lost, lost, vertices)))
    if axis != "tensor":
        return state
    whole = unshared_work(graph, works_of(graph, optimizer=True)[:-1], rows, factor)
    return replace(state, unsure=(*state.unsure, whole))


def with_more_stages(state: State, stages: int, share: float = 1.0) -> State:
    """Return the state in which pipelines of p stages have `stages`, each with a `share` of the work it had.

    A step of m micro-batches takes m + p - 1 turns of the slowest stage, whether forwards come first or alternate with
    backwards; each further stage adds a turn. The turn is what a stage computes between its first and last message of a
    step, over m, and a message, which the interval holds from none to one each way: messages may overlap. It is added
    behind the last message of each rank and step.

    Raises:
        SelectionError: no messages between stages were recorded, or more stages than asked for.
    """
    have, micro = stages_of(state.graph)
    if have < 2 or stages < have:
        what = f"has {have} of them" if have > 1 else "shows no messages between stages"
        msg = f"pipeline={stages}: the recording {what}; record a pipeline of at least 2 stages, and no more than asked"
        raise SelectionError(msg)
    work, message, behind = _turns(state.graph)
    gap, turn = state.gap.copy(), max(share * work / max(micro, 1.0), 1.0)
    gap[behind] += round((stages - have) * (turn + message))
    low, high = (np.full(len(behind), (turn + each) / (turn + message)) for each in (0, 2 * message))
    off = 1 + STAGE_ERROR
    return replace(state, gap=gap, unsure=(*state.unsure, Unsure(behind[:0], low / off, high * off, behind)))


def _turns(graph: DependencyGraph) -> tuple[float, float, Array]:
    """Return (what the slowest stage computes per step between messages, a message, in ns; the vertices behind them).

    These are the first work behind the last message of each rank and step.
    """
    acts, time, matches = graph.activities, graph.time, graph.matches
    assert matches is not None  # there are messages
    pairs = np.array([op == "send_recv" for op in matches.op], np.bool_)[matches.collective]
    messages, works = matches.activity[pairs].astype(np.int64), works_of(graph, optimizer=True)[:-1]
    work = graph.tree.outermost(works)
    by_rank, behind = [], []
    for rank in np.unique(acts.rank[messages]).tolist():
        of_rank, own = messages[acts.rank[messages] == rank], work[acts.rank[work] == rank]
        own = own[np.argsort(time[2 * own])]
        sums, turns = np.concatenate(([0.0], np.cumsum(acts.duration[own]))), []
        for step in np.unique(acts.step[of_rank]).tolist():
            at = of_rank[acts.step[of_rank] == step]
            first, last = np.searchsorted(time[2 * own], [time[2 * at].min(), time[2 * at + 1].max()])
            turns.append(sums[last] - sums[first])
            behind += [2 * int(own[last])] if last < len(own) else []
        by_rank.append(float(np.median(turns)))
    moved = graph.edges.lag[of_kind(graph, EdgeKind.P2P) & (graph.edges.lag > 0)]
    return max(by_rank), float(np.median(moved)) if len(moved) else 0.0, np.array(behind, np.int64)
