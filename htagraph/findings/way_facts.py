"""Facts of a recording that show slow ways of working, from accumulation of gradients to random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import COMMUNICATION, OPERATORS, of_kinds
from htagraph.core.naming import exact_glob, is_compiling, names_that
from htagraph.core.statistics import MOST
from htagraph.findings.attention import attention_in
from htagraph.findings.finding import in_short
from htagraph.findings.limits import SHORT_LIST
from htagraph.findings.operator_ways import convolutions_in, random_numbers_in, usual_work
from htagraph.findings.phrases import and_list, plural, time_text
from htagraph.findings.reach import REACH
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.accumulation import repeated_reductions
from htagraph.whatif.options import criteria_text

__all__ = ["WayFact", "accumulation", "attention", "compiling", "convolutions", "list_of", "named_as", "random_numbers"]

WayFact: TypeAlias = tuple[str, tuple[tuple[str, str], ...], Array]
"""The recorded fact, as the start of a sentence; the changes that are closest to the better way, as options of the
command line with their values; the activities."""


def accumulation(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the all-reduces of gradients, where several are equal before each step of the optimizer.

    Example:
        >>> import htagraph as hg
        >>> list(accumulation(hg.load("data/demo")))
        []
    """
    reductions = repeated_reductions(graph)
    if reductions is None:
        return
    acts = graph.activities
    rows = reductions.activity
    names = np.unique(acts.name[rows]).tolist()
    has_name = np.isin(acts.name, names) & of_kinds(acts.kind, COMMUNICATION)
    is_reduction = np.isin(np.flatnonzero(has_name), rows)
    if is_reduction.mean() <= MOST:  # most of the name are for something else
        return
    text = f"Gradients are reduced {reductions.times:,} times before each step of the optimizer"
    kind = "communication" if acts.on_device[rows].all() else "host_communication"
    factor = f"{1 / reductions.times:.4f}"
    selections = [f"kind={kind},{named_as(graph, name)}" for name in names]
    changes = tuple(("--scale", f"{selection}:{factor}") for selection in selections)
    yield text, changes, rows


def compiling(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the regions in which code is compiled, if most steps have some.

    Example:
        >>> import htagraph as hg
        >>> list(compiling(hg.load("data/demo")))
        []
    """
    acts = graph.activities
    compiles = names_that(is_compiling, graph.names)[acts.name]
    compiles &= of_kinds(acts.kind, OPERATORS)
    rows = graph.tree.outermost(compiles)
    numbers = np.unique(acts.step[rows])
    steps = int((numbers >= 0).sum())
    count = len(graph.steps)
    if steps <= max(1, MOST * count):
        return
    changes = list[tuple[str, str]]()
    for name in np.unique(acts.name[rows]).tolist():
        region = exact_glob(graph.names[name])
        inside = criteria_text({"op": region})
        changes.append(("--scale", f"{inside}:0"))
    how_often = "every step"
    if steps < count:
        how_often = f"{steps:,} of {count:,} steps"
    yield (
        f"Code is compiled anew in {how_often}",
        tuple(changes),
        rows,
    )


def attention(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield attention whose scores are written to memory and read again by operators of their own."""
    scores = attention_in(graph)
    if not scores:
        return
    listed = list_of(graph, scores.names) if scores.names else "a softmax runs"
    often = plural(len(scores.softmax), "time")
    text = f"Between the two products of attention, {often}, {listed} on scores in memory"
    yield text, scores.changes, scores.operators


def convolutions(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield convolutions for which a library could choose among kernels."""
    chosen = convolutions_in(graph)
    if not chosen:
        return
    rows = chosen.rows
    on_host_us = float(graph.activities.duration[rows].mean()) / 1000
    ran_us = usual_work(graph, rows).ran_us or on_host_us
    names = np.unique(graph.activities.name[rows]).tolist()
    text = f"{list_of(graph, names)} {plural(len(rows), 'time')}, {time_text(ran_us)} each"
    stays = REACH["convolutions"].likely
    changes = tuple(("--scale", f"{criteria}:{stays}") for criteria in chosen.criteria)
    yield text, changes, rows


def random_numbers(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield random numbers that the host makes before they are copied."""
    numbers = random_numbers_in(graph)
    if not numbers:
        return
    rows = numbers.rows
    names = np.unique(graph.activities.name[rows]).tolist()
    often = plural(len(rows), "time")
    text = f"{list_of(graph, names)} on the host {often}, and a copy or conversion follows"
    changes = tuple(("--scale", f"{criteria}:0") for criteria in numbers.criteria)
    yield text, changes, rows


def named_as(graph: DependencyGraph, name: int) -> str:
    """Return the criterion that selects the activities of a name, an index into `graph.names`."""
    return criteria_text({"name": exact_glob(graph.names[name])})


def list_of(graph: DependencyGraph, names: Sequence[int]) -> str:
    """Return a few names, and how many more there are, with the verb.

    Args:
        graph: the job.
        names: indices into `graph.names`.
    """
    further = len(names) - SHORT_LIST
    further_names = [plural(further, "more name")] if further > 0 else []
    first = [in_short(graph.names[name]) for name in names[:SHORT_LIST]]
    verb = "runs" if len(names) == 1 else "run"
    return f"{and_list([*first, *further_names])} {verb}"
