"""Which events HTA keeps: those that the host began before the last step, and the device work they launched."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.hta.shapes.names import DEVICE_CATEGORIES, HOST_CATEGORIES, is_step
from htagraph.trace.columns import Trace

__all__ = ["device_side", "in_window", "is_analysed", "is_mtia", "step_names"]

_DEVICE_SYNCS = ("Event Sync", "Context Sync")  # on no stream, and the device's all the same

Mask = npt.NDArray[np.bool_]


def step_names(trace: Trace) -> set[str]:
    """Return the names of the profiler steps in a trace."""
    return {trace.names[name] for name in np.unique(trace.events.name) if is_step(trace.names[name])}


def is_analysed(trace: Trace) -> Mask:
    """Return which events HTA reads at all: those with a category, but not the profiler's own spans."""
    return ~trace.in_categories("", "Trace")


def is_mtia(trace: Trace) -> bool:
    """Return whether the trace was recorded on an MTIA device."""
    return "mtia:hccl" in trace.facts.backend


def device_side(trace: Trace) -> Mask:
    """Return which events HTA counts as the device's: those on a stream with a correlation, and device waits."""
    events = trace.events
    syncs = [code for code, name in enumerate(trace.names) if name in _DEVICE_SYNCS]
    return ((events.arg("stream") >= 0) & (events.arg("correlation") >= 0)) | np.isin(events.name, syncs)


def in_window(trace: Trace, *, include_last: bool) -> Mask:
    """Return which events of a trace with several steps HTA keeps.

    The host's that begin before the last step does (with `include_last` all: HTA means to stop at the step's end, but
    compares times of which only one is relative), and the device's that are correlated to one of those. On MTIA, the
    host's between the first step's start and the last one's end. A rank without steps of its own keeps all.
    """
    events = trace.events
    marks = np.isin(events.name, [code for code, name in enumerate(trace.names) if is_step(name)])
    analysed = is_analysed(trace)
    if not (marks & analysed).any():
        return analysed
    if is_mtia(trace):
        return _mtia_window(trace, marks) & analysed
    device = device_side(trace)
    steps = marks & ~device
    host = ~device
    if not include_last:
        host &= events.start < events.start[steps].max(initial=np.iinfo(np.int64).min)
    correlation = events.arg("correlation")
    return (host | (device & np.isin(correlation, correlation[host]))) & analysed


def _mtia_window(trace: Trace, marks: Mask) -> Mask:
    events = trace.events
    host = trace.in_categories(*HOST_CATEGORIES)
    steps = marks & host
    first = events.start[steps].min(initial=np.iinfo(np.int64).max)
    last = events.end[steps].max(initial=np.iinfo(np.int64).min)
    host &= (events.start >= first) & (events.end <= last)
    correlation = events.arg("correlation")
    host_correlations = correlation[host & (correlation >= 0)]
    device = trace.in_categories(*DEVICE_CATEGORIES)
    return host | (device & np.isin(correlation, host_correlations))
