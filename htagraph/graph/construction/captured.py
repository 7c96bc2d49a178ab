"""What a capture's recording tells of kernels: how each of them looks, and the frames around it.

A capture is a recording in which the kernels of a CUDA graph were launched one by one: an eager warm-up, or the capture
itself, of which only the calls are recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.kinds import DEVICE_WORK, FRAMES, OPERATORS, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import is_capture_begin, is_capture_end, is_enqueuing, is_module_frame, names_that
from htagraph.graph.activities import Activities, replayed
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.columns import Trace
from htagraph.trace.readers import reader_of

__all__ = ["Capture", "Frame", "Label", "Look", "looks_of", "shared", "work_kinds"]

Look = tuple[str, Any, Any]
_SIZES = ("grid", "block", "bytes")
_SHAPES = ("Input Dims", "Input dims", "Input type")


@dataclass(frozen=True)
class Frame:
    """An operator, module, Python function or annotation around a kernel in a capture's recording."""

    row: int
    """Its activity in the capture's graph."""
    kind: int
    name: str
    shapes: tuple[Any, ...] | None = None
    """Shapes and types of an operator's inputs, as in the file; None where they are not known, or not the same."""
    modules: tuple[Frame, ...] = ()
    """The modules around the forward operator that a backward operator belongs to, the outermost first."""

    @property
    def alike(self) -> tuple[int, str]:
        """What two frames have in common that say the same of a kernel."""
        return self.kind, self.name

    @property
    def is_operator(self) -> bool:
        """Whether the frame is an operator; else it is a region of code."""
        return self.kind in OPERATORS

    @property
    def sort(self) -> str:
        """What the frame is: an operator, an annotation, a module or another function."""
        return "operator" if self.is_operator else "annotation" if self.kind == ActivityKind.ANNOTATION else (
            "module" if is_module_frame(self.name) else "function"
        )  # fmt: skip


Label = tuple[Frame, ...]
"""What is known of a kernel: the frames around it, the outermost first."""


@dataclass(frozen=True, eq=False)
class Capture:
    """A recording of which kernels tell their operators."""

    graph: DependencyGraph
    rank: int
    number: int
    """Which of `DependencyGraph.captures` is its file."""

    @property
    def trace(self) -> Trace:
        """Its file, without activities."""
        return self.graph.traces[self.rank]

    @cached_property
    def work(self) -> Ints:
        """Its kernels and copies that no CUDA graph launched, in the order in which they were launched."""
        acts = self.graph.activities
        rows = np.flatnonzero(of_kinds(acts.kind, DEVICE_WORK))
        rows = rows[~replayed(acts, self.graph.names)[rows]]
        asked = np.where(acts.cause[rows] >= 0, acts.start[acts.cause[rows]], acts.start[rows])
        return rows[np.lexsort((acts.start[rows], asked))]

    @property
    def lanes(self) -> Ints:
        """The stream of each of `work`."""
        return self.graph.activities.lane[self.work].astype(np.int64)

    @cached_property
    def looks(self) -> list[Look]:
        """How each of `work` looks."""
        return looks_of(self.graph.activities, self.graph.names, self.trace, self.work)

    @cached_property
    def calls(self) -> list[Ints]:
        """The calls of each capture of a CUDA graph that the file has, in order: such calls start no work yet."""
        acts, names = self.graph.activities, self.graph.names
        begins, ends = (
            np.sort(acts.start[names_that(each, names)[acts.name]]) for each in (is_capture_begin, is_capture_end)
        )
        calls = np.flatnonzero(names_that(is_enqueuing, names)[acts.name] & ~acts.on_device)
        calls = calls[~np.isin(calls, acts.cause)]
        calls = calls[np.argsort(acts.start[calls], kind="stable")]
        last = ends[np.minimum(np.searchsorted(ends, begins), len(ends) - 1)] if len(ends) else begins
        spans = np.searchsorted(acts.start[calls], [begins, last]).T.tolist()
        return [calls[first:stop] for first, stop in spans if stop > first]

    def label(self, activity: int) -> Label:
        """Return the frames around a kernel or a call, the outermost first; not the steps."""
        owner = int(self.graph.tree.parent[activity])
        if owner not in self._labels:
            self._labels[owner] = tuple(self._frame(row) for row in reversed([*self._above(owner)]))
        return self._labels[owner]

    @cached_property
    def _labels(self) -> dict[int, Label]:
        return {}

    def _above(self, row: int) -> Iterator[int]:
        kind, parent = self.graph.activities.kind, self.graph.tree.parent
        while row >= 0:
            if kind[row] in (*FRAMES, *OPERATORS) and kind[row] != ActivityKind.STEP:
                yield row
            row = int(parent[row])

    def _frame(self, row: int) -> Frame:
        frame = self._region(row)
        if not frame.is_operator:
            return frame
        forward = self._forward.get(row, -1)
        above = reversed([*self._above(forward)]) if forward >= 0 else ()
        modules = tuple(each for each in map(self._region, above) if is_module_frame(each.name))
        return replace(frame, shapes=self._shapes.get(row), modules=modules)

    def _region(self, row: int) -> Frame:
        return Frame(row, int(self.graph.activities.kind[row]), self.graph.names[self.graph.activities.name[row]])

    @cached_property
    def _forward(self) -> dict[int, int]:
        """The forward operator of each backward one; empty where no modules were recorded, which it is asked for."""
        edges, names = self.graph.edges, self.graph.names
        if not names_that(is_module_frame, names).any():
            return {}
        backward = edges.kind == EdgeKind.AUTOGRAD
        ends = zip((edges.target[backward] >> 1).tolist(), (edges.source[backward] >> 1).tolist(), strict=True)
        return dict(ends)

    @cached_property
    def _shapes(self) -> dict[int, tuple[Any, ...]]:
        """Shapes and types of the inputs of operators that have any; the file is read again."""
        acts = self.graph.activities
        rows = np.flatnonzero((acts.kind == ActivityKind.OP) & self.graph.tree.around(acts.kind >= DEVICE_WORK[0]))
        if not len(rows):
            return {}
        found = reader_of(self.trace).arguments(self.trace.unchanged_path(), _SHAPES, acts.event[rows], as_text=True)
        texts = zip(*(found[name].tolist() for name in _SHAPES), strict=True)
        return {row: each for row, each in zip(rows.tolist(), texts, strict=True) if any(each)}


def looks_of(acts: Activities, names: Sequence[str], trace: Trace, rows: Array) -> list[Look]:
    """Return what tells kernels and copies apart: the name, the grid, and the block or the bytes.

    None for what the file does not have; the grid of a copy is empty.
    """
    found = reader_of(trace).arguments(trace.unchanged_path(), _SIZES, acts.event[rows], as_text=True)
    grid, block, size = ([each and b"".join(each.split()) for each in found[name].tolist()] for name in _SIZES)
    copies = (acts.kind[rows] == ActivityKind.MEMORY).tolist()
    texts = map(names.__getitem__, acts.name[rows].tolist())
    return [
        (text, b"", bytes_) if copy else (text, of_grid, of_block)
        for text, of_grid, of_block, bytes_, copy in zip(texts, grid, block, size, copies, strict=True)
    ]


def work_kinds(names: Iterable[str]) -> tuple[str, ...]:
    """Return what each kernel, copy or call is: a memset, a copy or a kernel."""
    found = (re.search("mem(set|cpy)", name, re.IGNORECASE) for name in names)
    return tuple(each[1].lower() if each else "kernel" for each in found)


def shared(labels: Iterable[Label]) -> Label:
    """Return what several labels have in common, as frames of the first one.

    Operators, modules, other functions and annotations are each counted from the innermost one: where this one differs,
    none of them is shared, as the outer ones would be said to do work that is an inner one's.

    Example:
        >>> one = Frame(1, ActivityKind.PYTHON, "nn.Module: MLP_0"), Frame(2, ActivityKind.OP, "aten::addmm")
        >>> two = Frame(3, ActivityKind.PYTHON, "nn.Module: MLP_1"), Frame(4, ActivityKind.OP, "aten::addmm")
        >>> [frame.name for frame in shared([one, two])]
        ['aten::addmm']
    """
    first, *others = labels
    for other in others:
        if _module(first) != _module(other):
            first = tuple(replace(frame, modules=()) for frame in first if frame.sort != "module")
        kept: dict[int, Frame] = {}
        for sort in {frame.sort for frame in first}:
            pair = ([frame for frame in reversed(label) if frame.sort == sort] for label in (first, other))
            kept |= {one.row: _both(one, two) for one, two in _while_alike(*pair)}
        first = tuple(kept[each.row] for each in first if each.row in kept)
    return first


def _module(label: Label) -> str:
    """Return the innermost module of a kernel: around it, or around the forward operator that it is backward of."""
    inner = (frame.name if frame.sort == "module" else frame.modules[-1].name if frame.modules else "" for frame in
             reversed(label))  # fmt: skip
    return next(filter(None, inner), "")


def _while_alike(first: Sequence[Frame], second: Sequence[Frame]) -> Iterator[tuple[Frame, Frame]]:
    for one, two in zip(first, second, strict=False):
        if one.alike != two.alike:
            return
        yield one, two


def _both(one: Frame, two: Frame) -> Frame:
    """Return a frame with the shapes and modules that two like it share."""
    modules = [each for each, _ in _while_alike(one.modules[::-1], two.modules[::-1])]
    return replace(one, shapes=one.shapes if one.shapes == two.shapes else None, modules=tuple(modules[::-1]))
