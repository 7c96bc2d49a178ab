"""CallStackGraph: what encloses what on one thread, with the device work under it, as nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from htagraph.hta.common.trace_symbol_table import DeviceType

__all__ = [
    "NON_EXISTENT_NODE_INDEX", "NULL_NODE_INDEX", "CallStackGraph", "CallStackIdentity", "CallStackNode", "DFSCallback",
    "StackWalks",
]  # fmt: skip

NON_EXISTENT_NODE_INDEX = -2
"""What `CallStackGraph.get_parent` returns for an event that is no node."""
NULL_NODE_INDEX = -1
"""The parent of a root."""


class CallStackIdentity(NamedTuple):
    """Which thread of which rank."""

    rank: int = -1
    pid: int = -1
    tid: int = -1


@dataclass
class CallStackNode:
    """One event: what is above it, what is below it, and on which thread of which rank it is."""

    parent: int = NULL_NODE_INDEX
    depth: int = -1
    height: int = -1
    device: DeviceType = DeviceType.CPU
    children: list[int] = field(default_factory=list)


DFSCallback: TypeAlias = Callable[[int, Any], None]


class StackWalks:
    """Walks up and down the nodes of call stacks; a node's number is its event's position in the file."""

    nodes: Mapping[int, Any]
    root_index: int

    def get_nodes(self) -> Mapping[int, Any]:
        """Return the nodes by number."""
        return self.nodes

    def get_parent(self, idx: int) -> int:
        """Return the node above a node, -2 if there is no such node."""
        return int(self.nodes[idx].parent) if idx in self.nodes else NON_EXISTENT_NODE_INDEX

    def get_children(self, idx: int) -> list[int]:
        """Return the nodes directly below a node, none if there is no such node."""
        return self.nodes[idx].children if idx in self.nodes else []

    def get_path_to_root(self, idx: int) -> list[int]:
        """Return a node, the one above it, and so on up to the root of the thread."""
        if idx not in self.nodes:
            return []
        path = [idx]
        while path[-1] >= 0 and path[-1] in self.nodes:
            path.append(int(self.nodes[path[-1]].parent))
        return path

    def get_root(self, idx: int) -> int:
        """Return the root of the thread that a node is on, -1 if there is no such node."""
        return self.get_path_to_root(idx)[-1] if idx in self.nodes else NULL_NODE_INDEX

    def get_paths_to_leaves(self, idx: int, include_cuda_kernel: bool = False) -> list[list[int]]:
        """Return the ways down from a node to each node with nothing below it.

        Args:
            idx: where they begin.
            include_cuda_kernel: go on from a launch to its device work.
        """
        paths: list[list[int]] = []
        ways = [[idx]] if idx in self.nodes else []
        while ways:
            way = ways.pop()
            below = self._below(way[-1], include_cuda_kernel)
            if not below:
                paths.append(way)
            ways.extend([*way, child] for child in reversed(below))
        return paths

    def get_leaf_nodes(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """Return the nodes at or under a node with nothing below them; device work only if asked for."""
        under = self.get_descendants(idx, include_gpu_kernel)
        return [node for node in under if not self._below(node, include_gpu_kernel)]

    def get_descendants(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """Return a node and all under it; device work only if asked for."""
        under: list[int] = []
        todo = [idx] if idx in self.nodes else []
        while todo:
            under.append(todo.pop())
            todo.extend(reversed(self._below(under[-1], include_gpu_kernel)))
        return under

    def dfs_traverse(self, enter_func: DFSCallback, exit_func: DFSCallback) -> None:
        """Walk through the thread's nodes, each before the nodes below it.

        Args:
            enter_func: called with number and node before what is below it.
            exit_func: called with number and node after that.
        """
        todo = [(self.root_index, True)]
        while todo:
            number, enters = todo.pop()
            if number not in self.nodes:
                continue
            node = self.nodes[number]
            if not enters:
                exit_func(number, node)
                continue
            enter_func(number, node)
            todo.append((number, False))
            todo.extend((child, True) for child in reversed(node.children))

    def _below(self, idx: int, device: bool) -> list[int]:
        """Return the nodes directly below a node; device work only if asked for."""
        below = [child for child in self.nodes[idx].children if child in self.nodes]
        on_host = [child for child in below if getattr(self.nodes[child], "device", None) != DeviceType.GPU]
        return below if device else on_host


class CallStackGraph(StackWalks):
    """The call stack of one thread, with the device work that it launched.

    `CallGraph` makes it; `nodes` are the whole rank's nodes, since backward threads hang below the main thread.
    """

    def __init__(
        self, df: pd.DataFrame, identity: CallStackIdentity, full_df: pd.DataFrame,
        nodes: Callable[[], Mapping[int, CallStackNode]], root_index: int,
    ) -> None:  # fmt: skip
        """Make the stack of a thread.

        Args:
            df: the rows of the thread.
            identity: which thread.
            full_df: the rows of the rank.
            nodes: returns the nodes of the rank.
            root_index: the root above the thread's first level.
        """
        self.df = df
        self.identity = identity
        self.full_df = full_df
        self.root_index = root_index
        self.device_type = DeviceType.CPU
        self._nodes = nodes

    @property
    def nodes(self) -> Mapping[int, CallStackNode]:  # type: ignore[override]
        """The nodes of the rank."""
        return self._nodes()

    def get_dataframe(self) -> pd.DataFrame:
        """Return the rows of the thread."""
        return self.df

    def get_depth(self) -> pd.Series:
        """Return the depth of each row of the thread."""
        return self.full_df.loc[self.df.index, "depth"]

    def __repr__(self) -> str:
        return f"CallStackGraph({self.identity}, {len(self.df)} events)"
