"""Whereabouts of code: how often code runs, and which function, region or operator is around most of its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, GapKind
from htagraph.core.naming import is_graph_launch, is_library_frame, is_source_frame, names_that
from htagraph.core.statistics import MOST
from htagraph.findings.change import steps_of
from htagraph.findings.finding import in_short
from htagraph.findings.phrases import plural
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import regular_steps
from htagraph.graph.selection import named_activities
from htagraph.queries.change_scope import activities_of
from htagraph.queries.weights import initial
from htagraph.whatif.options import criteria

__all__ = ["changed_by", "path_percent", "place_of", "whereabouts"]

_SELECTING: Final = ("scale", "fuse", "remove")
"""The options whose values select activities by criteria."""


def whereabouts(results: Results, options: tuple[str, ...]) -> str:
    """Return a clause on how often code runs that one change makes faster, and in which function; empty for none.

    Args:
        results: the results of the job.
        options: the options of the command line that make the code faster.

    Example:
        >>> import htagraph as hg
        >>> whereabouts(Results(hg.load("data/demo")), ("--scale", "op=aten::mm:0.5"))
        'it runs 16 times per step on each rank, mostly in autograd::engin…: AddmmBackward0'
    """
    rows = _rows(results.graph, options)
    if not len(rows):
        return ""
    place = place_of(results, options)
    return f"it runs {_how_often(results, rows)}{', ' * bool(place)}{place}"


def place_of(results: Results, options: tuple[str, ...]) -> str:
    """Return in which function, region or operator code mostly runs that one change makes faster; empty for none.

    Args:
        results: the results of the job.
        options: the options of the command line that make the code faster.
    """
    rows = _rows(results.graph, options)
    around = _around(results.graph, rows) if len(rows) else ""
    if not around:
        return ""
    place = in_short(around)
    return f"in {place}" if len(rows) == 1 else f"mostly in {place}"


def path_percent(results: Results, options: tuple[str, ...]) -> float:
    """Return the share of the critical path that activities take whose time a change scales, percent; NaN for none.

    The path is that of the usual steps, or of the job without its start-up, as in the sentence on the bound.

    Args:
        results: the results of the job.
        options: the options of the command line that make the code faster.

    Example:
        >>> import htagraph as hg
        >>> results = Results(hg.load("data/demo"))
        >>> 0 < path_percent(results, ("--scale", "op=aten::mm:0.5")) < 100
        True
    """
    chosen = changed_by(results.graph, options)
    segments = results.parts
    whole = float(segments.length.sum())
    if not chosen.any() or not whole:
        return float("nan")
    is_chosen = chosen[segments.activity] & (segments.gap == GapKind.NONE)
    return 100 * float(segments.length[is_chosen].sum()) / whole


def changed_by(graph: DependencyGraph, options: Sequence[str]) -> Mask:
    """Return which activities options of the command line scale, fuse or remove; none for other changes.

    Args:
        graph: the job.
        options: the options.
    """
    state = initial(graph)
    chosen = np.zeros(len(graph.activities), np.bool_)
    for option, value in steps_of(options):
        if option not in _SELECTING:
            continue
        text = value.rpartition(":")[0] if option == "scale" else value
        with suppress(SelectionError):
            chosen |= activities_of(state, criteria(text))[:-1]
    return chosen


def _rows(graph: DependencyGraph, options: tuple[str, ...]) -> Ints:
    """Return the activities whose time a change scales, each the outermost one of its name; none for other changes."""
    nothing = np.zeros(0, np.int64)
    changes = steps_of(options)
    if len(changes) != 1:
        return nothing
    option, value = changes[0]
    if option != "scale":
        return nothing
    scaled, _, _ = value.rpartition(":")
    chosen_by = criteria(scaled)
    glob = chosen_by.get("op") or chosen_by.get("name")
    if not isinstance(glob, str):
        return nothing
    return graph.tree.outermost(named_activities(graph, glob))


def _how_often(results: Results, rows: Ints) -> str:
    """Return how often activities run in a usual step, or in the job, in words."""
    graph = results.graph
    acts = graph.activities
    numbers, _ = regular_steps(graph, graph.time)
    usual = rows[np.isin(acts.step[rows], numbers)]
    is_per_step = results.steps > 1 and len(usual) >= len(numbers)
    counted = usual if is_per_step else rows
    ranks, rank = np.unique(acts.rank[counted], return_inverse=True)
    step = np.zeros(len(counted), np.int64)
    steps = 1
    if is_per_step:
        step = np.searchsorted(np.sort(numbers), acts.step[counted])
        steps = len(numbers)
    counts = np.bincount(rank * steps + step, minlength=len(ranks) * steps)
    fewest = int(counts.min())
    most = int(counts.max())
    times = plural(most, "time")
    if fewest < most:
        times = f"{fewest:,} to {times}"
    elif most == 1:
        times = "once"
    per_step = " per step" if is_per_step else ""
    on_ranks = " on each rank" if len(ranks) > 1 else ""
    return f"{times}{per_step}{on_ranks}"


def _around(graph: DependencyGraph, rows: Ints) -> str:
    """Return the name of the user's function, region or operator around most of the time; empty for none.

    Args:
        graph: the job.
        rows: the activities whose time counts.
    """
    acts = graph.activities
    duration = acts.duration[rows]
    cause = acts.cause[rows]
    is_launched = acts.on_device[rows] & (cause >= 0)
    is_replayed = is_launched & names_that(is_graph_launch, graph.names)[acts.name[cause]]
    if duration[is_replayed].sum() > MOST * duration.sum():  # the code that replays a graph is not the code of a kernel
        return ""
    inner = np.where(is_launched, cause, rows)
    for wanted in _kinds_around(graph, rows):
        around = graph.tree.nearest(wanted, inner)
        is_inside = around >= 0
        names = acts.name[around[is_inside]]
        time = np.bincount(names, duration[is_inside], len(graph.names))
        if time.max(initial=0.0) > MOST * duration.sum():
            return graph.names[int(time.argmax())]
    return ""


def _kinds_around(graph: DependencyGraph, rows: Ints) -> Iterator[Mask]:
    """Yield the functions in files of users, then the annotations, then the outermost operators, of other names.

    Args:
        graph: the job.
        rows: the activities whose names are left out.
    """
    acts = graph.activities
    may_enclose = ~np.isin(acts.name, np.unique(acts.name[rows]))
    may_enclose &= ~acts.on_device
    is_users = names_that(_is_users_frame, graph.names)[acts.name]
    yield may_enclose & is_users & (acts.kind == ActivityKind.PYTHON)
    yield may_enclose & (acts.kind == ActivityKind.ANNOTATION)
    outermost = graph.tree.outermost(acts.kind == ActivityKind.OP)
    yield may_enclose & marked(outermost, len(acts))


def _is_users_frame(name: str) -> bool:
    """Return whether a name is of a Python function in a file of the user."""
    return is_source_frame(name) and not is_library_frame(name)
