"""Jobs that compute, over who waits for whom: compression, embedding bags, ring attention, threads, shared memory."""

from __future__ import annotations

import multiprocessing
import socket
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.functional import cross_entropy, interpolate, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

from benchmarks.recorded.hand_overs import beside
from benchmarks.recorded.job import WARM_UP, Job
from benchmarks.recorded.real_work import Transformer

_FORK = multiprocessing.get_context("fork")


def convolutions(width: int) -> nn.Sequential:
    """Return a small network for images of 32 x 32."""
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(width * 256, 64))


def compressed(job: Job) -> None:
    """Send the largest tenth of all gradients beside statistics of what is left (`residual`), then add them up."""
    net, images = convolutions(job.get("width", 24)), torch.rand(job.get("batch", 8), 3, 32, 32)
    for _ in job.steps():
        net(images).pow(2).mean().backward()
        with record_function("compress"):
            gradient = torch.cat([each.grad.flatten() for each in net.parameters()])
            places = gradient.abs().topk(gradient.numel() // 10).indices
            values = gradient[places]
        all_values, all_places = values.new_empty(job.ranks * len(values)), places.new_empty(job.ranks * len(places))
        works = [
            dist.all_gather_into_tensor(all_values, values, async_op=True),
            dist.all_gather_into_tensor(all_places, places, async_op=True),
        ]
        if job["residual"]:
            with record_function("residual"):
                gradient.abs().sort()
        for work in works:
            work.wait()
        with record_function("decompress"):
            gradient.zero_().index_add_(0, all_places, all_values)
        net.zero_grad()


def bags(job: Job) -> None:
    """Look up the bags of the tables that a rank has, exchange them by all-to-all, train the dense part together."""
    table, dense = torch.rand(100_000, 64), nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    rows = torch.randint(0, len(table), (2048, 80))
    for _ in job.steps():
        with record_function("lookup"):
            pooled = sum(nn.functional.embedding_bag(rows, table, mode="sum") for _ in range(job["tables"][job.rank]))
        exchanged = torch.empty_like(pooled)
        dist.all_to_all_single(exchanged, pooled)
        dense(exchanged).pow(2).mean().backward()
        with record_function("average"):
            dist.all_reduce(torch.cat([each.grad.flatten() for each in dense.parameters()]))
        dense.zero_grad()


def retrieving(job: Job) -> None:
    """Rank 1 asks rank 0 for the nearest rows of a table (`search`) by a Unix socket, then learns from them."""
    table, net = torch.rand(job["rows"], 128), nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 8))
    path = str(job.folder / "search")
    with socket.socket(socket.AF_UNIX) as ours:
        if job.rank == 0:
            ours.bind(path)
            ours.listen()
        dist.barrier()
        if job.rank == 1:
            ours.connect(path)
        with ours if job.rank else ours.accept()[0] as line:
            for _ in job.steps():
                if job.rank == 0:
                    query = torch.frombuffer(bytearray(line.recv(128 * 32 * 4, socket.MSG_WAITALL)), dtype=torch.float)
                    with record_function("search"):
                        places = (query.view(32, 128) @ table.T).topk(16).indices
                    line.sendall(places.numpy().tobytes())
                    continue
                query = torch.rand(32, 128)
                line.sendall(query.numpy().tobytes())
                line.recv(32 * 16 * 8, socket.MSG_WAITALL)
                for _ in range(job["micro"]):
                    net(query.repeat(16, 1)).pow(2).mean().backward()
                net.zero_grad()


def averaging(job: Job) -> None:
    """Train a language model; a thread averages its weights and takes their norms (`ema`) beside the next step."""
    model, tokens = Transformer(job), torch.randint(0, 400, (4, 96))
    weights = [each.detach() for each in model.parameters()]
    averages = [each.clone() for each in weights]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def average() -> None:
        with record_function("ema"):
            torch._foreach_lerp_(averages, weights, 0.01)
            for each in averages:
                if each.dim() == 2:
                    torch.linalg.matrix_norm(each, 2)

    before: Future[None] | None = None
    with ThreadPoolExecutor(1) as thread:
        for _ in job.steps():
            cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
            if before is not None:
                before.result()
            optimizer.step()
            optimizer.zero_grad()
            if job["ema"]:
                before = thread.submit(average)


def decoding(job: Job) -> None:
    """A thread unpacks and resizes images (`decode`), at most two batches ahead, while the main thread trains."""
    packed = zlib.compress(torch.randint(0, 64, (3 * 96 * 96 * 8,), dtype=torch.uint8).numpy().tobytes())
    net, coming = convolutions(16), list[Future[torch.Tensor]]()

    def decode() -> torch.Tensor:
        with record_function("decode"):
            for _ in range(job["passes"]):
                raw = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8)
                images = interpolate(raw.view(8, 3, 96, 96).float(), (32, 32), mode="bilinear")
        return images

    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            while len(coming) < 2 and (step >= WARM_UP or not coming):
                coming.append(thread.submit(decode))
            images = coming.pop(0).result()
            for _ in range(job.get("repeats", 2)):
                net(images).pow(2).mean().backward()
            net.zero_grad()


def evaluating(job: Job) -> None:
    """A thread evaluates each fourth step by sorting scores; the next evaluation waits for the one before."""
    bag, dense = nn.EmbeddingBag(20_000, 64), nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
    rows, scores = torch.randint(0, 20_000, (256, 20)), torch.rand(job["samples"])
    optimizer = torch.optim.Adam(dense.parameters())

    def evaluate() -> None:
        with record_function("evaluate"):
            scores.argsort().argsort()
            scores.topk(len(scores) // 20)

    before: Future[None] | None = None
    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            for _ in range(job.get("micro", 3)):
                dense(bag(rows)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 4 == 0:
                if before is not None:
                    before.result()
                before = thread.submit(evaluate)


def ring_attention(job: Job) -> None:
    """Attend to the own keys and values while they go to the next rank, then to those that came."""
    shape = (1, 8, job["seq"], 64)
    query, block, arriving = torch.rand(shape), torch.rand(2, *shape), torch.empty(2, *shape)
    after, before = (job.rank + 1) % job.ranks, (job.rank - 1) % job.ranks
    project = nn.Linear(64, 64)
    for _ in job.steps():
        made = torch.zeros(shape)
        for turn in range(job.ranks):
            last = turn + 1 == job.ranks
            calls = [dist.P2POp(dist.isend, block, after), dist.P2POp(dist.irecv, arriving, before)]
            works = [] if last else dist.batch_isend_irecv(calls)
            with record_function("attend"):
                made += scaled_dot_product_attention(query, *block)
            for work in works:
                work.wait()
            block, arriving = arriving, block
        project(made).pow(2).mean().backward()
        project.zero_grad()


def teaching(job: Job) -> None:
    """Rank 0, a teacher, sends logits of its next batch while rank 1, the student, learns from those before."""
    model, tokens = Transformer(job), torch.randint(0, 400, (4, 96))
    if job.rank == 0:
        model.layers = model.layers[: job["teacher_layers"]]
    buffers, sent = [torch.zeros(4, 96, 400) for _ in range(2)], None
    for step in job.steps():
        logits = buffers[step % 2]
        if job.rank == 0:
            with record_function("teacher"), torch.no_grad():
                logits.copy_(model(tokens))
            if sent is not None:
                sent.wait()
            sent = dist.isend(logits, 1)
        else:
            dist.recv(logits, 0)
            (model(tokens) - logits).pow(2).mean().backward()
            model.zero_grad()
    if sent is not None:
        sent.wait()


def clipped(job: Job) -> None:
    """All-reduce gradients from hooks; `clip` takes their norm, all-reduces it and reads it with item()."""
    net = nn.Sequential(*[nn.Linear(192, 192) for _ in range(job.get("layers", 16))])
    x, works, optimizer = torch.rand(128, 192), list[Any](), torch.optim.Adam(net.parameters(), foreach=True)
    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(lambda it: works.append(dist.all_reduce(it.grad, async_op=True)))
    for _ in job.steps():
        net(x).pow(2).mean().backward()
        while works:
            works.pop(0).wait()
        if job["clip"]:
            with record_function("clip"):
                total = torch.stack([each.grad.double().pow(2).sum() for each in net.parameters()]).sum()
                dist.all_reduce(total)
                for each in net.parameters():
                    each.grad.mul_(min(1.0, 1 / total.item()))
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)


def powersgd(job: Job) -> None:
    """Train data parallel; PowerSGD compresses gradients by a chain of futures with two all-reduces."""
    net = DistributedDataParallel(nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]))  # one bucket
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=job["rank_of"], start_powerSGD_iter=2)
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer, x = torch.optim.SGD(net.parameters(), lr=1e-5), torch.rand(job.get("batch", 1024), 256)
    for _ in job.steps():
        net(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def shared_images(job: Job) -> None:
    """Another process unpacks images into shared memory, handed over by semaphores; this one trains (`train`)."""
    slots = torch.zeros(2, 16, 3, 32, 32).share_memory_()
    free, filled, begin = _FORK.Semaphore(2), _FORK.Semaphore(0), _FORK.Event()
    maker = beside(_unpack, slots, (free, filled, begin), job["passes"])
    net = convolutions(16)
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            filled.acquire()
        images = slots[step % 2].clone()
        if step >= WARM_UP:
            free.release()
        with record_function("train"):
            for _ in range(job["repeats"]):
                net(images).pow(2).mean().backward()
            net.zero_grad()
    maker.terminate()


def _unpack(slots: torch.Tensor, semaphores: Any, passes: int) -> None:  # noqa: ANN401 - of multiprocessing
    free, filled, begin = semaphores
    torch.set_num_threads(1)
    packed = zlib.compress(torch.randint(0, 64, (slots[0].numel(),), dtype=torch.uint8).numpy().tobytes())
    begin.wait()
    at = 0
    while True:
        free.acquire()
        for _ in range(passes):
            raw = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8)
        slots[at % 2].copy_(raw.view(slots[0].shape).float())
        at += 1
        filled.release()
