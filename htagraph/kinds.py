"""The closed vocabularies: what an activity is, what an edge means, what a gap is.

Members are stored as int8 codes in columns; `label` gives the word that users see.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ActivityKind", "EdgeKind", "GapKind", "Provenance"]


class _Labelled(IntEnum):
    @property
    def label(self) -> str:
        """Return the word that users read and type, such as ``"communication"``."""
        return self.name.lower()


class ActivityKind(_Labelled):
    """What an activity is. The first group runs on host threads, the second on device streams."""

    OP = 0  # a cpu_op
    ANNOTATION = 1  # a user annotation: a region of a thread, never work of its own
    STEP = 2  # a ProfilerStep annotation
    PYTHON = 3  # a Python or nn.Module frame
    LAUNCH = 4  # a runtime call that enqueues device work
    SYNC = 5  # a runtime call that blocks until device work has ended
    RECORD = 6  # cudaEventRecord and its likes
    WAIT = 7  # cudaStreamWaitEvent and its likes
    RUNTIME = 8  # any other runtime or driver call
    HOST_COMMUNICATION = 9  # a collective that runs on a host thread (gloo)
    BOUNDARY = 10  # the moment a step's annotation and all work launched in it are over; added by the graph
    COMPUTATION = 11
    COMMUNICATION = 12
    MEMORY = 13
    DEVICE_OTHER = 14  # a device event that is no work of its own: it frames or awaits other work

    @property
    def on_device(self) -> bool:
        """Return whether activities of this kind run on a device stream."""
        return self >= ActivityKind.COMPUTATION

    @property
    def is_work(self) -> bool:
        """Return whether an activity of this kind keeps its thread or stream busy; annotations only name a region."""
        return self not in (
            ActivityKind.ANNOTATION,
            ActivityKind.STEP,
            ActivityKind.BOUNDARY,
            ActivityKind.DEVICE_OTHER,
        )


class EdgeKind(_Labelled):
    """Why one moment cannot come before another; the name is the cause."""

    HOST_ORDER = 0
    BODY = 1
    LAUNCH = 2
    STREAM = 3
    AUTOGRAD = 4
    STEP = 5
    USER = 6  # brought by the user through DependencyGraph.from_frames


class Provenance(_Labelled):
    """How an edge is known."""

    OBSERVED = 0  # an id in the trace says so
    ORDER = 1  # the order of a thread or stream says so
    INFERRED = 2  # deduced from times and names


class GapKind(_Labelled):
    """What happened between the moment all predecessors allowed and the moment that was recorded."""

    NONE = 0
    HOST_UNTRACED = 1  # host code that no event covers, Python between ops as a rule
    LAUNCH_EXCESS = 2  # a launch took longer than its class needs at best
    STREAM_IDLE = 3  # a stream waited for something that no edge explains
    THREAD_IDLE = 4  # a thread's first activity started later than the trace
    TRACE_HEAD = 5  # nothing in the trace precedes this moment
