"""What HTA 0.6.1 makes of names, and which events it keeps.

HTA keeps the events that the host began before the last step, and the device work that these events launched.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.naming import RUNTIME_CATEGORIES
from htagraph.trace.columns import Trace

__all__ = [
    "DEVICE_CATEGORIES", "DEVICE_SYNCS", "HOST_CATEGORIES", "device_side", "in_window", "is_analysed", "is_mtia",
    "is_step", "memory_type", "shorten", "step_names", "step_of", "stream_of_events",
    "under_main",
]  # fmt: skip

HOST_CATEGORIES = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function", "mtia_runtime")
DEVICE_SYNCS = ("Event Sync", "Context Sync")
"""Waits for the device: on no stream in the file, but the device's all the same."""
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events")

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
_MEMORY = re.compile(r"(hip)?Mem(cpy|set)|dma")


def is_step(name: str) -> bool:
    """Return whether HTA takes an event of this name for a profiler step.

    Example:
        >>> is_step("ProfilerStep#7"), is_step("step 7")
        (True, False)
    """
    return name.startswith("ProfilerStep")


def step_of(name: str) -> int:
    """Return N of ``ProfilerStep#N``, -1 of other names.

    Example:
        >>> step_of("ProfilerStep#7")
        7
    """
    match = _STEP.match(name)
    return int(match[1]) if match else -1


def memory_type(name: str) -> str:
    """Return the kind of copy or set that HTA sums up bandwidths by.

    Example:
        >>> memory_type("Memcpy DtoH (Device -> Pinned)"), memory_type("Memset (Device)")
        ('Memcpy DtoH', 'Memset')
    """
    if name.startswith("Memset"):
        return "Memset"
    return name[:11] if name.startswith("Memcpy") else "Memcpy Unknown"


def shorten(name: str) -> str:
    """Return a kernel's name without template arguments, parameters and return type; copies and sets stay as they are.

    Example:
        >>> shorten("void at::native::fill<float>(float*, int)")
        'at::native::fill'
    """
    if _MEMORY.match(name) or ("<" not in name and "(" not in name):
        return name
    kept = ""
    for letter in name.replace("->", ""):
        if letter in ">)":  # back to where the bracket was opened; a name that opens none loses all before
            kept = kept[: max(0, kept.rfind("<" if letter == ">" else "("))]
        else:
            kept += letter
    return kept.split(" ")[-1]


def step_names(trace: Trace) -> set[str]:
    """Return the names of the profiler steps in a trace."""
    return {trace.names[name] for name in np.unique(trace.events.name) if is_step(trace.names[name])}


def under_main(
    above: Array, host: Mask, lane: Array, start: Array, end: Array, named: Callable[[Callable[[str], bool]], Mask]
) -> Array:
    """Return the parents of rows with the outermost of the backward thread under the main thread's annotation.

    So HTA links them, if exactly one thread has steps and one other has names of autograd: they lie in the annotation
    ``## backward ##`` that encloses them, or in the step where nothing is annotated so.

    Args:
        above: the parent of each row, -1 for none.
        host: which rows lie on threads.
        lane: the number of each row's thread or stream.
        start: of each row.
        end: of each row.
        named: returns which rows have a name that passes a test.
    """
    steps = host & named(is_step)
    main = np.unique(lane[steps])
    engine = np.setdiff1d(lane[host & named(lambda name: "autograd::" in name)], main)
    if len(main) != 1 or len(engine) != 1:
        return above
    regions = np.flatnonzero(host & (lane == main[0]) & named(lambda name: name.startswith("## backward ##")))
    tops, above = np.flatnonzero(host & (lane == engine[0]) & (above < 0)), above.copy()
    for region in (regions if len(regions) else np.flatnonzero(steps)).tolist():
        inside = (start[tops] >= start[region]) & (end[tops] <= end[region])
        above[tops[inside]] = region
        tops = tops[~inside]
    return above


def is_analysed(trace: Trace) -> Mask:
    """Return which events HTA reads at all: events with a category, without the profiler's own spans."""
    return ~trace.in_categories("", "Trace")


def is_mtia(trace: Trace) -> bool:
    """Return whether the trace was recorded on an MTIA device."""
    return "mtia:hccl" in trace.facts.backend


def stream_of_events(trace: Trace) -> Array:
    """Return the stream that each event ran on, -1 for none: a call of a runtime only names the stream it is about."""
    return np.where(trace.in_categories(*RUNTIME_CATEGORIES), -1, trace.events.arg("stream"))


def device_side(trace: Trace) -> Mask:
    """Return which events HTA counts as the device's: events on a stream with a correlation, and device waits."""
    events = trace.events
    syncs = [code for code, name in enumerate(trace.names) if name in DEVICE_SYNCS]
    return ((stream_of_events(trace) >= 0) & (events.arg("correlation") >= 0)) | np.isin(events.name, syncs)


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
