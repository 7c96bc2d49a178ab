"""Operation, size and group of communication that has no match, by the arguments of its own rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Ints
from htagraph.graph.construction.matching.members import members_of
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["OwnSizes", "own_sizes"]


class OwnSizes(NamedTuple):
    """Facts from the recording of one rank about some communication."""

    op: tuple[str, ...]
    """The operation, for instance ``all_reduce``; empty if unknown."""
    bytes: Ints
    """Size of the message; -1 if unknown."""
    group_size: Ints
    """How many ranks the process group has; 0 if unknown."""


def own_sizes(graph: DependencyGraph, activity: Ints) -> OwnSizes:
    """Return operation, size and group of some communication, as recorded on its own rank.

    Args:
        graph: the job.
        activity: the communication.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0])
        >>> sizes = own_sizes(graph, graph.select(kind="communication").activities)
        >>> sizes.op[0], int(sizes.bytes[0]), int(sizes.group_size[0])
        ('all_reduce', 25000000, 4)
    """
    members = members_of(graph.activities, graph.names, traces=graph.traces)
    order = np.argsort(members.activity, kind="stable")
    place = np.searchsorted(members.activity[order], activity)
    rows = order[np.minimum(place, max(len(order) - 1, 0))] if len(order) else order
    is_member = members.activity[rows] == activity if len(order) else np.zeros(len(activity), np.bool_)
    sizes_of_groups = np.append(members.group_size, 0)
    codes = np.where(is_member, members.op[rows], -1).tolist()
    op = tuple(members.ops[code] if code >= 0 else "" for code in codes)
    return OwnSizes(
        op=op,
        bytes=np.where(is_member, members.bytes[rows], -1),
        group_size=np.where(is_member, sizes_of_groups[members.group[rows]], 0),
    )
