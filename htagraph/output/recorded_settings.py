"""What a recording lacks, and which setting of the profiler records it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_module_frame
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.arguments import argument_texts
from htagraph.trace.columns import Trace

__all__ = [
    "ONE_FILE_PER_RANK",
    "STEPS",
    "Check",
    "device_setting",
    "recorded_checks",
]

STEPS = "schedule=… and prof.step() in the loop"
"""The setting for steps."""
ONE_FILE_PER_RANK = "a file of every rank, recorded after init_process_group"
"""The setting for what happens between ranks."""
_SHAPE_KEYS = ("Input Dims", "Input dims")
"""Arguments of operators: today's profilers write the first, those before 2022 the second."""
_SAMPLE = 64
"""Operators whose arguments are looked at where a header does not say whether shapes were recorded. Chosen: with shapes
nearly every operator has them. Doubled, validation reads up to twice as many blocks of such files."""


class Check(NamedTuple):
    """Whether something can be answered."""

    analysis: str
    possible: bool
    missing: str
    """Why it is not possible."""
    full: bool = True
    limit: str = ""
    """What is missing where it is possible, but not in full."""
    setting: str = ""
    """With which setting of the profiler it would be, empty if with none."""


def device_setting(graph: DependencyGraph) -> str:
    """Return the setting for launches and device work, or nothing for a job without a device."""
    known = any(trace.facts.devices for trace in graph.traces.values())
    called = graph.activities.kind == ActivityKind.LAUNCH
    return _BOTH_ACTIVITIES if known or called.any() or graph.activities.on_device.any() else ""


def recorded_checks(graph: DependencyGraph) -> tuple[Check, ...]:
    """Return what the optional settings of the profiler have recorded, on how many ranks.

    Args:
        graph: a job that was read from files.
    """
    traces = [trace for _, trace in sorted(graph.traces.items())]
    return (
        _on_ranks("roofline, kernels by shape", [_has_shapes(graph, t) for t in traces], "input shapes", _SHAPES),
        _on_ranks("module_breakdown", [_has_modules(t) for t in traces], "frames of modules", "with_stack=True"),
        _on_ranks("memory", [len(t.instants) > 0 for t in traces], "allocations", "profile_memory=True"),
        *_sync_checks(traces),
    )


_BOTH_ACTIVITIES = "activities=[CPU, CUDA]"
_SHAPES = "record_shapes=True"
_SYNC = "_ExperimentalConfig(enable_cuda_sync_events=True)"


def _on_ranks(analysis: str, has: list[bool], what: str, setting: str) -> Check:
    some, lacking = any(has), len(has) - sum(has)
    limit = f"{lacking} of {len(has)} ranks have no {what}"
    return Check(analysis, some, f"no {what} were recorded", lacking == 0, limit, setting)


def _has_shapes(graph: DependencyGraph, trace: Trace) -> bool:
    """Return whether operators have shapes: as the header says, else as some of them have."""
    if trace.facts.has_shapes:
        return True
    acts = graph.activities
    operators = np.flatnonzero((acts.rank == trace.rank) & (acts.kind == ActivityKind.OP))
    sample = operators[:: max(1, len(operators) // _SAMPLE)][:_SAMPLE]
    return bool(len(sample)) and any(map(any, argument_texts(graph, _SHAPE_KEYS, sample).values()))


def _has_modules(trace: Trace) -> bool:
    """Return whether a file has frames of modules; a reader may have left them out of a large one."""
    return trace.facts.has_stacks or any(map(is_module_frame, trace.names))


def _sync_checks(traces: list[Trace]) -> tuple[Check, ...]:
    """Return whether synchronization was recorded, for jobs on CUDA: other profilers do not have it."""
    cuda = [trace for trace in traces if trace.facts.on_cuda and "kernel" in trace.categories]
    if not cuda:
        return ()
    has = ["cuda_sync" in trace.categories or _asked_for_sync(trace) for trace in cuda]
    limit = "streams that waited for each other are known from calls and times alone"
    return (Check("waits between streams", bool(cuda), "", all(has), limit, _SYNC),)


def _asked_for_sync(trace: Trace) -> bool:
    """Return whether `htagraph.profile` recorded synchronization, so that there was none if there is none."""
    return trace.facts.settings.get("sync_events") is True
