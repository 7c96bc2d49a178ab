"""Whereabouts of code: how often code runs, and what is around most of its time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_library_frame, is_source_frame, names_that
from htagraph.core.statistics import MOST
from htagraph.findings.change import steps_of
from htagraph.findings.finding import in_short
from htagraph.findings.phrases import plural
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import regular_steps
from htagraph.graph.selection import named_activities
from htagraph.whatif.options import criteria

__all__ = ["whereabouts"]


def whereabouts(results: Results, options: tuple[str, ...]) -> str:
    """Return a clause on how often code runs that one change makes faster, and in what; empty for none.

    Args:
        results: the results of the job.
        options: the options of ``htagraph what-if`` that make the code faster.

    Example:
        >>> import htagraph as hg
        >>> whereabouts(Results(hg.load("data/demo")), ("--scale", "op=aten::mm:0.5"))
        'it runs 16 times per step on each rank, mostly in autograd::engin…: AddmmBackward0'
    """
    rows = _rows(results.graph, options)
    if not len(rows):
        return ""
    around = _around(results.graph, rows)
    where = f", mostly in {in_short(around)}" if around else ""
    return f"it runs {_how_often(results, rows)}{where}"


def _rows(graph: DependencyGraph, options: tuple[str, ...]) -> Ints:
    """Return the activities whose time a change scales, each the outermost one of its name; none for other changes."""
    nothing = np.zeros(0, np.int64)
    steps = steps_of(options)
    if len(steps) != 1 or steps[0][0] != "scale":
        return nothing
    given = criteria(steps[0][1].rpartition(":")[0])
    glob = given.get("op") or given.get("name")
    if not isinstance(glob, str):
        return nothing
    return graph.tree.outermost(named_activities(graph, glob))


def _how_often(results: Results, rows: Ints) -> str:
    """Return how often activities run in a usual step, or in the job, in words."""
    acts = results.graph.activities
    usual = rows[np.isin(acts.step[rows], regular_steps(results.graph, results.graph.time)[0])]
    is_per_step = results.steps > 1 and len(usual) > 0
    counted = usual if is_per_step else rows
    step = acts.step[counted] if is_per_step else np.zeros(len(counted), np.int64)
    count = np.unique(np.stack((acts.rank[counted], step)), axis=1, return_counts=True)[1]
    often = int(np.median(count))
    times = "once" if often == 1 else plural(often, "time")
    ranks = " on each rank" if len(np.unique(acts.rank[counted])) > 1 else ""
    return f"{times}{' per step' * is_per_step}{ranks}"


def _around(graph: DependencyGraph, rows: Ints) -> str:
    """Return the name of what is around most of the time of activities: a user's function, a region, or an operator."""
    acts = graph.activities
    cause = acts.cause[rows]
    inner = np.where(acts.on_device[rows] & (cause >= 0), cause, rows)
    for wanted in _kinds_around(graph, rows):
        around = graph.tree.nearest(wanted, inner)
        names = acts.name[around]
        time = np.bincount(names[around >= 0], acts.duration[rows[around >= 0]], len(graph.names))
        if time.max(initial=0.0) > MOST * acts.duration[rows].sum():
            return graph.names[int(time.argmax())]
    return ""


def _kinds_around(graph: DependencyGraph, rows: Ints) -> Iterator[Mask]:
    """Yield what may be around activities: functions of user's files, annotations, then operators in no other one."""
    acts = graph.activities
    other = ~np.isin(acts.name, np.unique(acts.name[rows])) & ~acts.on_device
    frame = names_that(lambda name: is_source_frame(name) and not is_library_frame(name), graph.names)[acts.name]
    yield other & frame & (acts.kind == ActivityKind.PYTHON)
    yield other & (acts.kind == ActivityKind.ANNOTATION)
    yield marked(graph.tree.outermost(acts.kind == ActivityKind.OP), len(acts)) & other
