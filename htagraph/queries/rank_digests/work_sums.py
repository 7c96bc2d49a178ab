"""How much work of each name a rank does in a step, and how long that takes: for comparing ranks by their digests."""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_times
from htagraph.queries.rank_speed import MIN_SHARE_OF_NAME

__all__ = ["ALL_NAMES", "WorkSums", "work_sums"]


ALL_NAMES: Final = -1
"""Stands for all names together, where others are numbers from 0 on."""


class WorkSums(NamedTuple):
    """The work of one rank by name. Names are numbers: CRC-32 of their text, so that those of all ranks compare."""

    program: npt.NDArray[np.int64]
    """Names of the operators, or of the kernels of a job without operators."""
    instances: npt.NDArray[np.int64]
    """How often each of them occurs, in steps if there are any."""
    steps: int
    """In how many steps; 1 without steps."""
    device: npt.NDArray[np.int64]
    """A row per name, step and side: 1 for kernels, 0 for operators."""
    name: npt.NDArray[np.int64]
    """`ALL_NAMES`, or one that takes a good part of the rank's work."""
    step: npt.NDArray[np.int64]
    calls: npt.NDArray[np.int64]
    """How many of them."""
    total: npt.NDArray[np.int64]
    """Their durations, or self times, together, ns."""


def work_sums(graph: DependencyGraph) -> WorkSums:
    """Return how much work of each name a rank does, and how long that takes.

    Args:
        graph: the graph of one rank.
    """
    program, count, steps = _program(graph)
    sides = [_side(graph, device=device) for device in (True, False)] if graph.ranks else []
    rows = np.concatenate(sides, axis=1) if sides else np.zeros((5, 0), np.int64)
    return WorkSums(program, count, steps, *rows)


def _numbers(graph: DependencyGraph, names: Array) -> npt.NDArray[np.int64]:
    return np.array([zlib.crc32(graph.names[name].encode("utf-8", "replace")) for name in names.tolist()], np.int64)


def _program(graph: DependencyGraph) -> tuple[Array, Array, int]:
    """Return (names of the operators or kernels, how often each occurs in steps, how many steps there are)."""
    acts = graph.activities
    kind = ActivityKind.OP if (acts.kind == ActivityKind.OP).any() else ActivityKind.COMPUTATION
    alike = acts.kind == kind
    if (acts.step[alike] >= 0).any():
        alike &= acts.step >= 0
    names, count = np.unique(acts.name[alike], return_counts=True)
    return _numbers(graph, names), count.astype(np.int64), max(len(np.unique(acts.step[alike])), 1)


def _side(graph: DependencyGraph, *, device: bool) -> npt.NDArray[np.int64]:
    """Return (device, name, step, calls, total) of the names that take most time, a column per name and step."""
    acts = graph.activities
    rows, _, time = work_times(graph, np.array([0]), device=device)
    some = acts.step[rows] >= 0
    rows, time = rows[some], time[some].astype(np.int64)
    names, name = np.unique(acts.name[rows], return_inverse=True)
    steps, step = np.unique(acts.step[rows], return_inverse=True)
    shape = (len(names), len(steps))
    cell = name.ravel() * max(len(steps), 1) + step.ravel()
    total, calls = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(total.reshape(-1), cell, time)
    np.add.at(calls.reshape(-1), cell, 1)
    large = total.sum(axis=1) >= MIN_SHARE_OF_NAME * max(int(total.sum()), 1)  # no others are compared
    numbers = np.append(_numbers(graph, names[large]), ALL_NAMES)
    total, calls = (np.concatenate([each[large], each.sum(axis=0)[None]]) for each in (total, calls))
    at, when = np.nonzero(calls)
    return np.stack([np.full(len(at), int(device)), numbers[at], steps[when], calls[at, when], total[at, when]])
