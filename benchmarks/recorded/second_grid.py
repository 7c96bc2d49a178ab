"""Jobs whose ranks meet by collectives in a second set of ways: levels, side threads, late waits, actors, experts.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.recorded.job import Job


def hierarchical(job: Job) -> None:
    """Reduce in pairs of ranks to the first of each, all-reduce among the firsts, broadcast in pairs."""
    pairs = [dist.new_group([first, first + 1]) for first in range(0, job.ranks, 2)]
    firsts = dist.new_group(list(range(0, job.ranks, 2)))
    pair = pairs[job.rank // 2]
    first = job.rank // 2 * 2
    gradients = torch.zeros(job["elements"])
    compute, update = job.operator("compute"), job.operator("update")
    for step in job.steps():
        compute(gradients, job["compute_ms"] * job.factor(step))
        dist.reduce(gradients, first, group=pair)
        if job.rank == first:
            dist.all_reduce(gradients, group=firsts)
        dist.broadcast(gradients, first, group=pair)
        update(gradients, job.get("update_ms", 4))


def compressed_beside(job: Job) -> None:
    """A thread of each rank compresses and all-reduces each bucket that backward has done; the update needs all."""
    small = [torch.zeros(job["elements"]) for _ in range(job.get("buckets", 4))]
    x = torch.zeros(4, 32)
    backward, compress, update = (job.operator(name) for name in ("backward", "compress", "update"))

    def reduced(bucket: torch.Tensor) -> None:
        compress(x, job["compress_ms"])
        dist.all_reduce(bucket)

    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            coming = []
            for bucket in small:
                backward(x, job["backward_ms"] * job.factor(step))
                coming.append(thread.submit(reduced, bucket))
            for future in coming:
                future.result()
            update(x, job.get("update_ms", 5))


def outer_steps(job: Job) -> None:
    """Train apart; each `every` steps start to all-reduce the difference, and apply the one started before."""
    x, differences = torch.zeros(4, 32), torch.zeros(job["elements"])
    train, apply = job.operator("train"), job.operator("apply")
    under_way: dist.Work | None = None
    for step in job.steps():
        train(x, job["train_ms"] * job.factor(step))
        if step % job["every"]:
            continue
        if under_way is not None:
            under_way.wait()
            apply(x, job.get("apply_ms", 3))
        under_way = dist.all_reduce(differences, async_op=True)
    if under_way is not None:
        under_way.wait()


def actors(job: Job) -> None:
    """Actors send what they saw to rank 0, which learns, and broadcasts weights each `every` steps."""
    seen, weights = torch.zeros(job.get("seen", 4_000)), torch.zeros(job["elements"])
    act, learn = job.operator("act"), job.operator("learn")
    sent: dist.Work | None = None
    for step in job.steps():
        if job.rank == 0:
            for actor in range(1, job.ranks):
                dist.recv(seen, actor)
            learn(seen, job["learn_ms"])
        else:
            act(weights, job["act_ms"] * job.factor(step))
            if sent is not None:
                sent.wait()
            sent = dist.isend(seen, 0)
        if step % job["every"] == 0:
            dist.broadcast(weights, 0)
    if sent is not None:
        sent.wait()


def evaluated_apart(job: Job) -> None:
    """Train data parallel; each `every` steps each rank scores its shard, and all gather objects of what they found."""
    x = torch.zeros(job.get("elements", 4_000))
    train, score, report = (job.operator(name) for name in ("train", "score", "report"))
    everyone: list[Any] = [None] * job.ranks
    for step in job.steps():
        train(x, job["train_ms"])
        dist.all_reduce(x)
        if step % job["every"] == 0:
            for _ in range(job["batches"][job.rank]):
                score(x, job["score_ms"])
            dist.all_gather_object(everyone, {"rank": job.rank, "losses": [0.5] * 100})
            report(x, job.get("report_ms", 3))


def swapped(job: Job) -> None:
    """Swap sequence for heads: all-to-all of query, key and value, each behind its projection, and one back."""
    tensors = [torch.zeros(job["elements"] * job.ranks) for _ in range(4)]
    project, attention, dense = (job.operator(name) for name in ("project", "attention", "dense"))
    for step in job.steps():
        for _ in range(job.get("layers", 2)):
            works = []
            for tensor in tensors[:3]:
                project(tensor, job["project_ms"])
                works.append(dist.all_to_all_single(torch.empty_like(tensor), tensor, async_op=True))
            for work in works:
                work.wait()
            attention(tensors[3], job["attention_ms"] * job.factor(step))
            dist.all_to_all_single(torch.empty_like(tensors[3]), tensors[3])
            dense(tensors[3], job["dense_ms"])


def capped_experts(job: Job) -> None:
    """Dispatch up to `capacity` tokens to each expert beside a shared expert, and combine beside a norm."""
    tokens, arrived = torch.zeros(job["capacity"] * job.ranks), torch.zeros(job["capacity"] * job.ranks)
    gate, shared, expert, norm = (job.operator(name) for name in ("gate", "shared", "expert", "norm"))
    for step in job.steps():
        for _ in range(job.get("layers", 2)):
            gate(tokens, job["gate_ms"])
            dispatched = dist.all_to_all_single(arrived, tokens, async_op=True)
            if job["shared_ms"]:
                shared(tokens, job["shared_ms"])
            dispatched.wait()
            expert(arrived, job["expert_ms"] * job.factor(step))
            combined = dist.all_to_all_single(tokens, arrived, async_op=True)
            norm(arrived, job["norm_ms"])
            combined.wait()


def both_ways(job: Job) -> None:
    """Two pipelines of two stages in opposite directions: each rank is the first of one and the last of the other."""
    x = torch.zeros(job["elements"])
    peer = 1 - job.rank
    activations, gradients = torch.zeros_like(x), torch.zeros_like(x)
    first, last, update = (job.operator(name) for name in ("first", "last", "update"))
    micro = range(job.get("micro", 3))
    for _ in job.steps():
        sent = []
        for batch in micro:
            sent.append(dist.isend(first(x, job["first_ms"][job.rank]), peer, tag=0))
            dist.recv(activations, peer, tag=0)
            sent.append(dist.isend(last(activations, job["last_ms"][job.rank]), peer, tag=1))
            if batch:
                dist.recv(gradients, peer, tag=1)
                first(gradients, job["first_ms"][job.rank])
        dist.recv(gradients, peer, tag=1)
        first(gradients, job["first_ms"][job.rank])
        for work in sent:
            work.wait()
        update(x, job.get("update_ms", 4))


def drifting(job: Job) -> None:
    """Send to a random peer and mix what another one sent in the step before: each waits one step late."""
    ours, theirs = torch.zeros(job["elements"]), torch.zeros(job["elements"])
    train, mix = job.operator("train"), job.operator("mix")
    works: list[Any] = []
    for step in job.steps():
        train(ours, job["train_ms"] * job.factor(step))
        for work in works:
            work.wait()
        mix(ours, job.get("mix_ms", 4))
        order = random.Random(step).sample(range(job.ranks), job.ranks)
        place = order.index(job.rank)
        works = [dist.irecv(theirs, order[place - 1]), dist.isend(ours, order[(place + 1) % job.ranks])]
    for work in works:
        work.wait()
