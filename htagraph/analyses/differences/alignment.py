"""Two jobs in one tree of call paths, which says which activity of one corresponds to which of the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import OPERATORS, ActivityKind, of_kinds
from htagraph.core.naming import call_name, is_module_frame, names_that, short_name, stable_name
from htagraph.core.parents import depths, nearest
from htagraph.core.statistics import MOST
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Alignment", "align"]

_COMMON_WORDS = frozenset(("at", "cuda", "device", "kernel", "native", "void"))
"""Words of kernels' names that say nothing about what a kernel does."""
_MOST_LETTERS = 4096
"""Letters of a path in words: else texts grow with the square of the depth. Chosen: 64 levels of as many letters; real
stacks of operators are below 20 deep. Doubled, only texts of deeper stacks are longer."""
_OPTIONAL = (ActivityKind.ANNOTATION, ActivityKind.PYTHON)


@dataclass(frozen=True, eq=False)
class Alignment:
    """One tree of call paths for two jobs.

    A call path is the chain of names around an activity: annotations, operators and modules, for device work those
    around its launch. Steps, ranks and threads are not part of it: the same call on two ranks is one path. A place is a
    path with a position among equal siblings (the first, second, … call of that name).
    """

    graphs: tuple[DependencyGraph, DependencyGraph]
    path: tuple[Array, Array]
    """The path of each activity of (before, after)."""
    place: tuple[Array, Array]
    """The place of each activity of (before, after)."""
    parent: Array
    """The path around each path; -1 at the top."""
    example: Array
    """An activity of each path: i of the job before, or -1 - i of the job after where only that has the path."""
    renamed: dict[int, str]
    """Paths of device work whose name differs in the job after, with that name."""

    def __len__(self) -> int:
        return len(self.parent)

    def outermost(self, chosen: Array) -> Array:
        """Return for each chosen path the outermost chosen one of the unbroken chain above it, or itself; else -1."""
        root = np.where(chosen, np.arange(len(self)), -1)
        for level in np.flatnonzero(chosen & (self.parent >= 0)).tolist():  # parents are numbered first
            if chosen[self.parent[level]]:
                root[level] = root[self.parent[level]]
        return root

    @cached_property
    def region(self) -> Array:
        """The outermost annotation around each path, or the path itself; -1 for none."""
        is_region = np.array(self.kinds) == ActivityKind.ANNOTATION.label
        region = np.where(is_region, np.arange(len(self)), -1)
        for path in np.flatnonzero(self.parent >= 0).tolist():  # parents are numbered first
            around = region[self.parent[path]]
            region[path] = around if around >= 0 else region[path]
        return region

    @cached_property
    def names(self) -> list[str]:
        """The name at the end of each path; of device work in full, as in the job before if that has the path."""
        names = [graph.names[graph.activities.name[activity]] for graph, activity in self._examples()]
        pairs = zip(names, self.on_device.tolist(), strict=True)
        return [name if on_device else stable_name(name) for name, on_device in pairs]

    @cached_property
    def kinds(self) -> list[str]:
        """The `ActivityKind` of each path."""
        return [ActivityKind(graph.activities.kind[activity]).label for graph, activity in self._examples()]

    @cached_property
    def texts(self) -> list[str]:
        """Each path in words: names from the outermost inwards, kernels without signatures; of long ones the end."""
        made = list[str]()
        for name, on_device, parent in zip(self.names, self.on_device.tolist(), self.parent.tolist(), strict=True):
            word = short_name(name) if on_device else name
            text = f"{made[parent]} > {word}" if parent >= 0 else word  # parents are numbered first
            made.append(text if len(text) <= _MOST_LETTERS else f"…{text[-_MOST_LETTERS:]}")
        return made

    @cached_property
    def on_device(self) -> Array:
        """Which paths are device work."""
        return np.array([ActivityKind[kind.upper()].on_device for kind in self.kinds], np.bool_)

    def _examples(self) -> list[tuple[DependencyGraph, int]]:
        before, after = self.graphs
        return [(before, i) if i >= 0 else (after, -1 - i) for i in self.example.tolist()]


def align(before: DependencyGraph, after: DependencyGraph) -> Alignment:
    """Return both jobs' activities in one tree of call paths.

    Annotations and module frames that only one of the jobs has are no level of the tree, so that adding one moves
    nothing, nor are frames of Python functions, whose names hold line numbers. Runtime calls that only
    one of them has are paired by what they do, whoever made the device. Device work of a name that only one of the jobs
    has is paired under each path: by likeness of names, and under an operator the only one left of each job
    with the other's, if both are launched equally often in it.
    """
    rows = _BothJobs.of(before, after)
    label = rows.label
    path, place, parent = _numbered(rows, label)
    renamed = _renamed(rows, path, parent)
    if renamed:
        changed = label.copy()
        new = np.arange(len(parent))
        new[[after for after, _ in renamed]] = [before for _, before in renamed]
        first = _first(path, len(parent))
        changed[rows.split :] = label[first[new[path[rows.split :]]]]
        path, place, parent = _numbered(rows, changed)
    first = _first(path, len(parent))
    names = {}
    if renamed:
        was = np.flatnonzero(changed != label)
        which, at = np.unique(path[was], return_index=True)
        names = dict(zip(which.tolist(), (rows.names[i] for i in label[was[at]] >> 1), strict=True))
    cut = rows.split
    return Alignment(
        (before, after), (path[:cut], path[cut:]), (place[:cut], place[cut:]), parent,
        np.where(first < cut, first, cut - 1 - first), names,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _BothJobs:
    """The activities of both jobs, one job after the other."""

    split: int
    """How many activities the first job has."""
    above: Array
    """The innermost activity around each that is a level of the tree; -1 for none."""
    label: Array
    """A number for name and side (host or device)."""
    names: list[str]
    kind: Array
    owner: Array
    """Activities with the same owner are siblings: those under one activity, or at the top of one step of one rank."""
    begin: Array
    """When each was called, ns: device work when its launch was."""
    start: Array

    @staticmethod
    def of(before: DependencyGraph, after: DependencyGraph) -> _BothJobs:
        codes: dict[str, int] = {}
        stable = [[stable_name(name) for name in graph.names] for graph in (before, after)]
        both = {*stable[0]} & {*stable[1]}
        known = {call_name(name): name for name in sorted(both, reverse=True)}
        paired = [[name if name in both else known.get(call_name(name), call_name(name)) for name in names]
                  for names in stable]  # fmt: skip
        tables = [np.array([codes.setdefault(name, len(codes)) for name in names], np.int64) for names in paired]
        names = list(codes)
        acts = (before.activities, after.activities)
        split = len(acts[0])
        kind = np.concatenate([each.kind for each in acts])
        code = np.concatenate([table[each.name] for table, each in zip(tables, acts, strict=True)])
        device = np.concatenate([each.on_device for each in acts])
        up, cause = (
            np.concatenate([column[0], np.where(column[1] >= 0, column[1].astype(np.int64) + split, -1)])
            for column in ([g.tree.parent for g in (before, after)], [each.cause for each in acts])
        )
        above = nearest(up, _levels(kind, code, names, split), up)
        step = np.concatenate([each.step.astype(np.int64) for each in acts])
        rank = np.concatenate([each.rank.astype(np.int64) for each in acts])
        job = np.arange(len(kind)) >= split
        top = (step + 1) * 2 * (rank.max(initial=0) + 2) + 2 * (rank + 1) + job
        start = np.concatenate([each.start for each in acts])
        begin = np.where(device & (cause >= 0), start[cause], start)
        return _BothJobs(
            split, above, 2 * code + device, names, kind, np.where(above >= 0, above, -1 - top), begin, start
        )  # fmt: skip


def _levels(kind: Array, code: Array, names: Sequence[str], split: int) -> npt.NDArray[np.bool_]:
    """Return which activities are levels of the tree for what lies in them."""
    module = names_that(is_module_frame, names)
    maybe = of_kinds(kind, _OPTIONAL) & ((kind == ActivityKind.ANNOTATION) | module[code])
    count = len(names)
    both = np.ones(count, np.bool_)
    for part in (slice(None, split), slice(split, None)):
        both &= np.bincount(code[part][maybe[part]], minlength=count) > 0
    return of_kinds(kind, OPERATORS) | (maybe & both[code])


def _numbered(rows: _BothJobs, label: Array) -> tuple[Array, Array, Array]:
    """Return (path of each row, place of each row, parent of each path); levels are numbered from the top."""
    size = len(label)
    path, place, parents = np.full(size, -1, np.int64), np.full(size, -1, np.int64), [np.zeros(0, np.int64)]
    from htagraph.core.counting import numbered, occurrences  # numba takes a moment to load
    from htagraph.core.traverse import counting_order

    siblings, alike = numbered((rows.owner - rows.owner.min(initial=0)) * (int(label.max(initial=0)) + 1) + label)
    nth = occurrences(alike, len(siblings), rows.begin, rows.start)[0]  # among equal siblings
    width, most = int(label.max(initial=0)) + 1, int(nth.max(initial=0)) + 1
    paths = places = 0
    depth = depths(rows.above)
    offsets, order = counting_order(depth, int(depth.max(initial=-1)) + 1)
    for level in np.split(order, offsets[1:-1]) if len(order) else ():  # the top first
        around = rows.above[level]
        outer = np.where(around >= 0, path[around], -1)
        paths_here, path[level] = numbered((outer + 1) * width + label[level])
        path[level] += paths
        parents.append(paths_here // width - 1)
        where = np.where(around >= 0, place[around], -1)
        kin = numbered((where + 1) * width + label[level])[1]
        own, place[level] = numbered(kin * most + nth[level])
        place[level] += places
        paths, places = paths + len(paths_here), places + len(own)
    return path, place, np.concatenate(parents)


def _first(path: Array, count: int) -> Array:
    """Return the first row of each path."""
    first = np.full(count, len(path), np.int64)
    np.minimum.at(first, path, np.arange(len(path)))
    return first


def _renamed(rows: _BothJobs, path: Array, parent: Array) -> list[tuple[int, int]]:
    """Return pairs (path that only the job after has, the one that only the job before has) of device work."""
    # a name that both jobs have, wherever, is no new name: kernels were chosen differently
    count = len(parent)
    first = _first(path, count)
    parts = slice(None, rows.split), slice(rows.split, None)
    launched = np.stack([np.bincount(path[part], minlength=count) for part in parts])
    names = [np.bincount(rows.label[part], minlength=2 * len(rows.names)) > 0 for part in parts]
    one_sided = (names[0] != names[1])[rows.label[first]]
    kind = rows.kind[first].astype(np.int64)
    device = kind >= min(each for each in ActivityKind if each.on_device)
    some = np.flatnonzero(device & one_sided & ((launched[0] > 0) != (launched[1] > 0)) & (parent >= 0))
    some = some[np.lexsort((rows.begin[first[some]], kind[some], parent[some]))]
    sides: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for each in some.tolist():
        sides.setdefault((int(parent[each]), int(kind[each])), ([], []))[int(launched[1][each] > 0)].append(each)
    words = {each: _words(rows.names[rows.label[first[each]] >> 1]) for each in some.tolist()}
    pairs = []
    for (above, _), (gone, come) in sides.items():
        pairs += _alike(gone, come, words)
        if kind[above] in OPERATORS and len(gone) == len(come) == 1:
            old, new = gone.pop(), come.pop()
            if launched[0][old] * launched[1][above] == launched[1][new] * launched[0][above]:
                pairs.append((new, old))
    return pairs


def _words(name: str) -> frozenset[str]:
    words = frozenset(re.split(r"[^a-z0-9]+", short_name(name).lower())) - {""}
    return words - _COMMON_WORDS or words


def _alike(gone: list[int], come: list[int], words: dict[int, frozenset[str]]) -> list[tuple[int, int]]:
    """Return pairs of names that have most words in common, the most alike first, and take them out of both lists."""
    scores = [
        (len(words[new] & words[old]) / len(words[new] | words[old]), old, new)
        for old in gone for new in come if words[new] & words[old]
    ]  # fmt: skip
    pairs = []
    for score, old, new in sorted(scores, key=lambda each: (-each[0], *each[1:])):
        if score >= MOST and old in gone and new in come:
            pairs.append((new, old))
            gone.remove(old)
            come.remove(new)
    return pairs
