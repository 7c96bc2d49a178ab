"""Version of PyTorch: which versions may have made a recording, by entries and names that only some versions write."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from htagraph.core.naming import is_of_old_pytorch, is_of_pytorch_2, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.columns import Facts

__all__ = ["HAS_TF32_SETTING", "Version", "Versions", "has_version", "versions_of"]

Version: TypeAlias = tuple[int, int]
"""Major and minor number of a version."""
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)")
_FIRST: Final = (1, 8)
"""The first version whose profiler is Kineto, and annotates steps of optimizers. Source: release notes."""
_ONE_CONVOLUTION: Final = (1, 11)
"""The first version with one backward operator for all convolutions. Source: release notes."""
_COMPILES: Final = (2, 0)
"""The first version with torch.compile and fused attention. Source: release notes."""
_COUNTS_FROM_BASE: Final = (2, 4)
"""The first version whose times in files count from ``baseTimeNanoseconds``. Source: Kineto's changes of April 2024."""
HAS_TF32_SETTING: Final = (1, 12)
"""The first version with ``torch.set_float32_matmul_precision``. Source: release notes."""


class Versions(NamedTuple):
    """The versions that may have made a recording."""

    least: Version
    """The first one."""
    before: Version | None
    """The first later one that cannot have made it; None where any later one can."""


def versions_of(graph: DependencyGraph) -> Versions:
    """Return which versions of PyTorch may have recorded a job.

    Example:
        >>> import htagraph as hg
        >>> versions_of(hg.load("data/demo"))
        Versions(least=(2, 4), before=None)
    """
    stated = [version for trace in graph.traces.values() for version in _stated(trace.facts)]
    if stated:
        major, minor = min(stated)
        return Versions((major, minor), (major, minor + 1))
    if names_that(is_of_old_pytorch, graph.names).any():
        return Versions(_FIRST, _ONE_CONVOLUTION)
    if graph.traces and all(trace.facts.base_ns is not None for trace in graph.traces.values()):
        return Versions(_COUNTS_FROM_BASE, None)
    least = _COMPILES if names_that(is_of_pytorch_2, graph.names).any() else _FIRST
    return Versions(least, None)


def _stated(facts: Facts) -> list[Version]:
    """Return the version that `htagraph.profile` wrote into a recording; none for recordings by another profiler."""
    numbers = _NUMBERS.match(str(facts.settings.get("torch", "")))
    return [(int(numbers[1]), int(numbers[2]))] if numbers else []


def has_version(graph: DependencyGraph, version: Version) -> bool | None:
    """Return whether a job ran with a version of PyTorch or a later one; None where nothing recorded says so.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> has_version(graph, (2, 3)), has_version(graph, (2, 9))
        (True, None)
    """
    possible = versions_of(graph)
    if possible.least >= version:
        return True
    is_later = possible.before is not None and possible.before <= version
    return False if is_later else None
