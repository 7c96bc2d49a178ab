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
    JOIN = 11  # the moment the members of a collective that others wait for have arrived; added by the graph
    COMPUTATION = 12
    COMMUNICATION = 13
    MEMORY = 14
    DEVICE_OTHER = 15  # a device event that is no work of its own: it frames or awaits other work

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
            ActivityKind.JOIN,
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
    EVENT_WAIT = 7
    HOST_SYNC = 8
    MEMCPY_SYNC = 9
    QUEUE_FULL = 10
    THREAD = 11
    COLLECTIVE = 12
    P2P = 13
    GRAPH = 14
    DATALOADER = 15


class Provenance(_Labelled):
    """How an edge is known."""

    OBSERVED = 0  # an id in the trace says so
    ORDER = 1  # the order of a thread or stream says so
    INFERRED = 2  # deduced from times and names


class GapKind(_Labelled):
    """What happened between the moment all predecessors allowed and the moment that was recorded."""

    NONE = 0
    HOST_UNTRACED = 1  # host code that no event covers, Python between ops as a rule
    LAUNCH_EXCESS = 2  # work started later after its launch than any pause of the device explains
    STREAM_IDLE = 3  # a stream waited for something that no edge explains
    SYNC_RETURN = 4  # a blocking call returned later than what it waited for explains
    THREAD_IDLE = 5  # a worker thread waited for something that no edge explains
    DATA_WAIT = 6  # the data loader was waited for
    COLLECTIVE_EXCESS = 7  # a collective took longer than its members' arrivals and transfers explain
    OTHER = 8  # between activities that the user brought, or at a moment that the graph added
    TRACE_HEAD = 9  # nothing in the trace precedes this moment
