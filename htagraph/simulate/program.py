"""What a rank does in one step: forward, backward, AdamW, as in PyTorch's eager mode, with its collectives.

The factors on `rank.host_ns` and the ns of annotations are chosen, to give the proportions of real traces; doubling one
doubles the host time of that op. Kernel durations are shares of `Job.kernel_us`, see `htagraph.simulate.catalogue`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from htagraph.simulate import catalogue
from htagraph.simulate.catalogue import COLLECTIVES, Kernel, LayerOp
from htagraph.simulate.codes import Category, DeviceWork, Host, Op
from htagraph.simulate.job import Job, RankPlace
from htagraph.simulate.template import MAIN, NONE, Builder, Instruction, Template, TemplateEvent

_COPY_START_NS, _MEMSET_START_NS = 1.2e3, 1.1e3
"""ns that a copy or a memset takes without its bytes. Chosen: the shortest ones of A100 traces take about 1 µs;
doubling them delays small copies."""
_MEMSET_B_PER_NS = 1000
"""Bandwidth of a memset, B/ns (TB/s): about that of A100 memory."""

_GRAPH_LATENCY = 2.0
"""How many times as long a CUDA graph takes to start as a kernel. Chosen: 10 µs on an A100, where a kernel takes 5;
doubling it delays each graph that finds the device idle by another 10 µs."""

STREAMS = {  # stream ids: 7 is the default stream of CUDA traces; the rest are chosen
    "compute": 7, "dp": 20, "tp": 24, "forward_in": 28, "forward_out": 32, "backward_in": 36, "backward_out": 40,
}  # fmt: skip
STREAM_INDEX = {name: index for index, name in enumerate(STREAMS)}


class Done(NamedTuple):
    """A forward op that backward must undo."""

    op: LayerOp
    sequence: int
    event: int  # innermost forward event
    flow: int
    reduce: bool


@dataclass
class Rank:
    """What the functions below share while they compile one rank's step."""

    job: Job
    place: RankPlace
    build: Builder

    @property
    def host_ns(self) -> float:
        """Host work of an op, ns."""
        return self.job.host_us_per_op * 1e3

    def python(self, share: float = 1.0) -> None:
        """Spend host time in Python, between ops."""
        self.build.work(self.job.python_us * 1e3 * share)

    def graph(self, part: str) -> AbstractContextManager[None]:
        """Return what launches a part of the step as one CUDA graph, if the job does that with this part."""
        if self.job.cuda_graph != part:
            return nullcontext()
        return self.build.graph(self.job.launch_latency_us * 1e3 * _GRAPH_LATENCY)

    def kernel(self, kernel: Kernel, us: float, api: str = "cudaLaunchKernel") -> None:
        """Launch a compute kernel that lasts `us` microseconds."""
        event = TemplateEvent(Category.KERNEL, kernel.name, 0, kernel=kernel)
        self._launch(event, self.job.launch_us * 1e3, DeviceWork.COMPUTE, us * 1e3, api)

    def copy(self, name: str, size: int) -> None:
        """Launch a copy between host and device."""
        event = TemplateEvent(Category.GPU_MEMCPY, f"Memcpy {name}", 0, size=size)
        device_ns = _COPY_START_NS + size / self.job.pcie_gb_s
        self._launch(event, self.job.launch_us * 1.4e3, DeviceWork.MEMCPY, device_ns, "cudaMemcpyAsync")

    def memset(self, size: int) -> None:
        """Launch a memset."""
        event = TemplateEvent(Category.GPU_MEMSET, "Memset (Device)", 0, size=size)
        device_ns = _MEMSET_START_NS + size / _MEMSET_B_PER_NS
        self._launch(event, self.job.launch_us * 0.8e3, DeviceWork.MEMSET, device_ns, "cudaMemsetAsync")

    def _launch(self, event: TemplateEvent, host_ns: float, device: DeviceWork, device_ns: float, api: str) -> None:
        latency_ns = self.job.launch_latency_us * 1e3
        one = Instruction(Op.LAUNCH, host_ns=host_ns, latency_ns=latency_ns, device=device, device_ns=device_ns)
        self.build.launch(event, one, api)


STEP_NAME = "ProfilerStep#"


def step(job: Job, place: RankPlace) -> Template:
    """Compile one training step of a rank."""
    build = Builder(STREAM_INDEX, job.with_stack)
    rank = Rank(job, place, build)
    build.section("step")
    with build.annotation(STEP_NAME, 4e3), build.frame("train.py(61): train_step"):
        inputs(rank)
        schedule(rank)
        optimizer(rank)
        report(rank)
    build.section("between steps")
    rank.python()
    return build.finish()


def epilogue(job: Job) -> Template:
    """Compile what the profiler does after the last step: wait for the device."""
    build = Builder(STREAM_INDEX)
    build.section("epilogue")
    build.synchronize(Op.DEVICE_SYNC, job.sync_us * 1e3, job.sync_return_us * 1e3)
    return build.finish()


def inputs(rank: Rank) -> None:
    """Wait for the data loader, clear the gradients, copy the batch to the device."""
    job, build = rank.job, rank.build
    build.section("inputs")
    with build.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 2e3):
        build.work(job.loader_us * 1e3, Host.LOADER)
    rank.python()
    with build.annotation("Optimizer.zero_grad#AdamW.zero_grad", 6e3):
        rank.python()
    rank.python()
    if rank.place.stage == 0:
        pageable = job.input_memory == "pageable"
        memory = "Pageable" if pageable else "Pinned"
        with (
            build.named("aten::to", rank.host_ns * 0.3),
            build.named("aten::_to_copy", rank.host_ns * 0.4),
            build.named("aten::copy_", rank.host_ns * 0.6, shape="[8, 512], [8, 512]"),
        ):
            rank.copy(f"HtoD ({memory} -> Device)", round(job.batch_mb * 1e6))
            if pageable:
                build.hold(job.sync_return_us * 1e3)
                build.synchronize(Op.STREAM_SYNC, job.sync_us * 1e3, job.sync_return_us * 1e3)
    with build.named("aten::zeros", rank.host_ns * 0.5), build.named("aten::zero_", rank.host_ns * 0.4):
        rank.memset(4096)
    rank.python()


def schedule(rank: Rank) -> None:
    """Run the micro-batches: one forward and backward, or a pipeline's 1F1B order."""
    job = rank.job
    stages = job.sizes[2]
    if stages == 1:
        backward(rank, 0, forward(rank, 0), last=True)
        return
    warm = min(stages - 1 - rank.place.stage, job.microbatches)
    waiting = [(m, forward(rank, m)) for m in range(warm)]
    for micro in range(warm, job.microbatches):
        waiting.append((micro, forward(rank, micro)))
        oldest, done = waiting.pop(0)
        backward(rank, oldest, done, last=oldest == job.microbatches - 1)
    for micro, done in waiting:
        backward(rank, micro, done, last=micro == job.microbatches - 1)


def forward(rank: Rank, micro: int) -> list[Done]:
    """Run the stage's layers forward, and return what backward has to undo."""
    job, build, roles = rank.job, rank.build, rank.place.roles
    done: list[Done] = []
    build.section(f"micro-batch {micro} forward begins")
    wrapped = "DistributedDataParallel.forward" if "dp" in roles else "forward"
    with build.annotation(wrapped, 5e3), build.frame("nn.Module: Transformer_0"):
        if job.broadcast_buffers and "dp" in roles:
            exchange(rank, "dp", "broadcast", 65536)
        if "forward_in" in roles:
            exchange(rank, "forward_in", "recv", activation_bytes(job))
        else:
            forward_op(rank, catalogue.EMBED, done)
            if job.all_to_all and "dp" in roles:
                exchange(rank, "dp", "all_to_all", activation_bytes(job))
        layers = job.stage_layers(rank.place.stage)
        with rank.graph("forward"):
            run_layers(rank, micro, layers, done)
        build.section(f"micro-batch {micro} forward ends")
        if "forward_out" in roles:
            exchange(rank, "forward_out", "send", activation_bytes(job), wait=False)
        else:
            for op in catalogue.LOSS:
                forward_op(rank, op, done)
    return done


def run_layers(rank: Rank, micro: int, layers: range, done: list[Done]) -> None:
    """Run layers forward; with fsdp, gather one layer ahead, and block while too many are gathered."""
    build = rank.build
    gathered = {layers[0]: gather(rank, layers[0], f"{micro} forward")}
    used: dict[int, int] = {}
    for layer in layers:
        if layer + 1 in layers:
            freed = used.get(layer + 1 - rank.job.gathers_ahead)
            if freed is not None:
                build.synchronize(Op.EVENT_SYNC, rank.job.sync_us * 1e3, rank.job.sync_return_us * 1e3, slot=freed)
            gathered[layer + 1] = gather(rank, layer + 1, f"{micro} forward")
        build.section(f"micro-batch {micro} layer {layer} forward")
        slot = gathered.pop(layer)
        arrive(rank, slot)
        with build.frame(f"nn.Module: Block_{layer}"):
            for op in catalogue.LAYER:
                forward_op(rank, op, done)
        if slot is not None:
            used[layer] = build.record("compute", rank.job.call_us * 1e3)


def forward_op(rank: Rank, op: LayerOp, done: list[Done]) -> None:
    """Run one differentiable op: its nested ops, its kernel, and the all-reduce of tensor parallelism."""
    job, build = rank.job, rank.build
    module = f"nn.Module: {op.module}_{len(done)}" if op.module else f"torch/nn/functional.py(90): {op.path[0][6:]}"
    rank.python()
    with build.frame(module):
        sequence, flow = build.sequences, NONE if build.captured else build.flows
        build.sequences += 1
        build.flows += not build.captured
        event = nested(rank, op, op.path, sequence, flow)
    done.append(Done(op, sequence, event, flow, "tp" in rank.place.roles and op.reduce_backward))
    if op.reduce_forward and "tp" in rank.place.roles:
        exchange(rank, "tp", "all_reduce", activation_bytes(job))


def nested(rank: Rank, op: LayerOp, path: tuple[str, ...], sequence: int, flow: int) -> int:
    """Run the ops of `path`, each inside the one before; return the innermost one's event."""
    job, build = rank.job, rank.build
    inner = len(path) == 1
    event = TemplateEvent(Category.CPU_OP, path[0], MAIN, sequence=sequence, shape=op.shape, flow=flow if inner else -1)
    with build.op(event, rank.host_ns * (1.0 if inner else 0.35)) as index:
        if path[0] == "aten::linear":
            transpose(rank)
        if not inner:
            return nested(rank, op, path[1:], sequence, flow)
        triton = job.triton and path[0] == "aten::gelu"
        kernel = catalogue.TRITON_GELU if triton else op.kernel
        rank.kernel(kernel, op.share * job.kernel_us, "cuLaunchKernel" if triton else "cudaLaunchKernel")
        return index


def transpose(rank: Rank) -> None:
    """Turn a weight: three ops on the host that launch nothing."""
    cost = rank.host_ns * 0.12
    named = rank.build.named
    with named("aten::t", cost), named("aten::transpose", cost), named("aten::as_strided", cost):
        pass


def backward(rank: Rank, micro: int, done: list[Done], *, last: bool) -> None:
    """Run backward of one micro-batch on the backward thread; the last one reduces the gradients."""
    job, build, roles = rank.job, rank.build, rank.place.roles
    build.section(f"micro-batch {micro} backward begins")
    rank.python()
    if "backward_in" in roles:
        exchange(rank, "backward_in", "recv", activation_bytes(job))
    else:
        with build.named("aten::ones_like", rank.host_ns * 0.4), build.named("aten::fill_", rank.host_ns * 0.6):
            rank.kernel(catalogue.FILL, 0.01 * job.kernel_us + 1.0)
    with build.frame("torch/autograd/__init__.py(200): backward"):
        build.spawn(job.thread_wake_us * 1e3)
        backward_thread(rank, micro, done, last=last)
        build.join(job.thread_wake_us * 1e3)
    if "backward_out" in roles:
        exchange(rank, "backward_out", "send", activation_bytes(job), wait=False)


def backward_thread(rank: Rank, micro: int, done: list[Done], *, last: bool) -> None:
    """Undo the forward ops in reverse order, reducing gradients as their buckets fill."""
    job, build = rank.job, rank.build
    layers = job.stage_layers(rank.place.stage)
    size = len(catalogue.LAYER)
    embedded = rank.place.stage == 0
    full = bucket_ends(job, layers)
    gathered: dict[int, int | None] = {}
    reduced: list[int] = []
    for position in range(len(done) - 1, -1, -1):
        inside, index = divmod(position - embedded, size)
        layer = layers[min(max(inside, 0), len(layers) - 1)]
        build.section(f"micro-batch {micro} backward op {position - embedded - len(layers) * size} of layer {layer}")
        if index == size - 1 and 0 <= inside < len(layers):
            ahead = (layer, layer - 1) if job.free_gathers else (layer,)
            for wanted in ahead:
                if wanted in layers and wanted not in gathered:
                    gathered[wanted] = gather(rank, wanted, f"{micro} backward")
            arrive(rank, gathered[layer])
        first = index == 0 and position >= embedded
        filled = full.get(layer, 0) if first and last else 0
        reduced += undo(rank, done[position], filled)
    build.section(f"micro-batch {micro} backward ends")
    if job.all_to_all and embedded and "dp" in rank.place.roles:
        exchange(rank, "dp", "all_to_all", activation_bytes(job))
    for slot in reduced:
        build.wait("compute", slot, job.call_us * 1e3)


def undo(rank: Rank, done: Done, filled: int) -> list[int]:
    """Run one autograd node and the accumulation of its gradients; reduce `filled` bytes at its end."""
    build = rank.build
    node = f"autograd::engine::evaluate_function: {done.op.node}"
    outer = TemplateEvent(Category.CPU_OP, node, 0, sequence=done.sequence, forward=done.event)
    inner = TemplateEvent(Category.CPU_OP, done.op.node, 0, sequence=done.sequence, forward=done.event, flow=done.flow)
    with build.op(outer, rank.host_ns * 0.5), build.op(inner, rank.host_ns * 0.3):
        for op in done.op.backward:
            with build.named(op.name, rank.host_ns * 0.8, shape=op.shape):
                rank.kernel(op.kernel, op.share * rank.job.kernel_us)
        if done.reduce:
            exchange(rank, "tp", "all_reduce", activation_bytes(rank.job))
    slots: list[int] = []
    for parameter in range(done.op.parameters):
        slots += accumulate(rank, filled if parameter == done.op.parameters - 1 else 0)
    return slots


def accumulate(rank: Rank, filled: int) -> list[int]:
    """Add one parameter's gradient; if that fills a bucket (of `filled` bytes), reduce it."""
    build, job = rank.build, rank.job
    name = "torch::autograd::AccumulateGrad"
    with (
        build.named(f"autograd::engine::evaluate_function: {name}", rank.host_ns * 0.4),
        build.named(name, rank.host_ns * 0.3),
    ):
        with build.named("aten::add_", rank.host_ns * 0.6):
            rank.kernel(catalogue.ADD, 0.03 * job.kernel_us + 1.0)
        if not filled:
            return []
        kind = "all_reduce" if job.data_strategy == "ddp" else "reduce_scatter"
        return [exchange(rank, "dp", kind, filled, wait=False)]


def report(rank: Rank) -> None:
    """Read the loss on the host."""
    job, build = rank.job, rank.build
    build.section("report")
    rank.python()
    if job.synchronize == "step":
        build.synchronize(Op.DEVICE_SYNC, job.sync_us * 1e3, job.sync_return_us * 1e3)
    if job.item == "none" or rank.place.stage != job.sizes[2] - 1:
        return
    with build.named("aten::item", rank.host_ns * 0.3), build.named("aten::_local_scalar_dense", rank.host_ns * 0.7):
        pageable = job.item == "pageable"
        rank.copy(f"DtoH (Device -> {'Pageable' if pageable else 'Pinned'})", 4)
        if pageable:
            build.hold(job.sync_return_us * 1e3)
        build.synchronize(Op.STREAM_SYNC, job.sync_us * 1e3, job.sync_return_us * 1e3)
    rank.python()


def optimizer(rank: Rank) -> None:
    """Run AdamW over the stage's parameters."""
    job, build = rank.job, rank.build
    build.section("optimizer")
    count = len(job.stage_layers(rank.place.stage))
    rank.python()
    if job.clip_grad:
        with build.named("aten::_foreach_norm", rank.host_ns):
            rank.kernel(catalogue.MULTI_TENSOR, 0.2 * job.kernel_us)
    build.optimizing = True
    frame = build.frame("torch/optim/adamw.py(210): step")
    with build.annotation("Optimizer.step#AdamW.step", 8e3), frame, rank.graph("optimizer"):
        {"foreach": foreach, "loop": loop, "fused": fused}[job.optimizer](rank, count)
    build.optimizing = False


def foreach(rank: Rank, layers: int) -> None:
    """Update several tensors per kernel."""
    for name in catalogue.FOREACH:
        rank.python()
        with rank.build.named(name, rank.host_ns * 2):
            for _ in range((layers + 3) // 4):
                rank.kernel(catalogue.MULTI_TENSOR, 0.25 * rank.job.kernel_us)


def loop(rank: Rank, layers: int) -> None:
    """Update one tensor after the other: many small kernels, which the host cannot launch fast enough."""
    for _ in range(layers * sum(op.parameters for op in catalogue.LAYER)):
        for name, kernel in catalogue.LOOP:
            rank.python(0.3)
            with rank.build.named(name, rank.host_ns * 0.7):
                rank.kernel(kernel, 2.4)


def fused(rank: Rank, layers: int) -> None:
    """Update everything with few kernels."""
    with rank.build.named("aten::_fused_adamw_", rank.host_ns * 3):
        for _ in range((layers + 3) // 4):
            rank.kernel(catalogue.FUSED_ADAM, 0.8 * rank.job.kernel_us)


def bucket_ends(job: Job, layers: range) -> dict[int, int]:
    """Return the bytes to reduce once the first op of a layer is undone, by layer."""
    size = round(job.layer_mb * 1e6)
    if job.sizes[0] == 1:
        return {}
    if job.data_strategy == "fsdp":
        return dict.fromkeys(layers, size)
    count = min(job.buckets, len(layers))
    ends: dict[int, int] = {}
    for bucket in range(count):
        low, high = len(layers) * bucket // count, len(layers) * (bucket + 1) // count
        ends[layers[low]] = size * (high - low)
    return ends


def gather(rank: Rank, layer: int, when: str) -> int | None:
    """Gather a layer's parameters ahead of their use (fsdp); return the slot of the event recorded after it."""
    if rank.job.data_strategy != "fsdp" or "dp" not in rank.place.roles:
        return None
    rank.build.section(f"gather layer {layer} for {when}")
    is_first = layer == rank.job.stage_layers(rank.place.stage)[0] and when.endswith("forward")
    is_free = rank.job.free_gathers and not is_first  # the first one waits for the optimizer
    return exchange(rank, "dp", "all_gather", round(rank.job.layer_mb * 1e6), wait=False, is_free=is_free)


def arrive(rank: Rank, slot: int | None) -> None:
    """Let compute wait for gathered parameters."""
    if slot is not None:
        rank.build.wait("compute", slot, rank.job.call_us * 1e3)


def activation_bytes(job: Job) -> int:
    """Return the bytes of one activation tensor."""
    return round(job.activation_mb * 1e6)


def exchange(rank: Rank, role: str, kind: str, size: int, *, wait: bool = True, is_free: bool = False) -> int:
    """Run a collective as ProcessGroupNCCL does: after all that is enqueued on the compute stream.

    With `is_free`, it waits for nothing. With `wait`, the compute stream waits for it. Factors on the host costs are
    chosen; they shift host time only. It returns the slot of the event recorded after it.
    """
    job, build = rank.job, rank.build
    names = COLLECTIVES[kind]
    call_ns = job.call_us * 1e3
    order = build.collective(role, kind)
    with build.named(names.op, rank.host_ns * 0.8):
        event = TemplateEvent(Category.CPU_OP, "record_param_comms", 0, role=role, kind=kind, order=order, size=size)
        with build.op(event, rank.host_ns):
            build.call("cudaStreamIsCapturing", call_ns * 0.5)
            if not is_free:
                before = build.record("compute", call_ns)
                build.wait(role, before, call_ns)
            with build.annotation(names.annotation, rank.host_ns * 0.3):
                launch_collective(rank, role, kind, order, size)
            after = build.record(role, call_ns)
    if wait:
        build.wait("compute", after, call_ns)
    return after


def launch_collective(rank: Rank, role: str, kind: str, order: int, size: int) -> None:
    """Launch this rank's kernel of a collective."""
    job = rank.job
    old = job.era in ("2021", "2022")
    name = COLLECTIVES[kind].kernel_before if old else COLLECTIVES[kind].kernel
    kernel = Kernel(name, (24, 1, 1), (544, 1, 1), 96, 87568)  # chosen launch shape; no time depends on it
    rank.build.launch(
        TemplateEvent(Category.KERNEL, name, 0, kernel=kernel, role=role, kind=kind, order=order, size=size),
        Instruction(
            Op.COLLECTIVE,
            host_ns=job.launch_us * 2e3,  # chosen: twice the cost of a plain launch, 1e3 ns per µs
            latency_ns=job.launch_latency_us * 1e3,
            device=DeviceWork.COLLECTIVE,
            role=role,
            kind=kind,
            order=order,
            size=size,
        ),
        "cudaLaunchKernel" if old else "cudaLaunchKernelExC",
        role,
    )
