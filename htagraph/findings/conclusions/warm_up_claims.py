"""The claims on what a recording holds beside the steady job: start-up, odd steps, and no device work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.kinds import ActivityKind
from htagraph.findings.claim import Claim, Says
from htagraph.graph.measures.steps import uneven_steps
from htagraph.queries.change_scope import activities_of
from htagraph.queries.host_time import first_calls
from htagraph.queries.weights import initial
from htagraph.whatif.options import criteria

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath

__all__ = ["cut_short_claims", "device_missing_claims", "start_up_claims", "uneven_claims", "with_start_up"]

_CUT, _ALL_READ = ("truncated", "gzip_truncated"), "all events were read"
"""Issues of a file that ends early, and what their text says where only its end is missing."""
_MIN_PERCENT = 5.0
"""Percent of the path; chosen: less changes no verdict. Doubled, first calls of 5 to 10 % are not named."""


def start_up_claims(path: CriticalPath) -> list[Claim]:
    """Return how much of a path are first calls that later steps do not have."""
    calls = first_calls(path)
    share = 100 * sum(calls.values()) / max(path.makespan_ns, 1)
    if share < _MIN_PERCENT:
        return []
    acts, names = path.graph.activities, path.graph.names
    longest = sorted(calls, key=lambda call: -calls[call])
    facts = {
        "calls": tuple((names[acts.name[call]], calls[call] / 1000) for call in longest),
        "total_us": sum(calls.values()) / 1000, "each_us": {call: ns / 1000 for call, ns in calls.items()},
    }  # fmt: skip
    return [Claim(Says.START_UP, names[acts.name[longest[0]]], share, "percent", rows=tuple(longest), facts=facts)]


def cut_short_claims(graph: DependencyGraph) -> list[Claim]:
    """Return which ranks' files end early: what they lack, such as device work after a moment, looks like waiting."""
    cut = {issue.rank for issue in graph.issues if issue.what in _CUT and _ALL_READ not in issue.detail}
    if not cut:
        return []
    return [Claim(Says.CUT_SHORT, ", ".join(map(str, sorted(cut))), len(cut), "count", facts={"ranks": sorted(cut)})]


def uneven_claims(graph: DependencyGraph) -> list[Claim]:
    """Return which steps take far longer or shorter than the others, so that figures per step are of neither."""
    uneven = uneven_steps(graph)
    if uneven is None:
        return []
    low, high = uneven.odd_ns
    facts = {"odd": uneven.odd, "low_us": low / 1000, "high_us": high / 1000, "usual_us": uneven.usual_ns / 1000}
    return [Claim(Says.UNEVEN_STEPS, ", ".join(map(str, uneven.odd)), len(uneven.odd), "count", facts=facts)]


def device_missing_claims(graph: DependencyGraph) -> list[Claim]:
    """Return whether nothing of a device was recorded, though the job launched work or its machine has devices."""
    acts = graph.activities
    if acts.on_device.any() or not len(acts):
        return []
    launched = int(np.count_nonzero(acts.kind == ActivityKind.LAUNCH))
    known = any(trace.facts.devices for trace in graph.traces.values())
    return [Claim(Says.NO_DEVICE_WORK, "", launched, "count")] if launched or known else []


def with_start_up(graph: DependencyGraph, gains: list[Claim], started: list[Claim]) -> list[Claim]:
    """Return gains that know how much of them are first calls, µs, as fact ``start_up_us``.

    Args:
        graph: the job.
        gains: what gains most.
        started: result of `start_up_claims`.
    """
    if not started:
        return gains
    each_us = started[0].facts["each_us"]
    calls, parts = np.array(list(each_us), np.int64), np.array(list(each_us.values()))
    marked = []
    for claim in gains:
        us = 0.0
        if claim.facts["target"]:
            us = float(parts[activities_of(initial(graph), criteria(claim.facts["target"]))[calls]].sum())
        elif claim.facts["what"] == "phase":  # a class of work, of which first calls are a part
            us = float(parts.sum())
        marked.append(replace(claim, facts={**claim.facts, "start_up_us": us}))
    return marked
