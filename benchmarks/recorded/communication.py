"""Jobs whose ranks talk to each other by hand: pipelines, several process groups, transfers in flight, root ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.recorded.job import Job, timed


def one_forward_one_backward(stage: int, stages: int, micro: int) -> list[tuple[str, int]]:
    """Return what a pipeline stage does, in order, under 1F1B: ("forward" or "backward", micro-batch).

    >>> one_forward_one_backward(1, 2, 2)
    [('forward', 0), ('backward', 0), ('forward', 1), ('backward', 1)]
    """
    ahead = min(stages - 1 - stage, micro)
    order = [("forward", i) for i in range(ahead)]
    for i in range(micro - ahead):
        order += [("forward", ahead + i), ("backward", i)]
    return order + [("backward", i) for i in range(micro - ahead, micro)]


def all_forward_all_backward(micro: int) -> list[tuple[str, int]]:
    """Return what a pipeline stage does, in order, under GPipe.

    >>> all_forward_all_backward(2)
    [('forward', 0), ('forward', 1), ('backward', 0), ('backward', 1)]
    """
    return [("forward", i) for i in range(micro)] + [("backward", i) for i in range(micro)]


def pipeline(job: Job) -> None:
    """Run a pipeline of `micro` micro-batches by batched isend and irecv; schedule `gpipe` or `1f1b`."""
    micro, last = job.get("micro", 4), job.ranks - 1
    order = all_forward_all_backward(micro)
    if job.get("schedule") == "1f1b":
        order = one_forward_one_backward(job.rank, job.ranks, micro)
    x = torch.zeros(job.get("elements", 256))
    stage_ms = job["stage_ms"][job.rank]
    for step in job.steps():
        sent: list[dist.Work] = []
        for what, _ in order:
            source, target = (job.rank - 1, job.rank + 1) if what == "forward" else (job.rank + 1, job.rank - 1)
            if 0 <= source <= last:
                arrived = torch.empty_like(x)
                for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, arrived, source)]):
                    work.wait()
            done = timed(f"stage_{what}")(x, stage_ms * job.factor(step))
            if 0 <= target <= last:
                sent += dist.batch_isend_irecv([dist.P2POp(dist.isend, done, target)])
        for work in sent:
            work.wait()
        timed("update")(x, job.get("update_ms", 4))


def grid(job: Job) -> None:
    """Tensor parallel in `tensor` ranks that follow each other, data parallel across: two process groups per rank."""
    tensor = job["tensor"]
    rows = [list(range(i, i + tensor)) for i in range(0, job.ranks, tensor)]
    columns = [list(range(i, job.ranks, tensor)) for i in range(tensor)]
    tensor_group = [dist.new_group(each) for each in rows][job.rank // tensor]
    data_group = [dist.new_group(each) for each in columns][job.rank % tensor]
    activation, gradient = torch.zeros(job.get("activation", 5_000)), torch.zeros(job.get("gradient", 40_000))
    for step in job.steps():
        factor = job.factor(step)
        for what, ms in (("attn", job["attn_ms"]), ("attn_backward", job["back_ms"])):
            for _ in range(job.get("layers", 2)):
                timed(what)(activation, ms * factor)
                dist.all_reduce(activation, group=tensor_group)
        dist.all_reduce(gradient, group=data_group)
        timed("update")(gradient, job.get("update_ms", 4))


def in_flight(job: Job) -> None:
    """Start `buckets` all-reduces one after the other, compute, and wait for them in the opposite order."""
    x = torch.zeros(4, 4)
    gradients = [torch.zeros(job["elements"]) for _ in range(job.get("buckets", 3))]
    for step in job.steps():
        factor = job.factor(step)
        works = []
        for gradient in gradients:
            timed("produce")(x, job["produce_ms"] * factor)
            works.append(dist.all_reduce(gradient, async_op=True))
        timed("hide")(x, job["hide_ms"] * factor)
        for work in reversed(works) if job.get("backwards", True) else works:
            work.wait()
            timed("apply")(x, job.get("apply_ms", 2))


def every_collective(job: Job) -> None:
    """Call each collective once per step with an operator before it."""
    n, ranks = job.get("elements", 8_000), job.ranks
    whole, part = torch.zeros(n * ranks), torch.zeros(n)
    parts = [torch.zeros(n) for _ in range(ranks)]
    calls = {
        "broadcast": lambda: dist.broadcast(part, 0),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(whole), whole),
        "scatter": lambda: dist.scatter(part, parts if job.rank == 0 else None, 0),
        "gather": lambda: dist.gather(part, parts if job.rank == 0 else None, 0),
        "barrier": dist.barrier,
    }
    for step in job.steps():
        for name, call in calls.items():
            timed(f"before_{name}")(part, job["op_ms"] * job.factor(step))
            call()


def experts(job: Job) -> None:
    """Mixture of experts: all-to-all to the experts, an expert's operator, all-to-all back, twice per step."""
    x = torch.zeros(job["elements"] * job.ranks)
    for step in job.steps():
        for _ in range(job.get("layers", 2)):
            timed("attention")(x, job["attn_ms"])
            dist.all_to_all_single(torch.empty_like(x), x)
            timed("expert")(x, job["expert_ms"] * job.factor(step))
            dist.all_to_all_single(torch.empty_like(x), x)
        timed("update")(x, job.get("update_ms", 4))


def ring(job: Job) -> None:
    """As ring attention: while a block is used, it is sent to the next rank and received from the one before."""
    after, before = (job.rank + 1) % job.ranks, (job.rank - 1) % job.ranks
    block, arriving = torch.zeros(job["elements"]), torch.zeros(job["elements"])
    for step in job.steps():
        for _ in range(job.ranks):
            calls = [dist.P2POp(dist.isend, block, after), dist.P2POp(dist.irecv, arriving, before)]
            works = dist.batch_isend_irecv(calls)
            timed("attention")(block, job["attn_ms"] * job.factor(step))
            for work in works:
                work.wait()
            block, arriving = arriving, block
        timed("update")(block, job.get("update_ms", 4))


def server(job: Job) -> None:
    """Rank 0 gathers gradients, updates (`timed::update`) and broadcasts weights; all ranks compute."""
    weights = torch.zeros(job["elements"])
    parts = [torch.zeros(job["elements"]) for _ in range(job.ranks)]
    for step in job.steps():
        timed("compute")(weights, job["compute_ms"] * job.factor(step))
        dist.gather(weights, parts if job.rank == 0 else None, 0)
        if job.rank == 0:
            timed("update")(weights, job["update_ms"])
        dist.broadcast(weights, 0)


def sharded(job: Job) -> None:
    """Gather each layer's weights one layer ahead while the layer before computes; the gather may be hidden."""
    shard, whole = torch.zeros(job["elements"] // job.ranks), [torch.zeros(job["elements"]) for _ in range(2)]
    layers = job.get("layers", 4)
    for step in job.steps():
        work = dist.all_gather_into_tensor(whole[0], shard, async_op=True)
        for layer in range(layers):
            work.wait()
            if layer + 1 < layers:
                work = dist.all_gather_into_tensor(whole[(layer + 1) % 2], shard, async_op=True)
            timed("layer")(shard, job["layer_ms"] * job.factor(step))
        timed("update")(shard, job.get("update_ms", 4))
