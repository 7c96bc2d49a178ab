"""What changes share: other edges, launch order, collectives of a process group, communication on hosts, notes."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, inverse_of, marked
from htagraph.core.computing import once
from htagraph.core.errors import GraphError, SelectionError
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import is_gradient_ready, names_that
from htagraph.graph.activities import Edges, frozen
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import REGIONS, UNTRACED, kinds_of
from htagraph.queries.replay import predict
from htagraph.queries.weights import NEVER, Jitter, OwnTime, State, of_kind, time_of

__all__ = [
    "STILL_WAITING", "collective_members", "first_gradient", "launch_order", "next_moment", "rewired", "waits_for",
    "with_other_edges", "with_scope_note", "with_waits",
]  # fmt: skip

STILL_WAITING = (*COMMUNICATION, *ADDED, ActivityKind.STEP)
"""Kinds of activities that wait for communication even where no other work does."""


def with_other_edges(
    state: State,
    stays: Array | None,
    new: Edges,
    change: str,
    **parts: Any,  # noqa: ANN401 - fields of the graph
) -> State:
    """Return the state in which some edges (None: all) stay, with their lags, and others are new; see `rewired`."""
    edges, lag = state.graph.edges, state.lag
    if stays is not None:
        edges, lag = edges.take(stays), lag[stays]
    return rewired(state, Edges.concatenate([edges, new]), np.concatenate([lag, new.lag]), change, **parts)


def rewired(state: State, edges: Edges, lag: Array, change: str, **parts: Any) -> State:  # noqa: ANN401 - graph's fields
    """Return the state with other edges.

    Edges that no longer constrain anything leave the graph. A vertex that loses all its predecessors keeps its moment
    in `state`.
    """
    before = state.graph
    edges, lag = _tightest(edges, lag)
    graph = before.replace(edges=edges, **parts)
    try:
        _ = graph.replay_order
    except GraphError as error:
        msg = f"{change}: impossible, an activity would have to wait for itself: {error}"
        raise GraphError(msg) from error
    # keep the recorded gaps and their kinds: computed from the new edges they would be others
    vars(graph)["gap"], vars(graph)["gap_kind"] = before.gap, before.gap_kind
    orphans = (np.diff(before.in_offsets) > 0) & (np.diff(graph.in_offsets) == 0)
    head = state.head
    if orphans.any():
        head = np.where(orphans, predict(before, state.lag, state.gap, head), head)
    jitter = tuple(_renumbered(each, before.edges, edges) for each in state.jitter)
    return replace(state, graph=graph, lag=frozen(lag), head=head, jitter=jitter)


def with_waits(state: State, waits: Edges, lag: Array, change: str) -> State | None:
    """Return the state in which some vertices also wait for others; None if one would have to wait for itself.

    The state is for a replay alone: it has no noise.
    """
    edges, lags = Edges.concatenate([state.graph.edges, waits]), np.concatenate([state.lag, lag])
    try:
        return rewired(replace(state, jitter=()), edges, lags, change)
    except GraphError:
        return None


def _tightest(edges: Edges, lag: Array) -> tuple[Edges, Array]:
    """Return the edges that constrain something, by (source, target); of parallel ones, that with the largest lag."""
    alive = np.flatnonzero(lag > NEVER)
    key = edges.source[alive] * np.int64(edges.target.max(initial=0) + 1) + edges.target[alive]
    order = np.argsort(key, kind="stable")  # nearly all are in order
    alive, key = alive[order], key[order]
    first = np.append([True], key[1:] != key[:-1])[: len(key)]
    if not first.all():
        rows = np.flatnonzero(~first | ~np.append(first[1:], True))  # the few that have a parallel
        alive[rows] = alive[rows[np.lexsort((-lag[alive[rows]], key[rows]))]]
        alive = alive[first]
    return edges.take(alive), lag[alive]


def _renumbered(jitter: Jitter, before: Edges, after: Edges) -> Jitter:
    """Return the noise for those of its edges that are left."""
    time, count = jitter.time, len(jitter.time.edges)
    width = np.int64(max(int(before.target.max()), int(after.target.max())) + 1)
    known = after.source * width + after.target
    wanted = before.source[time.edges] * width + before.target[time.edges]
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    left = (known[at] == wanted) & (after.activity[at] == before.activity[time.edges])
    kept = replace(time, edges=at[left], fixed=time.fixed[left])
    return replace(jitter, time=kept, owner=np.concatenate([jitter.owner[:count][left], jitter.owner[count:]]))


def launch_order(graph: DependencyGraph, rows: Ints) -> Ints:
    """Return the kernels and copies of a rank in the order in which the host enqueued them.

    Each stream keeps its order. A kernel whose launch was not recorded counts as enqueued before the next one on its
    stream, at the begin of a recording before all kernels with a launch, and on a stream without any launch, when it
    started.
    """
    acts, begins = graph.activities, _begins(graph)
    call = acts.cause[rows]
    called = (call >= 0) & (acts.kind[call] == ActivityKind.LAUNCH)
    enqueued = np.where(called, acts.start[call], acts.start[rows])
    before = np.zeros(len(rows), np.bool_)
    in_order = np.lexsort((rows, begins[rows], acts.lane[rows]))
    lanes = np.flatnonzero(np.diff(acts.lane[rows[in_order]])) + 1
    for lane in np.split(in_order, lanes):
        if not called[lane].any():
            continue
        first = int(np.argmax(called[lane]))
        before[lane[:first]] = True
        later = enqueued[lane[first:]]
        enqueued[lane[first:]] = np.minimum.accumulate(later[::-1])[::-1]
    return rows[np.lexsort((rows, begins[rows], enqueued, ~before))]


@once
def _begins(graph: DependencyGraph) -> Array:
    """Return numbers that order the work of each stream: recorded starts, or places in a replay of what was moved.

    Where work came to a stream, the starts that were recorded elsewhere are not the order in which the stream runs it.
    """
    acts, edges = graph.activities, graph.edges
    chained = np.flatnonzero((edges.kind == EdgeKind.STREAM) & (edges.source % 2 == 1) & (edges.target % 2 == 0))
    first, then = edges.source[chained] >> 1, edges.target[chained] >> 1
    against = (acts.lane[first] == acts.lane[then]) & (acts.start[first] > acts.start[then])
    if not against.any():
        return acts.start
    place = inverse_of(graph.replay_order, graph.vertex_count)
    return np.where(np.isin(acts.lane, acts.lane[first[against]]), place[::2], acts.start)


def collective_members(graph: DependencyGraph, group: str | None, change: str) -> Ints:
    """Return the communication of the process groups whose label matches a glob; all of it if it is None.

    That is communication kernels, and communication on host threads. For communication of no known group, the glob is
    matched with its name.
    """
    acts = graph.activities
    rows = np.flatnonzero(of_kinds(acts.kind, COMMUNICATION))
    matches, labels = graph.matches, dict[int, str]()
    if matches is not None:
        of_members = [matches.group[collective] for collective in matches.collective.tolist()]
        labels = dict(zip(matches.activity.tolist(), of_members, strict=True))
    if group is not None:
        pattern = re.compile(fnmatch.translate(group))
        by_name = np.array([pattern.match(name) is not None for name in graph.names], np.bool_)
        matching = {label: pattern.match(label) is not None for label in set(labels.values())}
        fits = by_name[acts.name[rows]]
        for at, row in enumerate(rows.tolist()):
            if row in labels:
                fits[at] = matching[labels[row]]
        rows = rows[fits]
    if not len(rows):
        shown = ", ".join(sorted(set(labels.values()))[:12]) or "none known"
        asked = "" if group is None else f" of group {group!r}"
        msg = f"{change}: no communication{asked}; the graph's process groups: {shown}"
        raise SelectionError(msg)
    return rows


def first_gradient(graph: DependencyGraph, rows: Ints, asked: Array) -> Ints:
    """Return the operator whose end made the first of the gradients ready that each communication carries; -1 for none.

    These are the gradients that became ready on its rank since the last communication before it was asked for.
    """
    acts, time = graph.activities, graph.time
    ready = np.flatnonzero((acts.kind == ActivityKind.OP) & names_that(is_gradient_ready, graph.names)[acts.name])
    out = np.full(len(rows), -1, np.int64)
    for rank in np.unique(acts.rank[rows]).tolist():
        of_rank = np.flatnonzero(acts.rank[rows] == rank)
        of_rank = of_rank[np.argsort(asked[of_rank], kind="stable")]
        gradients = ready[acts.rank[ready] == rank]
        gradients = gradients[np.argsort(time[2 * gradients + 1], kind="stable")]
        if not len(gradients):
            continue
        # one that was under way at the last communication was part of that one
        before = np.concatenate(([np.iinfo(np.int64).min], asked[of_rank][:-1]))
        first = np.searchsorted(np.maximum.accumulate(time[2 * gradients]), before, side="right")
        gradient = gradients[np.minimum(first, len(gradients) - 1)]
        some = (first < len(gradients)) & (time[2 * gradient + 1] <= asked[of_rank])
        out[of_rank[some]] = gradient[some]
    return out


def next_moment(graph: DependencyGraph, rows: Ints) -> Ints:
    """Return the vertex that follows the end of each activity on its thread; -1 for none."""
    acts, edges = graph.activities, graph.edges
    same = of_kind(graph, EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.DATALOADER)
    same &= acts.lane[edges.source >> 1] == acts.lane[edges.target >> 1]
    behind = np.full(graph.vertex_count, -1, np.int64)
    behind[edges.source[same]] = edges.target[same]
    return behind[2 * rows + 1]


def waits_for(graph: DependencyGraph, rows: Ints) -> Mask:
    """Return True for each edge by which another thread waits for the end of communication; steps do not count."""
    acts, edges = graph.activities, graph.edges
    ends = marked(2 * rows + 1, graph.vertex_count)
    other = acts.lane[edges.source >> 1] != acts.lane[edges.target >> 1]
    return np.asarray(ends[edges.source] & other & ~of_kinds(acts.kind[edges.target >> 1], STILL_WAITING))


def with_scope_note(state: State, before: State, time: OwnTime, criteria: dict[str, Any], verb: str) -> State:
    """Return the state with a note on how much time a name stands for, where a name or untraced time was asked for.

    Operators: their self time, and what share that is of all the time inside them. Regions (annotations, steps, Python
    frames): all the time inside. Kernels have nothing inside, and get no note.
    """
    graph = before.graph
    total = _total(before, time)
    amount = f"{total / 1e6:,.3g}" if total < 1e9 else f"{total / 1e6:,.0f}"
    kinds = kinds_of(criteria)
    if UNTRACED in kinds:
        what = "untraced host time" if kinds == {UNTRACED} else "host time"
        return state.with_note(f"{verb} {amount} ms of {what} between activities ({len(time.gaps)} gaps)")
    name = criteria.get("name") or criteria.get("regex")
    if name is None or criteria.get("op") is not None:
        return state
    rows = graph.select(**criteria).activities
    kind = graph.activities.kind[rows]
    if kinds <= {each.label for each in REGIONS} and of_kinds(kind, REGIONS).any():
        return state.with_note(f"{verb} {amount} ms: all the time inside {name}, kernels launched there included")
    operators = rows[kind == ActivityKind.OP]
    if not len(operators):
        return state
    inside = marked(operators, len(graph.activities) + 1)
    inside[:-1] |= graph.tree.inside(inside[:-1])
    nowhere: Mask = np.zeros(len(graph.activities), np.bool_)
    whole = time_of(before, inside, loader=True, outside=nowhere)
    share = total / max(_total(before, whole), 1)
    hint = f"op={name!r} {_MEANING[verb]} everything inside" if criteria.get("name") else "op= takes everything inside"
    return state.with_note(f"{verb} {amount} ms self time of {name}, {100 * share:.0f} % of the time inside it; {hint}")


_MEANING = {"scaled": "scales", "removed": "removes", "set": "sets", "varied": "varies"}


def _total(state: State, time: OwnTime) -> int:
    return int((state.lag[time.edges] - time.fixed).clip(0).sum() + state.gap[time.gaps].sum())
