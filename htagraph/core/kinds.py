"""The closed vocabularies: what an activity is, what an edge means, what a gap is.

Members are stored as int8 codes in columns; `label` gives the word that users see.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from htagraph.core.arrays import Array, Mask, marked

__all__ = [
    "ABSENT_IN_COMPLETE_TRACES", "ADDED", "ANNOTATIONS", "BETWEEN", "BLOCKING", "CATEGORIES", "COMMUNICATION",
    "DEVICE", "DEVICE_WAITS", "DEVICE_WORK", "EDGES", "FETCHES", "FRAMES", "FULL_QUEUE", "HOST", "HOST_GAPS",
    "KERNELS", "LAUNCHES", "OPERATORS", "TRAITS", "TRANSFERS", "UNCERTAIN", "UNEXPLAINED", "ActivityKind", "Category",
    "EdgeKind", "EdgeMeaning", "GapKind", "KernelKind", "Provenance", "edges_with", "of_kinds",
]  # fmt: skip

Category: TypeAlias = Literal[
    "host", "launch", "computation", "communication", "waiting", "sync", "memory", "data_loading", "gap", "head",
    "other_work", "outside", "allocator",
]  # fmt: skip
"""What the time of a segment of a path was spent on; defined at `CriticalPath.to_frame`."""
CATEGORIES: Final[tuple[str, ...]] = get_args(Category)
"""All categories; elsewhere a category is its place here."""
FULL_QUEUE: Final = 1024
"""Kernels and copies that a CUDA stream's queue holds before a launch blocks: HTA's default, CUDA documents no number.
Doubled, only a queue twice as long counts as full; no length changes."""


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
        return self not in (*ANNOTATIONS, *ADDED, ActivityKind.DEVICE_OTHER)


class KernelKind(_Labelled):
    """What a kernel, a copy, or an operator that computes on the host does: kernels of a kind reach similar rates."""

    OTHER = 0
    GEMM = 1  # a product of matrices
    ATTENTION = 2
    CONVOLUTION = 3
    REDUCTION = 4  # norms, softmax, losses, sums
    ELEMENTWISE = 5
    INDEX = 6  # embeddings, gathers, scatters, sorts
    COPY = 7  # copies between memories, and layouts that change
    MEMSET = 8
    COLLECTIVE = 9
    OPTIMIZER = 10  # updates of parameters

    @property
    def is_product(self) -> bool:
        """Return whether operations, and not memory alone, may bound kernels of this kind."""
        return self in (KernelKind.GEMM, KernelKind.ATTENTION, KernelKind.CONVOLUTION)


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
    DATALOADER = 15  # a recorded call of a data loader takes its own time
    OUTSIDE = 16  # a thread waits for something outside of the recording


class Provenance(_Labelled):
    """How an edge is known."""

    OBSERVED = 0  # an id in the trace says so
    ORDER = 1  # the order of a thread or stream says so
    INFERRED = 2  # deduced from times and names


UNCERTAIN: Final = 70
"""Percent: an edge of less confidence is uncertain. It is reported, and predictions are also made without it. Chosen: a
90 % interval has to allow for what is wrong in one case of ten or more, and confidences are estimates themselves;
guesses have 30. Doubled, every inferred wait is left out, and intervals become as wide as the effect of all waits."""


class GapKind(_Labelled):
    """What happened between the moment that all predecessors allowed and the recorded moment."""

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
    OTHER_WORK = 10  # work was launched in time, its device ran nothing recorded, and the work started late
    FIRST_RUN = 11  # the same of the first run of a kernel, which may wait for the load of the kernel's code

    @property
    def is_unexplained(self) -> bool:
        """Return whether no dependency and no activity's known time explains the gap."""
        return self in (
            GapKind.LAUNCH_EXCESS, GapKind.STREAM_IDLE, GapKind.SYNC_RETURN, GapKind.THREAD_IDLE,
            GapKind.COLLECTIVE_EXCESS, GapKind.FIRST_RUN,
        )  # fmt: skip


class EdgeMeaning(NamedTuple):
    """What the edges of a kind mean to everything that asks. A new kind is decided here, in one row of `EDGES`."""

    gap: GapKind
    """The time by which a target comes later than such an edge allows."""
    category: str
    """Category of the critical path's time on such an edge; a BODY edge has the category of its activity."""
    cause: str
    """Why a rank is late by such an edge, as in `htagraph.queries.blame`; "" where an activity's own time says why."""
    traits: str
    """Words of `TRAITS`."""


TRAITS: Final = {
    "lane": "orders a thread or stream by itself, and is never part of a cycle",
    "transfer": "carries data between ranks: its lag is a transfer",
    "launch": "leads from a launch to device work",
    "blocking": "leads from device work to the return of a call that blocked for it",
    "device_wait": "leads from device work to the return of a call that asks to wait until it is over",
    "between": "its time is the gap behind it: nothing is at work between the two moments of a thread",
    "two_clocks": "leads from a device to its host",
    "enqueued": "leads to device work from its launch or from the work before it on its stream",
    "starts": "leads to the start of device work, after a pause of the device",
    "no_wait": "makes no device work wait: a launch, or time of a lane itself",
    "own": "its lag is an activity's own time",
    "call": "the call that blocks is the launch or copy itself",
    "work": "waits for device work: of its stream, of another one, of all, or as the user says",
    "waits": "waits for device work by an event, in a call that blocks, or at a full queue",
    "threads": "joins moments of different host threads",
    "fetches": "its time is spent on getting what is made elsewhere, and is no work of the host",
    "early": "may end before the record of what is waited for; a rule then gives a negative lag",
}
"""What can be true of a kind of edges, by the word that says so."""
EDGES: Final = {
    EdgeKind.HOST_ORDER: EdgeMeaning(GapKind.HOST_UNTRACED, "host", "", "lane between no_wait"),
    EdgeKind.BODY: EdgeMeaning(GapKind.SYNC_RETURN, "waiting", "", "lane no_wait own"),
    EdgeKind.LAUNCH: EdgeMeaning(GapKind.LAUNCH_EXCESS, "launch", "launch", "launch enqueued starts no_wait"),
    EdgeKind.STREAM: EdgeMeaning(GapKind.STREAM_IDLE, "waiting", "", "lane early enqueued starts work"),
    EdgeKind.AUTOGRAD: EdgeMeaning(GapKind.HOST_UNTRACED, "waiting", "", "threads"),
    EdgeKind.STEP: EdgeMeaning(GapKind.OTHER, "waiting", "", "two_clocks"),
    EdgeKind.USER: EdgeMeaning(GapKind.OTHER, "waiting", "", "work threads"),
    EdgeKind.EVENT_WAIT: EdgeMeaning(GapKind.STREAM_IDLE, "waiting", "", "starts work waits"),
    EdgeKind.HOST_SYNC: EdgeMeaning(
        GapKind.SYNC_RETURN, "sync", "sync", "blocking early device_wait two_clocks work waits"
    ),
    EdgeKind.MEMCPY_SYNC: EdgeMeaning(
        GapKind.SYNC_RETURN, "sync", "sync", "blocking early device_wait two_clocks call waits"
    ),
    EdgeKind.QUEUE_FULL: EdgeMeaning(GapKind.SYNC_RETURN, "waiting", "sync", "blocking early two_clocks call waits"),
    EdgeKind.THREAD: EdgeMeaning(GapKind.HOST_UNTRACED, "waiting", "host", "between early threads"),
    EdgeKind.COLLECTIVE: EdgeMeaning(GapKind.COLLECTIVE_EXCESS, "communication", "", "transfer"),
    EdgeKind.P2P: EdgeMeaning(GapKind.COLLECTIVE_EXCESS, "communication", "", "transfer"),
    EdgeKind.GRAPH: EdgeMeaning(GapKind.LAUNCH_EXCESS, "launch", "launch", "launch enqueued starts no_wait"),
    EdgeKind.DATALOADER: EdgeMeaning(GapKind.DATA_WAIT, "data_loading", "data_loading", "own threads fetches"),
    EdgeKind.OUTSIDE: EdgeMeaning(GapKind.SYNC_RETURN, "outside", "outside", "own threads fetches"),
}
"""By kind: what its edges mean."""


def edges_with(trait: str) -> tuple[EdgeKind, ...]:
    """Return the kinds of edges that have a trait.

    Example:
        >>> [kind.label for kind in edges_with("transfer")]
        ['collective', 'p2p']
    """
    return tuple(kind for kind in EdgeKind if trait in EDGES[kind].traits.split())


DEVICE: Final = tuple(kind for kind in ActivityKind if kind.on_device)
"""Kinds of activities on a device stream."""
HOST: Final = tuple(kind for kind in ActivityKind if not kind.on_device)
"""Kinds of activities on a host thread, and those that the graph adds."""
KERNELS: Final = (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION)
"""Kinds of kernels: no copies and sets."""
OPERATORS: Final = (ActivityKind.OP, ActivityKind.HOST_COMMUNICATION)
"""Kinds of operators, collectives on host threads included."""
ANNOTATIONS: Final = (ActivityKind.ANNOTATION, ActivityKind.STEP)
"""Kinds that only name a region of a thread: user annotations and steps."""
FRAMES: Final = (ActivityKind.OP, *ANNOTATIONS, ActivityKind.PYTHON)
"""Kinds in which others are called: operators, annotations, steps, Python frames."""
COMMUNICATION: Final = (ActivityKind.HOST_COMMUNICATION, ActivityKind.COMMUNICATION)
"""Kinds of communication, a rank's part in a collective, a send or a receive, on devices and on host threads."""
ADDED: Final = (ActivityKind.BOUNDARY, ActivityKind.JOIN)
"""Kinds that no event recorded: the graph adds them."""
DEVICE_WORK: Final = tuple(kind for kind in DEVICE if kind.is_work)
"""Kernels, copies and sets."""
TRANSFERS: Final = edges_with("transfer")
"""Kinds of edges whose lag is a transfer between ranks."""
LAUNCHES: Final = edges_with("launch")
"""Kinds of edges from a launch to device work."""
DEVICE_WAITS: Final = edges_with("device_wait")
"""Kinds of edges by which the host waits for its device; not those of full launch queues, which no call asks for."""
BLOCKING: Final = edges_with("blocking")
"""Kinds of edges from device work to the return of a call that blocked for it."""
FETCHES: Final = edges_with("fetches")
"""Kinds of edges by which a thread gets what a data loader, or something outside of the recording, makes."""
BETWEEN: Final = edges_with("between")
"""Kinds of edges whose time is the gap behind them."""
UNEXPLAINED: Final = tuple(kind for kind in GapKind if kind.is_unexplained)
"""Kinds of gaps that nothing explains."""
ABSENT_IN_COMPLETE_TRACES: Final = tuple(kind for kind in GapKind if kind.is_unexplained or kind == GapKind.OTHER_WORK)
"""Kinds of gaps that a trace of all work of all processes would not have."""
HOST_GAPS: Final = (GapKind.HOST_UNTRACED, GapKind.DATA_WAIT)
"""Kinds of gaps that are the host's time: its own code, or its wait for data."""


_FEW = 8
"""Up to so many kinds, bytes are compared with each, which numpy does many at once, while a table takes one after
another. Measured: 5 million bytes take 4 ms for one kind, 1 more for each other, and 22 by a table. Doubled, larger
sets take about as long as by a table. It changes times only."""


def of_kinds(column: Array, kinds: Iterable[IntEnum]) -> Mask:
    """Return which entries of a column of codes are those of some kinds, by a table of all codes.

    All are of one vocabulary of this module, and no code is negative.

    Example:
        >>> of_kinds(np.array([ActivityKind.OP, ActivityKind.MEMORY], np.int8), DEVICE).tolist()
        [False, True]
    """
    codes = list(kinds)
    if column.dtype == np.int8 and 0 < len(codes) <= _FEW:
        chosen = column == codes[0]
        for code in codes[1:]:
            chosen |= column == code
        return np.asarray(chosen)
    return np.asarray(marked(codes, np.iinfo(np.int8).max + 1)[column])  # codes are int8, and none is negative
