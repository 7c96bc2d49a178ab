"""Jobs whose ranks meet by other things than one collective: stores, trees, barriers watched, objects, split backwards.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import rpc

from benchmarks.recorded.communication import one_forward_one_backward
from benchmarks.recorded.job import Job

PORT = 29_555
"""The port of stores and of RPC. Each job has a network of its own, so any is free."""


def told(job: Job) -> None:
    """Rank 0 indexes and says so by a store (`kind`: tcp, file); the others train and say when they have."""
    store: dist.Store
    if job.get("kind", "tcp") == "tcp":
        store = dist.TCPStore("127.0.0.1", PORT, is_master=job.rank == 0)
    else:
        store = dist.FileStore(str(job.folder / "told"), job.ranks)
    x = torch.zeros(4, 32)
    index, train = job.operator("index"), job.operator("train")
    for step in job.steps():
        if job.rank == 0:
            index(x, job["index_ms"])
            store.set(f"ready/{step}", "1")
            if step:
                store.wait([f"over/{step - 1}"])
            continue
        store.wait([f"ready/{step}"])
        train(x, job["train_ms"] * job.factor(step))
        if store.add(f"count/{step}", 1) == job.ranks - 1:
            store.set(f"over/{step}", "1")


def counted(job: Job) -> None:
    """Ranks meet at a barrier of their own: each counts up in a store, the last one sets the key that all wait for."""
    store = dist.TCPStore("127.0.0.1", PORT, is_master=job.rank == 0)
    x = torch.zeros(4, 32)
    compute, update = job.operator("compute"), job.operator("update")
    for step in job.steps():
        compute(x, job["compute_ms"] * job.factor(step))
        if store.add(f"count/{step}", 1) == job.ranks:
            store.set(f"all/{step}", "1")
        store.wait([f"all/{step}"])
        update(x, job.get("update_ms", 4))


def tree(job: Job) -> None:
    """Add up over a binary tree of sends and receives, rank 0 at its root, and send the sum down again."""
    mine, theirs = torch.zeros(job["elements"]), torch.zeros(job["elements"])
    spans = [1 << bit for bit in range(job.ranks.bit_length() - 1)]
    parent = next((job.rank - span for span in spans if job.rank & span), None)
    children = [job.rank + span for span in spans if not job.rank & (2 * span - 1) and job.rank + span < job.ranks]
    compute, add = job.operator("compute"), job.operator("add")
    for step in job.steps():
        compute(mine, job["compute_ms"] * job.factor(step))
        for child in children:
            dist.recv(theirs, child)
            add(theirs, job.get("add_ms", 3))
        if parent is not None:
            dist.send(mine, parent)
            dist.recv(mine, parent)
        for child in reversed(children):
            dist.send(mine, child)


def watched(job: Job) -> None:
    """Compute, then meet at a monitored barrier, where rank 0 hears from each rank and lets all go on."""
    x = torch.zeros(4, 32)
    compute, update = job.operator("compute"), job.operator("update")
    for step in job.steps():
        compute(x, job["compute_ms"] * job.factor(step))
        dist.monitored_barrier()
        update(x, job.get("update_ms", 5))


def reported(job: Job) -> None:
    """Gather objects at rank 0, which reports, then broadcasts the next learning rates as objects; others evaluate."""
    x, metrics = torch.zeros(4, 32), {"losses": list(range(job.get("numbers", 500)))}
    compute, report, evaluate = (job.operator(name) for name in ("compute", "report", "evaluate"))
    for step in job.steps():
        compute(x, job["compute_ms"] * job.factor(step))
        everyone: list[Any] | None = [None] * job.ranks if job.rank == 0 else None
        dist.gather_object(metrics, everyone, 0)
        if job.rank == 0:
            report(x, job["report_ms"])
        else:
            evaluate(x, job["evaluate_ms"])
        rates: list[Any] = [{"rate": 0.1}]
        dist.broadcast_object_list(rates, 0)


def split_backward(job: Job) -> None:
    """Run 1F1B where gradients of inputs go back at once and gradients of weights are taken after that."""
    last, x = job.ranks - 1, torch.zeros(job.get("elements", 256))
    arrived, stage_ms = torch.zeros_like(x), job["stage_ms"][job.rank]
    forward, inputs, weights = (job.operator(name) for name in ("stage_forward", "stage_inputs", "stage_weights"))
    for _ in job.steps():
        sent: list[Any] = []
        for what, _ in one_forward_one_backward(job.rank, job.ranks, job.get("micro", 4)):
            source, target = (job.rank - 1, job.rank + 1) if what == "forward" else (job.rank + 1, job.rank - 1)
            if 0 <= source <= last:
                dist.recv(arrived, source)
            done = (forward if what == "forward" else inputs)(x, stage_ms)
            if 0 <= target <= last:
                sent.append(dist.isend(done, target))
            if what == "backward":
                weights(x, job["weights_ms"][job.rank])
        for work in sent:
            work.wait()


def looped(job: Job) -> None:
    """Run each micro-batch twice through all ranks, as an interleaved pipeline: chunk 0 of all ranks, then chunk 1."""
    last, micro = job.ranks - 1, job.get("micro", 4)
    x, arrived = torch.zeros(job["elements"]), torch.zeros(job["elements"])
    chunk, update = job.operator("chunk"), job.operator("update")
    for _ in job.steps():
        sent: list[Any] = []
        for turn in range(2):
            for _ in range(micro):
                if job.rank or turn:
                    dist.recv(arrived, (job.rank - 1) % job.ranks)
                done = chunk(x, job["chunk_ms"][job.rank])
                if job.rank < last or not turn:
                    sent.append(dist.isend(done, (job.rank + 1) % job.ranks))
        for work in sent:
            work.wait()
        update(x, job.get("update_ms", 4))


def sharded_updates(job: Job) -> None:
    """Reduce-scatter each bucket beside backward, update its shard, gather it again; forward waits bucket by bucket."""
    buckets = range(job.get("buckets", 3))
    whole = [torch.zeros(job["elements"] * job.ranks) for _ in buckets]
    shards = [torch.zeros(job["elements"]) for _ in buckets]
    forward, backward, update = (job.operator(name) for name in ("forward", "backward", "update"))
    gathers: list[Any] = [None for _ in buckets]
    for step in job.steps():
        for bucket in buckets:
            if gathers[bucket] is not None:
                gathers[bucket].wait()
            forward(shards[bucket], job["forward_ms"] * job.factor(step))
        reduced = []
        for bucket in reversed(buckets):
            backward(shards[bucket], job["backward_ms"] * job.factor(step))
            reduced.append(dist.reduce_scatter_tensor(shards[bucket], whole[bucket], async_op=True))
        for bucket, work in zip(reversed(buckets), reduced, strict=True):
            work.wait()
            update(shards[bucket], job["update_ms"])
            gathers[bucket] = dist.all_gather_into_tensor(whole[bucket], shards[bucket], async_op=True)
    for work in gathers:
        work.wait()


def rotating(job: Job) -> None:
    """Mixture of experts where in each step another rank gets most of the tokens and takes longest."""
    attention, expert = job.operator("attention"), job.operator("expert")
    for step in job.steps():
        counts = [job["many"] if (rank + step) % job.ranks == 0 else job["few"] for rank in range(job.ranks)]
        mine = counts[job.rank]
        x, arrived = torch.zeros(sum(counts)), torch.zeros(mine * job.ranks)
        for _ in range(job.get("layers", 2)):
            attention(x, job["attention_ms"])
            dist.all_to_all_single(arrived, x, [mine] * job.ranks, counts)
            expert(arrived, job["expert_ms"] * mine / job["many"])
            dist.all_to_all_single(x, arrived, counts, [mine] * job.ranks)


def two_lanes(job: Job) -> None:
    """A thread of each rank measures and all-reduces in a group of its own, beside training and its all-reduce."""
    group = dist.new_group()
    gradients, metrics = torch.zeros(job["elements"]), torch.zeros(job.get("metrics", 1_000))
    train, measure, update = (job.operator(name) for name in ("train", "measure", "update"))

    def measured() -> None:
        measure(metrics, job["measure_ms"])
        dist.all_reduce(metrics, group=group)

    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            coming = thread.submit(measured)
            train(gradients, job["train_ms"] * job.factor(step))
            dist.all_reduce(gradients)
            coming.result()
            update(gradients, job.get("update_ms", 4))


def snapshots(job: Job) -> None:
    """A thread of rank 0 writes each `every` steps; before the next one, all ranks meet when it is over."""
    x, written = torch.zeros(job.get("elements", 4_000)), list[Future[torch.Tensor]]()
    train, write = job.operator("train"), job.operator("write")
    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            train(x, job["train_ms"] * job.factor(step))
            dist.all_reduce(x)
            if step % job["every"]:
                continue
            while written:
                written.pop().result()
            dist.barrier()
            if job.rank == 0:
                written.append(thread.submit(write, x, job["write_ms"]))


def staged(job: Job) -> None:
    """Pass one tensor from rank to rank by send and recv, each taking `stage_ms`; the first one needs nobody."""
    x = torch.zeros(job.get("elements", 4_000))
    stage = job.operator("stage")
    for _ in job.steps():
        if job.rank:
            dist.recv(x, job.rank - 1)
        stage(x, job["stage_ms"][job.rank])
        if job.rank + 1 < job.ranks:
            dist.send(x, job.rank + 1)


def looked_up(ms: float) -> torch.Tensor:
    """Answer a remote call: the operator ``timed::lookup``."""
    return torch.ops.timed.lookup(torch.zeros(4, 32), ms)


def remote(job: Job) -> None:
    """Trainers ask rank 0 for rows by RPC, one call ahead, while they train; rank 0 answers in threads of its own."""
    job.operator("lookup")
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=job.get("threads", 2), init_method=f"tcp://127.0.0.1:{PORT}",
        _transports=["uv"], _channels=["basic"],
    )  # fmt: skip
    rpc.init_rpc(f"rank{job.rank}", rank=job.rank, world_size=job.ranks, rpc_backend_options=options)
    x = torch.zeros(4, 32)
    train, prepare, serve = (job.operator(name) for name in ("train", "prepare", "serve"))
    for _ in job.steps():
        if job.rank == 0:
            serve(x, job.get("serve_ms", 2))
            dist.barrier()
            continue
        prepare(x, job.get("prepare_ms", 3))
        rows = [rpc.rpc_async("rank0", looked_up, args=(job["lookup_ms"],)) for _ in range(job.get("calls", 2))]
        train(x, job["train_ms"])
        for each in rows:
            each.wait()
        dist.barrier()
    rpc.shutdown()
