"""Graphs: those asked for last, so that the next question need not read the files again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.load import load

__all__ = ["Graphs"]

_KEPT = 3
"""Graphs that are kept: two jobs that are compared, and a part of one. Chosen. Doubled, large jobs take twice as much
memory; halved, comparing reads a job with every question."""


class Graphs:
    """The graphs that were asked for last, by what was read: files as they are now, ranks and steps."""

    def __init__(self, *, cache: bool = True) -> None:
        self._cache = cache
        self._kept: OrderedDict[tuple[object, ...], DependencyGraph] = OrderedDict()
        self._lock = Lock()

    def graph(
        self, path: Path, files: Sequence[Path], ranks: list[int] | None = None, steps: list[int] | None = None
    ) -> DependencyGraph:
        """Return the graph of a job, read again only if its files changed or others were asked for since.

        Args:
            path: a folder or a file.
            files: its trace files.
            ranks: only these.
            steps: only these.
        """
        states = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        key = (str(path), str(ranks), str(steps), tuple(states))
        with self._lock:  # two questions about one job read it once
            if key not in self._kept:
                self._kept[key] = load(str(path), ranks, steps, cache=self._cache)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]

    def __len__(self) -> int:
        return len(self._kept)
