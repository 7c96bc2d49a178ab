"""One step's program of one kind of rank, compiled once: instructions, and the events they will leave."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from zlib import crc32

from htagraph.simulate.catalogue import COLLECTIVES, Kernel
from htagraph.simulate.codes import Category, DeviceWork, Host, Op

NONE = -1
"""No instruction, no kernel."""
MAIN, BACKWARD = 0, 1  # the host threads
_BEFORE_CHILDREN = 0.6
"""Share of an operator's own time before its children. Chosen: setup takes longer than return."""
_KEYS_PER_SECTION_BITS = 24
"""Of a draw's key. Chosen: no section has 2**24 instructions."""
_CBID = {  # CUPTI's numbers of the functions (cupti_runtime_cbid.h)
    "cudaLaunchKernel": 211, "cudaLaunchKernelExC": 430, "cudaGraphLaunch": 311, "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51, "cudaEventRecord": 135, "cudaStreamWaitEvent": 147, "cudaEventSynchronize": 137,
    "cudaStreamSynchronize": 131, "cudaDeviceSynchronize": 165, "cudaStreamIsCapturing": 317, "cuLaunchKernel": 307,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; events, streams and slots are indices, durations nominal ns."""

    op: Op
    call: int = NONE  # the event of the call, op or annotation
    work: int = NONE  # the event of the device work
    stream: int = NONE
    slot: int = NONE  # of the recorded or awaited event
    key: int = 0  # of its draws
    host: Host = Host.NONE
    host_ns: float = 0.0
    latency_ns: float = 0.0
    device: DeviceWork = DeviceWork.NONE
    device_ns: float = 0.0
    name: str = ""  # of the innermost op
    optimizer: bool = False
    role: str = ""  # of the process group
    kind: str = ""  # of the collective
    order: int = NONE  # of the collective in its group and step
    size: int = 0  # of its message, bytes


@dataclass(frozen=True, slots=True)
class TemplateEvent:
    """What is known of an event before the run."""

    category: Category
    name: str
    lane: int  # thread (host) or stream index (device)
    parent: int = NONE  # innermost cpu_op around it
    external: int = NONE  # ordinal of its own external id
    correlation: int = NONE  # ordinal
    sequence: int = NONE  # ordinal of the autograd sequence number
    forward: int = NONE  # the forward op's event, on backward ops
    flow: int = NONE  # ordinal of the forward-backward flow it starts or ends
    cbid: int = 0
    kernel: Kernel | None = None
    size: int = 0  # bytes
    shape: str = ""
    role: str = ""
    kind: str = ""  # of collective, or of sync
    order: int = NONE
    record: int = NONE  # the record's call event, on waits and event syncs
    stream: int = NONE  # the stream a call concerns
    slot: int = NONE
    frame: int = NONE  # ordinal of a python frame
    frame_parent: int = NONE
    graph: int = 0  # number of the CUDA graph that work is a node of
    node: int = 0  # its number in the graph


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled program."""

    instructions: tuple[Instruction, ...]
    events: tuple[TemplateEvent, ...]
    externals: int  # how many external ids a run uses
    correlations: int
    sequences: int
    frames: int
    collectives: dict[str, int]  # how many per role
    annotated: tuple[tuple[int, int, int], ...]  # (annotation, first work, last work) per stream it launched to


@dataclass
class Builder:
    """Compiles a program: each method appends what a rank does next."""

    streams: dict[str, int]
    with_stack: bool = False
    instructions: list[Instruction] = field(default_factory=list)
    events: list[TemplateEvent] = field(default_factory=list)
    externals: int = 0
    correlations: int = 0
    sequences: int = 0
    flows: int = 0
    frames: int = 0
    slots: int = 0
    thread: int = MAIN
    optimizing: bool = False
    collectives: dict[str, int] = field(default_factory=dict)
    _open: dict[int, list[int]] = field(default_factory=lambda: {MAIN: [], BACKWARD: []})
    _annotated: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    _records: dict[int, int] = field(default_factory=dict)
    _key: int = 0
    _captured: int = NONE  # the call that launches the CUDA graph that is open
    _graphs: int = 0
    _nodes: int = 0  # of the graph that is open
    _latency: float = 0.0  # of its launch, ns

    # places

    @property
    def captured(self) -> bool:
        """Whether what follows is part of a CUDA graph."""
        return self._captured != NONE

    def section(self, label: str) -> None:
        """Name the part of the program that follows: the keys of its draws depend on nothing outside it."""
        self._key = crc32(label.encode()) << _KEYS_PER_SECTION_BITS

    def _next_key(self) -> int:
        self._key += 1
        return self._key

    def _innermost(self, category: Category) -> int:
        stack = self._open[self.thread]
        return next((e for e in reversed(stack) if self.events[e].category is category), NONE)

    def _add(self, instruction: Instruction) -> None:
        parent = self._innermost(Category.CPU_OP)
        name = self.events[parent].name if parent != NONE else ""
        self.instructions.append(replace(instruction, name=name, optimizer=self.optimizing))

    def _event(self, event: TemplateEvent) -> int:
        self.events.append(event)
        return len(self.events) - 1

    # host

    def work(self, ns: float, host: Host = Host.PROGRAM, op: Op = Op.WORK) -> None:
        """Spend host time that no event of its own covers."""
        if self.captured:
            return
        self._add(Instruction(op, key=self._next_key(), host=host, host_ns=ns))

    @contextmanager
    def _span(self, event: TemplateEvent, before_ns: float, after_ns: float) -> Iterator[int]:
        if self.captured:
            yield NONE
            return
        index = self._event(event)
        self._open[self.thread].append(index)
        timed = event.category is not Category.PYTHON_FUNCTION
        key = self._next_key() if timed else 0
        self._add(Instruction(Op.BEGIN, call=index, key=key, host=Host.PROGRAM, host_ns=before_ns))
        yield index
        key = self._next_key() if timed else 0
        self._add(Instruction(Op.END, call=index, key=key, host=Host.PROGRAM, host_ns=after_ns))
        self._open[self.thread].pop()

    @contextmanager
    def op(self, event: TemplateEvent, ns: float) -> Iterator[int]:
        """Open a cpu_op (or annotation) with `ns` of its own time, `_BEFORE_CHILDREN` of it before its children."""
        self.externals += 1
        lane = replace(event, lane=self.thread, parent=self._innermost(Category.CPU_OP), external=self.externals)
        with self._span(lane, ns * _BEFORE_CHILDREN, ns * (1 - _BEFORE_CHILDREN)) as index:
            yield index

    def named(self, name: str, ns: float, *, shape: str = "") -> AbstractContextManager[int]:
        """Open a cpu_op by name."""
        return self.op(TemplateEvent(Category.CPU_OP, name, MAIN, shape=shape), ns)

    def annotation(self, name: str, ns: float) -> AbstractContextManager[int]:
        """Open a user_annotation by name."""
        return self.op(TemplateEvent(Category.USER_ANNOTATION, name, MAIN), ns)

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """Open a Python frame, if stacks are recorded; it takes no time."""
        if not self.with_stack:
            yield
            return
        parent = self._innermost(Category.PYTHON_FUNCTION)
        above = self.events[parent].frame if parent != NONE else NONE
        event = TemplateEvent(Category.PYTHON_FUNCTION, name, self.thread, frame=self.frames, frame_parent=above)
        self.frames += 1
        with self._span(event, 0.0, 0.0):
            yield

    def spawn(self, ns: float) -> None:
        """Hand over to the backward thread."""
        self.work(ns, Host.THREAD, Op.SPAWN)
        self.thread = BACKWARD

    def join(self, ns: float) -> None:
        """Hand back to the main thread."""
        self.work(ns, Host.THREAD, Op.JOIN)
        self.thread = MAIN

    # runtime calls

    def _call(self, name: str, kind: str = "", stream: int = NONE, record: int = NONE, slot: int = NONE) -> int:
        self.correlations += 1 + len(self.instructions) % 3
        category = Category.CUDA_DRIVER if name.startswith("cu") and name[2].isupper() else Category.CUDA_RUNTIME
        inside, own = self._innermost(Category.CPU_OP), self.correlations
        event = TemplateEvent(category, name, self.thread, inside, correlation=own, cbid=_CBID[name], kind=kind)
        return self._event(replace(event, stream=stream, record=record, slot=slot))

    def _work(self, event: TemplateEvent, call: int) -> int:
        launched = self.events[call]
        index = self._event(replace(event, parent=launched.parent, correlation=launched.correlation))
        for annotation in self._open[self.thread]:
            if self.events[annotation].category is Category.USER_ANNOTATION:
                key = (annotation, event.lane)
                self._annotated[key] = (self._annotated.get(key, (index, index))[0], index)
        return index

    @contextmanager
    def graph(self, latency_ns: float) -> Iterator[None]:
        """Launch all work that is enqueued inside as one CUDA graph; its operators take no time and leave no events.

        The first launch inside says what the call costs.
        """
        self._captured, self._latency = self._call("cudaGraphLaunch", stream=self.streams["compute"]), latency_ns
        self._graphs += 1
        self._nodes = 0
        yield
        self._captured = NONE

    def _node(self, event: TemplateEvent, instruction: Instruction, lane: int) -> None:
        self._nodes += 1
        work = self._work(replace(event, lane=lane, graph=self._graphs, node=self._nodes), self._captured)
        one = replace(instruction, call=self._captured, work=work, stream=lane, key=self._next_key())
        if self._nodes == 1:
            one = replace(one, op=Op.LAUNCH, latency_ns=self._latency, host=Host.LAUNCH)
        else:
            one = replace(one, op=Op.NODE, latency_ns=self._latency, host_ns=0.0)
        self._add(one)

    def launch(self, event: TemplateEvent, instruction: Instruction, api: str, stream: str = "compute") -> None:
        """Enqueue one work: `event` says what, `instruction` its durations."""
        lane = self.streams[stream]
        if self.captured:
            self._node(event, instruction, lane)
            return
        call = self._call(api, stream=lane)
        work = self._work(replace(event, lane=lane), call)
        op = Op.COLLECTIVE if instruction.kind else Op.LAUNCH
        self._add(
            replace(instruction, op=op, call=call, work=work, stream=lane, key=self._next_key(), host=Host.LAUNCH)
        )

    def hold(self, return_ns: float) -> None:
        """Make the copy just launched block its call until it has ended."""
        last = self.instructions[-1]
        self._add(Instruction(Op.HOLD, last.call, last.work, last.stream, key=self._next_key(), latency_ns=return_ns))

    def call(self, name: str, ns: float) -> None:
        """Make a runtime call that neither enqueues nor waits."""
        self._own(Op.CALL, self._call(name), ns)

    def _own(self, op: Op, call: int, ns: float, stream: int = NONE, slot: int = NONE, latency_ns: float = 0.0) -> None:
        """Append what a call does that costs `ns` of its own."""
        self._add(
            Instruction(
                op, call, stream=stream, slot=slot, key=self._next_key(), host=Host.CALL, host_ns=ns,
                latency_ns=latency_ns,
            )
        )  # fmt: skip

    def record(self, stream: str, ns: float) -> int:
        """Record an event on a stream and return its slot."""
        slot = self.slots
        self.slots += 1
        lane = self.streams[stream]
        index = self._call("cudaEventRecord", stream=lane, slot=slot)
        self._records[slot] = index
        self._own(Op.RECORD, index, ns, lane, slot)
        return slot

    def wait(self, stream: str, slot: int, ns: float) -> None:
        """Let what follows on a stream wait for a recorded event."""
        lane = self.streams[stream]
        record = self._records[slot]
        index = self._call("cudaStreamWaitEvent", "Stream Wait Event", lane, record, slot)
        self._own(Op.WAIT, index, ns, lane, slot)

    def synchronize(self, what: Op, ns: float, return_ns: float, *, stream: str = "compute", slot: int = NONE) -> None:
        """Block the thread until a stream, the device or an event (slot) is done."""
        name, kind = {
            Op.EVENT_SYNC: ("cudaEventSynchronize", "Event Sync"),
            Op.STREAM_SYNC: ("cudaStreamSynchronize", "Stream Sync"),
            Op.DEVICE_SYNC: ("cudaDeviceSynchronize", "Context Sync"),
        }[what]
        lane = self.streams[stream] if what is Op.STREAM_SYNC else NONE
        index = self._call(name, kind, lane, self._records.get(slot, NONE), slot)
        self._own(what, index, ns, lane, slot, return_ns)

    def collective(self, role: str, kind: str) -> int:
        """Count one more collective of a role and return its order in the step."""
        if kind not in COLLECTIVES:
            message = f"no collective is called {kind!r}; known are {', '.join(COLLECTIVES)}"
            raise ValueError(message)
        order = self.collectives.get(role, 0)
        self.collectives[role] = order + 1
        return order

    def finish(self) -> Template:
        """Return the compiled program."""
        annotated = tuple((a, first, last) for (a, _), (first, last) in self._annotated.items())
        return Template(
            tuple(self.instructions), tuple(self.events), self.externals + 1, self.correlations + 4, self.sequences,
            self.frames, self.collectives, annotated,
        )  # fmt: skip
