"""Collectives of a step, as ProcessGroupNCCL, DistributedDataParallel and FSDP launch them."""

from htagraph.simulate.catalogue import COLLECTIVES, Kernel
from htagraph.simulate.codes import Category, Device, Op
from htagraph.simulate.job import Job
from htagraph.simulate.rank import Rank
from htagraph.simulate.template import Event, Instruction


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
    return exchange(rank, "dp", "all_gather", round(rank.job.layer_mb * 1e6), wait=False)


def arrive(rank: Rank, slot: int | None) -> None:
    """Let compute wait for gathered parameters."""
    if slot is not None:
        rank.build.wait("compute", slot, rank.job.call_us * 1e3)


def activation_bytes(job: Job) -> int:
    """Return the bytes of one activation tensor."""
    return round(job.activation_mb * 1e6)


def exchange(rank: Rank, role: str, kind: str, size: int, *, wait: bool = True) -> int:
    """Run a collective as ProcessGroupNCCL does: after all that is enqueued on the compute stream.

    With `wait`, the compute stream waits for it. Factors on the host costs are chosen; they shift host time only.

    Returns:
        The slot of the event recorded after it.
    """
    job, build = rank.job, rank.build
    names = COLLECTIVES[kind]
    call_ns = job.call_us * 1e3
    order = build.collective(role, kind)
    with build.named(names.op, rank.host_ns * 0.8):
        event = Event(Category.CPU_OP, "record_param_comms", 0, role=role, kind=kind, order=order, size=size)
        with build.op(event, rank.host_ns):
            build.call("cudaStreamIsCapturing", call_ns * 0.5)
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
        Event(Category.KERNEL, name, 0, kernel=kernel, role=role, kind=kind, order=order, size=size),
        Instruction(
            Op.COLLECTIVE,
            host_ns=job.launch_us * 2e3,  # chosen: twice the cost of a plain launch, 1e3 ns per µs
            latency_ns=job.launch_latency_us * 1e3,
            device=Device.COLLECTIVE,
            role=role,
            kind=kind,
            order=order,
            size=size,
        ),
        "cudaLaunchKernel" if old else "cudaLaunchKernelExC",
        role,
    )
