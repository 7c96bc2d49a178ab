"""Where one thread waits for another, the other may wait for it in turn: a queue that is full, a store, a rendezvous.

A recording in which one thread was always slower shows half of a meeting like this. The other half is known but for how
far the two may be apart: take k waits for item k, and item k waits until item k - capacity was taken. The recording
bounds the capacity from below only (nobody waited in it), so that this is a reading, with the least capacity that the
recorded times allow, and no fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask, coded, joined, looked_up, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, EdgeKind, Provenance, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.calls import grouped
from htagraph.graph.tolerances import LIMITS, Confidence
from htagraph.queries.weights import of_kind

__all__ = ["meets"]


class _HandOff(NamedTuple):
    """Moments at which a thread is given work by another one."""

    source: Array
    """The moment at which the giver hands the work over."""
    target: Array
    """The moment at which the taker goes on with the work."""
    done: Array
    """The moment at which the taker is done with the work."""
    asks: Array
    """The moment at which the giver may wait for the taker."""

    def take(self, rows: Array) -> _HandOff:
        """Return the given rows."""
        return _HandOff(
            self.source[rows],
            self.target[rows],
            self.done[rows],
            self.asks[rows],
        )


@once
def meets(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return waits in turn: (the moment at which a taker is done with given work, the giver's moment that may wait).

    Given work is done when the taker next waits, or with its last record.
    """
    rows = _given(graph)
    if not len(rows):
        return rows, rows
    source = graph.edges.source[rows].astype(np.int64)
    target = graph.edges.target[rows].astype(np.int64)
    given = _HandOff(
        source,
        target,
        _done(graph, target),
        _next_ask(graph, source),
    )
    before, then = joined(_waits_in_turn(graph, given), 2)
    return before, then


def _waits_in_turn(
    graph: DependencyGraph,
    given: _HandOff,
) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs of moments that `meets` returns, by giver and by the purpose of the work on either side.

    Args:
        graph: the graph.
        given: all work that one thread gave to another.
    """
    time = graph.time
    giver = given.source >> 1
    group = coded(
        graph.activities.lane[giver],
        _purpose(graph, giver),
        _purpose(graph, given.target >> 1),
    )
    waits_back = _waits_back(graph, given)
    for rows in grouped(group):
        if waits_back[rows].mean() > LIMITS.most:
            continue
        rounds = given.take(rows)
        by_target = np.argsort(time[rounds.target], kind="stable")
        rounds = rounds.take(by_target)
        shift = _shift(graph, rounds)
        if not shift:
            continue
        done = rounds.done[:-shift]
        asks = rounds.asks[shift:]
        was_over = time[done] <= time[asks]
        done = done[was_over]
        waits = _earliest(graph, done, asks[was_over])
        yield done, waits
        yield _counted(graph, rounds.target[:-shift][was_over], waits)
        yield _given_last(graph, rounds), rounds.target


def _shift(graph: DependencyGraph, rounds: _HandOff) -> int:
    """Return by how many rounds the taker is behind, 0 if the rounds are too few.

    Args:
        graph: the graph.
        rounds: work of one purpose that one thread gave, by time.
    """
    if len(np.unique(rounds.source)) < LIMITS.often:
        return 0
    done_ns = graph.time[rounds.done]
    asks_ns = graph.time[rounds.asks]
    return _least_shift(done_ns, asks_ns)


def _earliest(
    graph: DependencyGraph,
    done: Array,
    asks: Array,
) -> Array:
    """Return the earliest moments, at one place of a program, by which the work of nearly all rounds was done.

    The giver may wait anywhere in between, and what follows the wait cannot run beside the work.

    Args:
        graph: the graph.
        done: the moments at which the taker was done, a round each.
        asks: the last moments at which the giver may have waited.
    """
    places = _places(graph, asks[:1])
    number_of_place = _by_lane(graph, places)
    number_of_ask = _by_lane(graph, asks)
    last = np.searchsorted(number_of_place, number_of_ask, "right") - 1
    earliest = asks
    for back in range(LIMITS.tried):
        place = last - back
        if not len(asks) or (place < 0).any():
            break
        moment = places[place]
        moment_ns = graph.time[moment]
        was_over = graph.time[done] <= moment_ns
        if was_over.mean() < LIMITS.nearly_all:
            break
        if _is_one_place(graph, moment):
            earliest = np.where(was_over, moment, asks)
    return earliest


def _is_one_place(graph: DependencyGraph, moment: Array) -> bool:
    """Return whether nearly all moments are the start, or the end, of activities of one name."""
    is_end = moment & 1
    place = coded(
        _purpose(graph, moment >> 1),
        is_end,
    )
    most = np.bincount(place).max()
    return bool(most >= LIMITS.nearly_all * len(place))


def _counted(
    graph: DependencyGraph,
    work: Array,
    waits: Array,
) -> tuple[Array, Array]:
    """Return the waits in turn for work whose giver no recorded moment shows, as in the first and last steps.

    As many items lie between two waits everywhere as lie between the known waits; where this varies, none are returned.

    Args:
        graph: the graph.
        work: the moments at which given work began, with a known wait each.
        waits: the moments at which the giver may have waited for the work.
    """
    none = np.zeros(0, np.int64)
    if not len(waits):
        return none, none
    places = _alike_places(graph, waits)
    number_of_place = _by_lane(graph, places)
    number_of_wait = _by_lane(graph, waits)
    place = np.searchsorted(number_of_place, number_of_wait)
    items = _alike_items(graph, work, waits)
    item = np.searchsorted(graph.time[items], graph.time[work])
    _, items_of_place = np.unique(place, return_counts=True)
    each = int(np.median(items_of_place))
    first = _first_item(item, place, each)
    if first is None:
        return none, none
    number = np.arange(len(items))
    place_of_item = (number - first) // each
    is_first = place_of_item < 0
    is_last = place_of_item >= len(places)
    is_known = np.isin(items, work)
    is_new = ~(is_first | is_last | is_known)
    if not is_new.any():
        return none, none
    done = _done(graph, items[is_new])
    then = places[place_of_item[is_new]]
    was_over = graph.time[done] <= graph.time[then]
    return done[was_over], then[was_over]


def _first_item(
    item: Array,
    place: Array,
    each: int,
) -> int | None:
    """Return the number of the first item that the first place waits for; None if counts vary.

    Args:
        item: the number of each item with a known wait.
        place: the number of the place that waits for each of these items.
        each: how many items a place waits for.
    """
    ahead = np.sort(item - each * place)
    starts = np.unique(ahead)
    begin = np.searchsorted(ahead, starts)
    end = np.searchsorted(ahead, starts + each)
    covered = end - begin
    best = int(np.argmax(covered))
    is_regular = covered[best] >= LIMITS.nearly_all * len(ahead)
    return int(starts[best]) if is_regular else None


def _alike_places(graph: DependencyGraph, waits: Array) -> Array:
    """Return all moments of a thread that are the start, or the end, of activities with the name of the first wait."""
    places = _places(graph, waits[:1])
    name = _purpose(graph, places >> 1)
    name_of_wait = _purpose(graph, waits[:1] >> 1)
    same_name = name == name_of_wait
    same_side = places & 1 == waits[0] & 1
    return places[same_name & same_side]


def _alike_items(
    graph: DependencyGraph,
    work: Array,
    waits: Array,
) -> Array:
    """Return the moments at which work of a purpose begins on other threads of the rank than the one that waits."""
    acts = graph.activities
    first = work[0] >> 1
    waiting = waits[0] >> 1
    same_rank = acts.rank == acts.rank[first]
    same_name = acts.name == acts.name[first]
    is_elsewhere = acts.lane != acts.lane[waiting]
    is_item = same_rank & same_name
    is_item &= is_elsewhere
    is_item &= graph.awake
    items = np.flatnonzero(is_item)
    moments = np.union1d(2 * items, work)
    in_time = np.argsort(graph.time[moments], kind="stable")
    return moments[in_time]


def _given_last(graph: DependencyGraph, rounds: _HandOff) -> Array:
    """Return for each round the last moment at which the work may have been given: a wait may come before that."""
    places = _places(graph, rounds.source[:1])
    if not len(places):
        return rounds.source
    lane = graph.activities.lane.astype(np.int64)
    giver = lane[rounds.source >> 1]
    number = giver * _stride(graph)
    number += graph.time[rounds.target]
    number -= graph.time.min()
    number_of_place = _by_lane(graph, places)
    last = np.searchsorted(number_of_place, number, "right") - 1
    given = places[np.maximum(last, 0)]
    is_later = graph.time[given] > graph.time[rounds.source]
    is_later &= last >= 0
    return np.where(is_later, given, rounds.source)


def _places(graph: DependencyGraph, vertex: Array) -> Array:
    """Return the moments at which the thread of a vertex may wait, in order: before operators, and around regions."""
    acts = graph.activities
    lane = acts.lane[vertex >> 1]
    on_thread = np.isin(acts.lane, lane)
    on_thread &= graph.awake
    is_region = of_kinds(acts.kind, ANNOTATIONS)
    is_op = acts.kind == ActivityKind.OP
    in_op = np.append(is_op, False)[acts.parent]
    is_outermost = is_op & ~in_op
    regions = np.flatnonzero(on_thread & is_region)
    operators = np.flatnonzero(on_thread & is_outermost)
    moments = np.concatenate(
        (
            2 * operators,
            2 * regions,
            2 * regions + 1,
        )
    )
    order = np.argsort(_by_lane(graph, moments), kind="stable")
    return moments[order]


def _given(graph: DependencyGraph) -> Array:
    """Return the edges by which a host thread goes on right behind a moment of another one that never waits for it."""
    acts = graph.activities
    edges = graph.edges
    is_inferred = edges.provenance == Provenance.INFERRED
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & is_inferred)
    source = edges.source[rows]
    target = edges.target[rows]
    giver = source >> 1
    taker = target >> 1
    is_communication = acts.kind == ActivityKind.HOST_COMMUNICATION
    takes_part = graph.awake & ~acts.on_device & ~is_communication
    take_part = takes_part[giver] & takes_part[taker]
    is_apart = acts.lane[giver] != acts.lane[taker]
    is_near = graph.time[target] - graph.time[source] <= LIMITS.turn_ns
    return rows[is_apart & take_part & is_near].astype(np.int64)


def _purpose(graph: DependencyGraph, rows: Array) -> Array:
    """Return the names of activities; steps have one name."""
    acts = graph.activities
    is_step = acts.kind[rows] == ActivityKind.STEP
    return np.where(is_step, -1, acts.name[rows])


def _waits_back(graph: DependencyGraph, given: _HandOff) -> Mask:
    """Return for each round whether its giver is known to wait for work that the taker does in this round."""
    edges = graph.edges
    is_sure = edges.confidence >= Confidence.EVEN
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & is_sure)
    source = edges.source[rows].astype(np.int64)
    lane = graph.activities.lane
    giver_of_edge = lane[edges.target[rows] >> 1]
    giver = lane[given.source >> 1]
    waits_back = np.zeros(len(given.source), np.bool_)
    for thread in np.unique(giver).tolist():
        to_giver = source[giver_of_edge == thread]
        awaited = np.sort(_by_lane(graph, to_giver))
        rounds = np.flatnonzero(giver == thread)
        begun = _by_lane(graph, given.target[rounds])
        done = _by_lane(graph, given.done[rounds])
        waits_back[rounds] = np.searchsorted(awaited, done, "right") > np.searchsorted(awaited, begun)
    return waits_back


def _done(graph: DependencyGraph, target: Array) -> Array:
    """Return for each moment the last one of its thread before the thread next waits for another one."""
    lane = graph.activities.lane
    lanes = marked(lane[target >> 1], len(graph.lanes) + 1)
    vertex = _moments(graph, lanes)
    number = _by_lane(graph, vertex)
    number_of_target = _by_lane(graph, target)
    next_wait = _next_wait(graph, lanes, number_of_target)
    changes_lane = np.flatnonzero(np.diff(lane[vertex >> 1]))
    last_of_lane = number[np.append(changes_lane, len(vertex) - 1)]
    lane_place = np.searchsorted(last_of_lane, number_of_target)
    until = np.minimum(next_wait, last_of_lane[lane_place] + 1)
    return vertex[np.searchsorted(number, until) - 1]


def _moments(graph: DependencyGraph, lanes: Mask) -> Array:
    """Return the moments of the host threads on some lanes, by thread, then by time."""
    host = np.flatnonzero(lanes[graph.activities.lane] & graph.awake)
    vertex = np.concatenate((2 * host, 2 * host + 1))
    order = np.argsort(_by_lane(graph, vertex), kind="stable")
    return vertex[order]


def _next_wait(
    graph: DependencyGraph,
    lanes: Mask,
    number: Array,
) -> Array:
    """Return the first wait behind each moment, the largest number if there is none.

    Args:
        graph: the graph.
        lanes: for each lane, whether its waits count.
        number: the moments, as numbers of `_by_lane`, like the waits that are returned.
    """
    is_thread = of_kind(graph, EdgeKind.THREAD)
    waits = graph.edges.target[is_thread].astype(np.int64)
    on_lanes = lanes[graph.activities.lane[waits >> 1]]
    number_of_wait = np.unique(_by_lane(graph, waits[on_lanes]))
    place = np.searchsorted(number_of_wait, number, "right")
    never = np.iinfo(np.int64).max
    return np.append(number_of_wait, never)[place]


def _by_lane(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by thread, then by time."""
    lane = graph.activities.lane[vertex >> 1].astype(np.int64)
    return lane * _stride(graph) + graph.time[vertex] - graph.time.min()


def _stride(graph: DependencyGraph) -> int:
    """Return the difference of the numbers of `_by_lane` between one thread and the next at the same time."""
    return int(np.ptp(graph.time)) + 1


def _next_ask(graph: DependencyGraph, source: Array) -> Array:
    """Return for each moment that handed something over which one may wait: behind an operator, the next one."""
    edges = graph.edges
    is_order = of_kind(graph, EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.DATALOADER)
    rows = np.flatnonzero(is_order)
    rows = rows[np.argsort(edges.source[rows], kind="stable")]
    moment = edges.source[rows].astype(np.int64)
    next_moment = edges.target[rows].astype(np.int64)
    behind = looked_up(moment, next_moment, source)
    is_operator = graph.activities.kind[source >> 1] == ActivityKind.OP
    is_end = source & 1 == 1
    return np.where(is_end & is_operator & (behind >= 0), behind, source)


def _least_shift(done: Array, asks: Array) -> int:
    """Return by how many rounds the taker is behind the giver at least, 0 if that grows.

    Args:
        done: when the taker was done with each round, ns.
        asks: when the giver asked for each round, ns.
    """
    most = min(LIMITS.in_a_row, len(done) - LIMITS.often)
    for shift in range(1, most + 1):
        is_over = done[:-shift] <= asks[shift:]
        if is_over.mean() >= LIMITS.nearly_all:
            return shift
    return 0
