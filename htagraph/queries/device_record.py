"""Whether a recording shows the work of devices: one answer for every statement on times of devices."""

from __future__ import annotations

from collections import Counter
from enum import Enum

import numpy as np

from htagraph.core.arrays import Ints
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, of_kinds
from htagraph.core.naming import collective_op, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import keeps_counters, only_with_device

__all__ = ["DeviceRecord", "collective_calls", "device_record", "ranks_with_device", "unrecorded_ranks"]


class DeviceRecord(Enum):
    """Whether a recording shows the work of the devices of a job, and why not."""

    RECORDED = "work of devices was recorded"
    COUNTED = "a profiler of counters ran kernels one by one, and kept none of their times"
    UNRECORDED = "none of the devices' work was recorded"
    UNUSED = "nothing shows that the job used a device"

    @property
    def is_lost(self) -> bool:
        """Whether a job has devices and none of their work was recorded: the file says nothing about that work."""
        return self in (DeviceRecord.COUNTED, DeviceRecord.UNRECORDED)


def device_record(graph: DependencyGraph) -> DeviceRecord:
    """Return whether a recording shows the work of the devices of a job, and why not.

    Example:
        >>> import htagraph as hg
        >>> device_record(hg.load("data/demo")).name, device_record(hg.load("data/gloo_ddp")).name
        ('RECORDED', 'UNUSED')
    """
    if graph.activities.on_device.any():
        return DeviceRecord.RECORDED
    if not len(ranks_with_device(graph)):
        return DeviceRecord.UNUSED
    return DeviceRecord.COUNTED if keeps_counters(graph) else DeviceRecord.UNRECORDED


def ranks_with_device(graph: DependencyGraph) -> Ints:
    """Return the ranks that show a device: by launches and work on a device, or as their machine has one."""
    acts = graph.activities
    is_used = acts.on_device | (acts.kind == ActivityKind.LAUNCH) | only_with_device(graph, slice(0, len(acts)))
    listed = [rank for rank, trace in graph.traces.items() if trace.facts.devices and _has_rows(graph, rank)]
    return np.union1d(acts.rank[is_used], np.array(listed, np.int64)).astype(np.int64)


def _has_rows(graph: DependencyGraph, rank: int) -> bool:
    """Return whether a rank has any activity."""
    rows = graph.activities.of_rank(rank)
    return rows.stop > rows.start


def unrecorded_ranks(graph: DependencyGraph) -> Ints:
    """Return the ranks that have a device, and no work of it in the file: times of their hosts are no times of work."""
    acts = graph.activities
    return np.setdiff1d(ranks_with_device(graph), acts.rank[acts.on_device])


def collective_calls(graph: DependencyGraph) -> dict[str, int]:
    """Return how many operators and annotations ask for collectives, by name, the most first.

    Example:
        >>> import htagraph as hg
        >>> collective_calls(hg.load("data/gpu_demo/train"))
        {}
    """
    acts = graph.activities
    asks = names_that(_asks_for_collective, graph.names)[acts.name]
    asks &= of_kinds(acts.kind, (ActivityKind.OP, *ANNOTATIONS))
    counts = Counter(graph.names[name] for name in acts.name[asks].tolist())
    return dict(counts.most_common())


def _asks_for_collective(name: str) -> bool:
    """Return whether a name is of an operator or annotation that asks for a collective."""
    return bool(collective_op(name, host=True))
