"""Whether a change repeats another change: it is about nothing else, or adds next to nothing to its gain."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce

import numpy as np

from htagraph.core.arrays import Mask
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.findings.change import steps_of
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import activities_of
from htagraph.queries.weights import initial
from htagraph.whatif.options import CHANGES, criteria
from htagraph.whatif.scenario import Scenario
from htagraph.whatif.together import Offer, savings_of

__all__ = ["offer_of", "repeats"]


def repeats(results: Results, options: Sequence[str], first: Sequence[str]) -> bool:
    """Return whether a change is about nothing but what another one is about, or adds next to nothing to its gain.

    Args:
        results: the results of the job.
        options: the options of the command line that predict the change.
        first: the options that predict the other change.

    Example:
        >>> import htagraph as hg
        >>> results = Results(hg.load("data/demo"))
        >>> halved = ("--scale", "op=aten::mm:0.5")
        >>> repeats(results, halved, ("--scale", "op=aten::mm:0"))
        True
    """
    graph = results.warm_graph
    subject = _subject(graph, options)
    if subject.any() and not (subject & ~_subject(graph, first)).any():
        return True
    offers = [offer_of("the first change", first), offer_of("the change", options)]
    savings = savings_of(graph, offers)
    if len(savings.changes) < len(offers) or not savings.may_be((0, 1)):
        return False
    added_ns = savings.of((0, 1)) - max(savings.of((0,)), savings.of((1,)))
    makespan_ns = results.makespan_ns / max(results.steps, 1)
    is_smaller = savings.of((1,)) <= savings.of((0,))
    return is_smaller and 100 * added_ns < MIN_PERCENT * makespan_ns


def offer_of(name: str, options: Sequence[str]) -> Offer:
    """Return a change for sets of changes, given its options.

    Example:
        >>> offer_of("a free loader", ["--free-dataloader"]).name
        'a free loader'
    """
    steps = steps_of(options)

    def apply(scenario: Scenario) -> Scenario:
        return reduce(lambda so_far, step: CHANGES[step[0]].read(step[1]).apply(so_far), steps, scenario)

    return Offer(name, tuple(options), apply)


def _subject(graph: DependencyGraph, options: Sequence[str]) -> Mask:
    """Return which activities a change makes shorter; none where no criteria say so."""
    acts = graph.activities
    subject = np.zeros(len(acts), np.bool_)
    for option, value in steps_of(options):
        if option == "network":
            subject |= of_kinds(acts.kind, COMMUNICATION)
        elif option == "scale":
            with suppress(SelectionError):
                subject |= activities_of(initial(graph), criteria(value.rpartition(":")[0]))[:-1]
    return subject
