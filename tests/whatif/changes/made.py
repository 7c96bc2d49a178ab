"""Small device jobs made by hand, every moment as early as their dependencies allow; and a replay without numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Activities, Edges, Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import Matches
from htagraph.queries.replay import predict
from htagraph.queries.weights import State

LATENCY_NS = 5
CALL_NS = 10


@dataclass(frozen=True)
class Piece:
    """A kernel and its launch; the launches of a rank follow each other on one thread."""

    name: str
    stream: int
    duration: int
    waits: tuple[int, ...] = ()
    """Places of pieces before it on whose ends it waits."""
    rank: int = 0
    collective: int = -1
    call_ns: int = CALL_NS


Order = Callable[[Sequence[Piece], int], list[int]]


def by_stream(pieces: Sequence[Piece], i: int) -> list[int]:
    """Return the piece before one on its stream."""
    same = [j for j in range(i) if (pieces[j].rank, pieces[j].stream) == (pieces[i].rank, pieces[i].stream)]
    return same[-1:]


def made(pieces: Sequence[Piece], order: Order = by_stream) -> DependencyGraph:
    """Return the job of some pieces: the launch of piece i is activity `call(graph, i)`, the kernel `kernel(graph, i)`.

    Activities come by rank, within it calls before kernels; JOINs last.
    """
    count, joins = len(pieces), sorted({piece.collective for piece in pieces if piece.collective >= 0})
    calls, works = places(pieces)
    edges: list[tuple[int, int, int, EdgeKind, int]] = []
    last: dict[int, int] = {}
    for i, piece in enumerate(pieces):
        call, work = calls[i], works[i]
        if piece.rank in last:
            edges.append((2 * last[piece.rank] + 1, 2 * call, 0, EdgeKind.HOST_ORDER, -1))
        last[piece.rank] = call
        edges.append((2 * call, 2 * call + 1, piece.call_ns, EdgeKind.BODY, call))
        edges.append((2 * call, 2 * work, LATENCY_NS, EdgeKind.LAUNCH, -1))
        edges += [(2 * works[j] + 1, 2 * work, 0, EdgeKind.STREAM, -1) for j in order(pieces, i)]
        edges += [(2 * works[j] + 1, 2 * work, 0, EdgeKind.EVENT_WAIT, -1) for j in piece.waits]
        if piece.collective >= 0:
            join = 2 * count + joins.index(piece.collective)
            edges.append((2 * work, 2 * join, 0, EdgeKind.COLLECTIVE, -1))
            edges.append((2 * join, 2 * work + 1, piece.duration, EdgeKind.COLLECTIVE, work))
        else:
            edges.append((2 * work, 2 * work + 1, piece.duration, EdgeKind.BODY, work))
    edges += [(4 * count + 2 * j, 4 * count + 2 * j + 1, 0, EdgeKind.BODY, -1) for j in range(len(joins))]
    time = slowly(2 * (2 * count + len(joins)), [(u, v, lag) for u, v, lag, _, _ in edges])
    return _graph(pieces, calls, works, joins, edges, time)


def in_groups(piece: Piece, group: str | None) -> bool:
    """Return whether a piece is a collective of the process group ``"even"`` or ``"odd"``, or of any where None."""
    return piece.collective >= 0 and group in (None, "even" if piece.collective % 2 == 0 else "odd")


def moments(state: State) -> list[int]:
    """Return the predicted moment of each vertex, ns."""
    return predict(state.graph, state.lag, state.gap, state.head).tolist()


def places(pieces: Sequence[Piece]) -> tuple[list[int], list[int]]:
    """Return the activities of the pieces' (calls, kernels)."""
    by_rank = sorted(range(len(pieces)), key=lambda i: pieces[i].rank)
    calls, works, first = [0] * len(pieces), [0] * len(pieces), 0
    for rank in sorted({piece.rank for piece in pieces}):
        mine = [i for i in by_rank if pieces[i].rank == rank]
        for at, i in enumerate(mine):
            calls[i], works[i] = first + at, first + len(mine) + at
        first += 2 * len(mine)
    return calls, works


def slowly(count: int, edges: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return the earliest moment of each vertex, by asking all edges until nothing moves."""
    time = [0] * count
    moved = True
    while moved:
        moved = False
        for source, target, lag in edges:
            if time[source] + lag > time[target]:
                time[target], moved = time[source] + lag, True
    return time


def _graph(
    pieces: Sequence[Piece], calls: list[int], works: list[int], joins: list[int],
    edges: list[tuple[int, int, int, EdgeKind, int]], time: list[int],
) -> DependencyGraph:  # fmt: skip
    count = 2 * len(pieces) + len(joins)
    lanes: dict[Lane, int] = {}
    names: dict[str, int] = {"cudaLaunchKernel": 0, "join": 1}
    lane, name = np.zeros(count, np.int32), np.ones(count, np.int32)
    kind, cause = np.full(count, ActivityKind.JOIN, np.int8), np.full(count, -1, np.int32)
    rank = np.full(count, -1, np.int32)
    lane[2 * len(pieces) :] = -1
    for i, piece in enumerate(pieces):
        thread, stream = Lane(piece.rank, 1, 1), Lane(piece.rank, 0, piece.stream, device=0, stream=piece.stream)
        lane[calls[i]], lane[works[i]] = (lanes.setdefault(each, len(lanes)) for each in (thread, stream))
        name[calls[i]], name[works[i]] = 0, names.setdefault(piece.name, len(names))
        kind[calls[i]] = ActivityKind.LAUNCH
        kind[works[i]] = ActivityKind.COMMUNICATION if piece.name.startswith("nccl") else ActivityKind.COMPUTATION
        cause[works[i]], rank[calls[i]], rank[works[i]] = calls[i], piece.rank, piece.rank
    none = np.full(count, -1, np.int32)
    start, end = np.array(time[0::2], np.int64), np.array(time[1::2], np.int64)
    acts = Activities(
        rank=rank, kind=kind, name=name, category=name, lane=lane, start=start, duration=end - start, step=none,
        parent=none.copy(), cause=cause, event=none.copy(),
    )  # fmt: skip
    parts = [
        Edges.of(np.array([u]), np.array([v]), lag, what, Provenance.OBSERVED, activity=owner)
        for u, v, lag, what, owner in edges
    ]
    members = [i for i, piece in enumerate(pieces) if piece.collective >= 0]
    numbers = np.array([joins.index(pieces[i].collective) for i in members], np.int32)
    matches = replace(
        Matches.none(), activity=np.array([works[i] for i in members], np.int32), collective=numbers,
        join=(2 * len(pieces) + numbers).astype(np.int32), op=("all_reduce",) * len(joins),
        bytes=np.full(len(members), -1, np.int64),
        group=tuple("even" if number % 2 == 0 else "odd" for number in joins), size=np.zeros(len(joins), np.int32),
    )  # fmt: skip
    return DependencyGraph.build(
        acts, Edges.concatenate(parts), names=tuple(names), lanes=tuple(lanes), matches=matches
    )


@st.composite
def jobs(draw: st.DrawFn, ranks: int = 2) -> list[Piece]:
    """Return pieces in the order of launch, the same program on every rank with durations of its own."""
    count = draw(st.integers(2, 7))
    program = []
    for i in range(count):
        talks = draw(st.booleans())
        waits: set[int] = draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set()
        program.append((draw(st.sampled_from((7, 8, 20))), tuple(sorted(waits)), talks, draw(st.sampled_from("ab"))))
    pieces = []
    for rank in range(ranks):
        for i, (stream, after, talks, letter) in enumerate(program):
            name = "nccl_all_reduce" if talks else f"gemm_{letter}"
            pieces.append(Piece(name, stream, draw(st.integers(0, 60)), (), rank, i if talks else -1))
            # a graph keeps one of two parallel edges: a wait for the work before on the same stream would be lost
            mine = {rank * count + j for j in after} - set(by_stream(pieces, len(pieces) - 1))
            pieces[-1] = replace(pieces[-1], waits=tuple(sorted(mine)))
    return pieces
