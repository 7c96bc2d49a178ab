"""What a file says of its recording beside the events: rank, job, process groups, devices, settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Device", "Facts", "Group", "parse_ranks"]

_INTEGER = re.compile(r"-?\d+", re.ASCII)
_MAX_RANKS = 1_000_000
"""Ranks of the largest group that is rebuilt. Chosen: 10 times the largest jobs known; a larger size is a damaged
number that would only fill memory. Doubling it doubles that memory (8 MB)."""


@dataclass(frozen=True)
class Device:
    """A device that a process could use."""

    id: int | None
    """Number on its host."""
    name: str
    """Product name; empty if the file has none."""


@dataclass(frozen=True)
class Group:
    """A process group that a process knows."""

    name: str
    purpose: str
    size: int | None
    """Number of ranks, if the file says it."""
    listed: tuple[int, ...] | str | None
    """The ranks as the file lists them; a text may be cut short, see `parse_ranks`."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The global ranks in group order; none where they are absent, or cut short beyond rebuilding."""
        return tuple(parse_ranks(self.listed, size=self.size) or ())


@dataclass(frozen=True)
class Facts:
    """What a file says of its recording, in one vocabulary for all formats; what it does not say is empty.

    Example:
        >>> import htagraph as hg
        >>> facts = hg.load("data/demo").traces[0].facts
        >>> facts.rank, facts.world_size, facts.devices[0].name
        (0, 4, 'NVIDIA A100-SXM4-80GB')
    """

    rank: int | None = None
    """The global rank, as the file says it."""
    world_size: int = 0
    """Ranks of the job; 0 if the file does not say."""
    backend: str = ""
    """Backend of the default process group."""
    groups: tuple[Group, ...] = ()
    devices: tuple[Device, ...] = ()
    host: str = ""
    job: str = ""
    run: str = ""
    """World size and job as a text: equal on all ranks of a run, and usually not on other runs."""
    base_ns: int | None = None
    """ns since 1970 that times in the file count from; None if they count from 1970 or from an unknown moment."""
    has_shapes: bool = False
    """Whether shapes of operators' inputs were recorded."""
    has_stacks: bool = False
    """Whether calls of Python functions were recorded."""
    on_cuda: bool = False
    """Whether CUPTI recorded the device."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """How `htagraph.profile` made the recording; empty if it did not."""
    exported: bool = False
    """Whether htagraph exported the file from recordings."""
    written: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """All that the file says beside its events, in its own words; graphs do not keep it."""

    @property
    def origin_ns(self) -> int:
        """What is added to times as in the file, ns."""
        return self.base_ns or 0


def parse_ranks(
    text: str | Sequence[int] | None,
    *,
    start: int | None = None,
    stride: int | None = None,
    size: int | None = None,
) -> list[int] | None:
    """Return the ranks of a process group, rebuilding a list that the profiler cut short.

    Start, stride and size of the group are used where the text is cut short (`...` stands for ranks left out). None if
    the ranks are absent or unreadable, or are no arithmetic progression that agrees with those shown.

    Example:
        >>> parse_ranks("[0, 2, ..., 14]", start=0, stride=2, size=8)
        [0, 2, 4, 6, 8, 10, 12, 14]
    """
    if text is None:
        return _progression([], [], start=start, stride=stride, size=size)
    if not isinstance(text, str):
        return list(text)
    items = [item.strip() for item in text.strip().strip("[]").split(",") if item.strip()]
    if not all(item == "..." or _INTEGER.fullmatch(item) for item in items):
        return None
    if "..." not in items:
        return [int(item) for item in items]
    cut = items.index("...")
    head, tail = ([int(item) for item in part if item != "..."] for part in (items[:cut], items[cut:]))
    if start is None or start < 0 or not stride or stride < 0:
        start, stride = _inferred(head)
    return _progression(head, tail, start=start, stride=stride, size=size)


def _inferred(head: list[int]) -> tuple[int | None, int | None]:
    """Return the start and stride that the first ranks suggest."""
    return (head[0], head[1] - head[0]) if len(head) > 1 else (None, None)


def _progression(
    head: list[int], tail: list[int], *, start: int | None, stride: int | None, size: int | None
) -> list[int] | None:
    """Return the arithmetic progression of ranks, or None if it is undefined or contradicts the ranks shown."""
    if start is None or start < 0 or not stride or stride < 0 or not size or size < len(head) + len(tail):
        return None
    ranks = range(start, start + stride * size, stride)
    if size > _MAX_RANKS or [*ranks[: len(head)], *ranks[size - len(tail) :]] != [*head, *tail]:
        return None
    return list(ranks)
