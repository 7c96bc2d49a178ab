"""Jobs whose ranks wait for each other as people write it by hand: hooks, averages, roots, groups, shards, handles."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.profiler import record_function

from benchmarks.recorded.job import WARM_UP, Job, pause
from benchmarks.recorded.training import Model


def hooks(job: Job) -> None:
    """All-reduce each gradient from a hook while backward goes on, and wait for the handles last to first.

    A rank may call `time.sleep` before its forward (`sleep_ms`). Rank 0 may evaluate each `evaluate_every` steps and
    tells the others by a broadcast in each step whether they go on.
    """
    model, works = Model(job), list[dist.Work]()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda it: works.append(dist.all_reduce(it.grad, async_op=True)))
    batch, go_on = torch.zeros(job.get("batch", 4), job.get("width", 32)), torch.ones(1)
    for step in job.steps():
        if job.own("sleep_ms"):
            time.sleep(job.own("sleep_ms") / 1000)
        model(batch).pow(2).mean().backward()
        while works:
            works.pop().wait()
        model.zero_grad(set_to_none=False)
        if job.get("evaluate_every"):
            if job.rank == 0 and step % job["evaluate_every"] == 0 and job["evaluate_ms"]:
                with record_function("evaluate"):
                    job.operator("score")(batch, job["evaluate_ms"] / 2)
                    pause(job["evaluate_ms"] / 2)
            dist.broadcast(go_on, 0)


def local_sgd(job: Job) -> None:
    """Each rank trains on its own; each `every` steps the parameters are averaged by an all-reduce."""
    model = Model(job)
    batch = torch.zeros(4, job.get("width", 32))
    for step in job.steps():
        model.slow_down(job.factor(step))
        model(batch).pow(2).mean().backward()
        if step % job["every"] == WARM_UP % job["every"]:  # aligns the recorded steps
            with record_function("average"):
                dist.all_reduce(torch.cat([each.detach().flatten() for each in model.parameters()]))
        model.zero_grad()


def root_feeds(job: Job) -> None:
    """Rank 0 prepares and broadcasts, and waits for nobody; the other ranks compute with what they get."""
    parameters = torch.zeros(job["elements"])
    for step in job.steps():
        if job.rank == 0:
            job.operator("prepare")(parameters, job["prepare_ms"])
        dist.broadcast(parameters, 0)
        if job.rank:
            job.operator("compute")(parameters, job["compute_ms"] * job.factor(step))


def stale(job: Job) -> None:
    """Reduce-scatter gradients and wait for them in the next step only, before the update."""
    whole, parts = torch.zeros(job["elements"] * job.ranks), [torch.zeros(job["elements"]) for _ in range(2)]
    work = None
    for step in job.steps():
        job.operator("forward")(whole, job["forward_ms"] * job.factor(step))
        if work is not None:
            work.wait()
        job.operator("update")(parts[step % 2], job.get("update_ms", 3))
        work = dist.reduce_scatter_tensor(parts[step % 2], whole, async_op=True)
    if work is not None:
        work.wait()


def gathered(job: Job) -> None:
    """Gather shards beside an operator that does not need them, and wait before the operator that does."""
    shard, whole = torch.zeros(job["elements"]), torch.zeros(job["elements"] * job.ranks)
    for step in job.steps():
        work = dist.all_gather_into_tensor(whole, shard, async_op=True)
        job.operator("train")(shard, job["train_ms"] * job.factor(step))
        work.wait()
        job.operator("use")(whole, job.get("use_ms", 8))


def subgroups(job: Job) -> None:
    """Ranks of a job work in groups of two that never meet: an operator, an all-reduce in the group, twice per step."""
    groups = [dist.new_group([first, first + 1]) for first in range(0, job.ranks, 2)]
    x = torch.zeros(job["elements"])
    for step in job.steps():
        for what in ("encode", "decode"):
            job.operator(what)(x, job["op_ms"] * job.factor(step))
            dist.all_reduce(x, group=groups[job.rank // 2])


def chain(job: Job) -> None:
    """Run a pipeline of `micro` micro-batches with isend and blocking recv, one call each; all forwards come first."""
    x, stage_ms, last = torch.zeros(job.get("elements", 256)), job["stage_ms"][job.rank], job.ranks - 1
    for step in job.steps():
        sent = []
        for what in ("forward", "backward"):
            onward = 1 if what == "forward" else -1
            source, target = job.rank - onward, job.rank + onward
            for _ in range(job.get("micro", 2)):
                arrived = torch.empty_like(x)
                if 0 <= source <= last:
                    dist.recv(arrived, source)
                done = job.operator(f"stage_{what}")(arrived, stage_ms * job.factor(step))
                if 0 <= target <= last:
                    sent.append((dist.isend(done, target), done))
        for work, _ in sent:
            work.wait()
        job.operator("update")(x, job.get("update_ms", 3))


def barriers(job: Job) -> None:
    """Ranks whose times vary compute and meet at a barrier (`barrier`), but exchange nothing."""
    x = torch.zeros(64)
    for step in job.steps():
        job.operator("compute")(x, job["op_ms"] * job.factor(step))
        if job.get("barrier", True):
            dist.barrier()
        job.operator("write")(x, job.get("write_ms", 3))


def shards(job: Job) -> None:
    """Reduce-scatter each layer's gradients beside the next layer's backward, update the shard, gather the layers."""
    n, layers = job["elements"], job.get("layers", 3)
    whole, part = [torch.zeros(n * job.ranks) for _ in range(layers)], [torch.zeros(n) for _ in range(layers)]
    for step in job.steps():
        job.operator("forward")(part[0], job["forward_ms"] * job.factor(step))
        works = []
        for gradient, shard in zip(whole, part, strict=True):
            job.operator("backward")(shard, job["backward_ms"] * job.factor(step))
            works.append(dist.reduce_scatter_tensor(shard, gradient, async_op=True))
        for work in works:
            work.wait()
        job.operator("update")(part[0], job.get("update_ms", 4))
        for gradient, shard in zip(whole, part, strict=True):
            dist.all_gather_into_tensor(gradient, shard)


def halo(job: Job) -> None:
    """Ranks in a line exchange edges with their neighbours by batched isend and irecv, then compute."""
    edge = torch.zeros(job["elements"])
    neighbours = [each for each in (job.rank - 1, job.rank + 1) if 0 <= each < job.ranks]
    arriving = {each: torch.empty_like(edge) for each in neighbours}
    for step in job.steps():
        calls = [dist.P2POp(dist.isend, edge, each) for each in neighbours]
        calls += [dist.P2POp(dist.irecv, arriving[each], each) for each in neighbours]
        works = dist.batch_isend_irecv(calls)
        job.operator("inner")(edge, job.get("inner_ms", 6))
        for work in works:
            work.wait()
        job.operator("border")(edge, job["border_ms"] * job.factor(step))


def handles(job: Job) -> None:
    """All-reduce beside the operators after it and wait for all at the end; with `blocking`, for each at once."""
    x, gradients = torch.zeros(64), [torch.zeros(job["elements"]) for _ in range(job.get("buckets", 3))]
    for step in job.steps():
        works = []
        for gradient in gradients:
            job.operator("backward")(x, job["op_ms"] * job.factor(step))
            works.append(dist.all_reduce(gradient, async_op=True))
            if job.get("blocking"):
                works[-1].wait()
        job.operator("log")(x, job.get("log_ms", 10))
        for work in works:
            work.wait()
        job.operator("update")(x, job.get("update_ms", 3))


def served(job: Job) -> None:
    """Rank 0 computes, sends its gradient to rank 1, a server of parameters, and waits for what that sends back."""
    x = torch.zeros(job["elements"])
    for _ in job.steps():
        if job.rank == 0:
            job.operator("compute")(x, job["compute_ms"])
            dist.send(x, 1)
            dist.recv(x, 1)
        else:
            dist.recv(x, 0)
            job.operator("update")(x, job["update_ms"])
            dist.send(x, 0)
