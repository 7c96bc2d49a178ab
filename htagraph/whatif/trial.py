"""A job as recorded, and what it gains when some of its time changes: what is tried on the way to `opportunities`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, sums_by
from htagraph.core.kinds import BETWEEN, BLOCKING, HOST_GAPS, LAUNCHES, EdgeKind, GapKind, of_kinds
from htagraph.graph.measures.steps import last_end
from htagraph.queries.replay import predict
from htagraph.queries.weights import OwnTime, State, of_kind, with_factor
from htagraph.whatif.link_sharing import assumed, time_from_sharing

if TYPE_CHECKING:
    from htagraph.core.runs import Runs

__all__ = ["Trial"]


class Trial:
    """A job as recorded, and its gains when the time of something changes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.links = assumed(state)
        self.last = self._end(state.graph.time)
        self.makespan = self.last - state.graph.origin_ns
        self._lock = Lock()

    def _end(self, time: Array) -> int:
        """Return the last moment of any thread or stream that takes part in the job, ns."""
        last = last_end(self.state.graph, time)
        return self.state.graph.origin_ns if last is None else last

    def gain(self, time: OwnTime, factor: float) -> int:
        """Return how much shorter the job is if some time is multiplied, ns."""
        with self._lock:  # the first replay finds what all share
            runs = self._runs
        if runs is None:
            return self.gained(with_factor(self.state, time, factor))
        return self.last - runs.end(time.edges, time.fixed, time.gaps, factor)

    def gained(self, state: State) -> int:
        """Return how much shorter the job is with other weights, ns."""
        state = replace(self.links, state=state).shared
        return self.last - self._end(predict(state.graph, state.lag, state.gap, state.head))

    @cached_property
    def _runs(self) -> Runs | None:
        """The job in runs; None where nothing takes part in it, or where transfers may share links."""
        from htagraph.core.runs import runs_of  # numba takes a moment to load

        state, graph = self.state, self.state.graph
        if not graph.awake.any() or self.links.may_share:
            return None
        ends = np.zeros(graph.vertex_count, np.bool_)
        ends[1::2] = graph.awake
        return runs_of(
            graph.replay_order, graph.in_offsets, graph.in_edges, graph.out_offsets, graph.edges.source,
            graph.edges.target, state.lag, state.gap, state.head, ends,
        )  # fmt: skip

    def counted(self, time: OwnTime) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return how much time each of some edges and each of some gaps is, ns.

        What a thread of a data loader waits for, the loader's own time has, and the time of a call until its kernel
        starts, or after its wait, the call's.
        """
        once, gap = self._counted
        return (self.state.lag[time.edges] - time.fixed) * once[time.edges], gap[time.gaps]

    @cached_property
    def _counted(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Which edges count in the time of what has them, and how much of each gap does, ns."""
        graph = self.state.graph
        twice = of_kind(graph, *LAUNCHES, *BLOCKING) & (graph.edges.activity >= 0)
        return ~twice, np.where(graph.gap_kind == GapKind.DATA_WAIT, 0, self.state.gap)

    def on_path(self, time: OwnTime) -> int:
        """Return how much of it lies on the critical path, ns."""
        at, edges = self._is_on_path
        lags = (self.state.lag[time.edges] - time.fixed)[edges[time.edges]]
        return int(lags.sum() + self.state.gap[time.gaps[at[time.gaps]]].sum())

    @cached_property
    def _is_on_path(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which vertices and which edges are on the critical path."""
        graph = self.state.graph
        masks = np.zeros(graph.vertex_count, np.bool_), np.zeros(len(graph.edges), np.bool_)
        for mask, rows in zip(masks, self.path, strict=True):
            mask[rows] = True
        return masks

    @cached_property
    def shared(self) -> int:
        """How much of the critical path is there because transfers share links, ns.

        Without other transfers, these would be so much shorter: by so much may a gain exceed its time on the path.
        """
        if self.links.others:  # not known: then no transfer becomes faster
            return 0
        rows = self.path[1]
        return int(time_from_sharing(self.state.graph, self.links.sharing)[rows].sum())

    @cached_property
    def path(self) -> tuple[Array, Array]:
        """The vertices of the critical path and the edges between them."""
        from htagraph.core import traverse  # numba takes a moment to load

        graph = self.state.graph
        ends = 2 * np.flatnonzero(graph.awake) + 1
        if not len(ends):
            nothing = np.zeros(0, np.int64)
            return nothing, nothing
        start, last = np.iinfo(np.int64).min, int(ends[np.argmax(graph.time[ends])])
        path = traverse.walk_back(graph.binding, graph.edges.source, graph.time, last, start)
        return path, graph.binding[path[1:]].astype(np.int64)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """The time on the critical path by owner: ``owner`` (-1 for none), ``rank``, ``gap``, ``ns``.

        One row per (owner, rank, whether it is a gap). A gap that several threads lead to counts for each owner.
        """
        graph = self.state.graph
        vertices, edges = self.path
        owner = graph.edges.activity[edges]
        timed = (owner >= 0) & (graph.edges.kind[edges] != EdgeKind.HOST_ORDER)
        gaps, around = self._gaps(vertices)
        rank = graph.activities.rank
        owners = np.concatenate([owner[timed].astype(np.int64), around]) + 1
        ranks = np.concatenate([rank[owner[timed]], rank[gaps // 2]]).astype(np.int64)
        is_gap = np.repeat([0, 1], [int(timed.sum()), len(gaps)])
        least, many = (int(ranks.min()), int(ranks.max()) - int(ranks.min()) + 1) if len(ranks) else (0, 1)
        key, ns = sums_by(
            (owners * many + ranks - least) * 2 + is_gap,
            np.concatenate([graph.edges.lag[edges][timed], graph.gap[gaps]]),
        )
        return pd.DataFrame({
            "owner": key // (2 * many) - 1, "rank": key // 2 % many + least, "gap": (key % 2).astype(np.bool_),
            "ns": np.maximum(ns, 0),
        })  # fmt: skip

    def _gaps(self, vertices: Array) -> tuple[Array, Array]:
        """Return the vertices with a gap of the host's time, and the activity around each of these gaps, else -1."""
        graph = self.state.graph
        wanted = np.zeros(graph.vertex_count, np.bool_)
        wanted[vertices[of_kinds(graph.gap_kind[vertices], HOST_GAPS)]] = True
        into = np.flatnonzero(of_kind(graph, *BETWEEN) & wanted[graph.edges.target])
        at, owner = graph.edges.target[into].astype(np.int64), graph.edges.activity[into].astype(np.int64)
        around = np.where(owner >= 0, owner, graph.tree.parent[at >> 1])
        count = len(graph.activities) + 1
        pairs, _ = sums_by(at * count + around + 1, at)
        return pairs // count, pairs % count - 1
