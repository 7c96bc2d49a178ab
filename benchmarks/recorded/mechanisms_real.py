"""Jobs that compute, over hooks, threads, pickled objects, checkpoints and evaluation, on free cores and on too few."""

from __future__ import annotations

import io
import pickle
import threading
import zlib
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from benchmarks.recorded.grid_real import convolutions
from benchmarks.recorded.job import RECORDED, WARM_UP, Job, computed
from benchmarks.recorded.mechanisms_threads import looped
from benchmarks.recorded.real_work import Transformer


def perceptron(width: int, layers: int) -> nn.Sequential:
    """Return linear layers of one width with a nonlinearity after each."""
    made = [each for _ in range(layers) for each in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*made)


def packed_activations(job: Job) -> None:
    """Hooks on saved tensors hand activations to a thread, which packs them; backward waits for what it unpacks."""
    net, x = perceptron(256, job.get("layers", 4)), torch.rand(job.get("batch", 512), 256)
    passes = job["passes"]

    def shrink(tensor: torch.Tensor) -> torch.Tensor:
        with record_function("pack"):
            for _ in range(passes):
                made = tensor.to(torch.float16)
                made.float().abs().amax()
        return made

    with ThreadPoolExecutor(1) as thread:

        def pack(tensor: torch.Tensor) -> Any:  # noqa: ANN401 - a tensor, or a future of one
            return thread.submit(shrink, tensor) if tensor.shape == x.shape else tensor

        def unpack(packed: Any) -> torch.Tensor:  # noqa: ANN401
            return packed.result().float() if isinstance(packed, Future) else packed

        for _ in job.steps():
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                loss = net(x).pow(2).mean()
            loss.backward()
            net.zero_grad()


def updated_in_hooks(job: Job) -> None:
    """Each parameter's hook hands its gradient to a thread that updates it; the step ends when all are updated."""
    net, x = perceptron(256, job.get("layers", 6)), torch.rand(job.get("batch", 384), 256)
    moments = {each: torch.zeros_like(each) for each in net.parameters()}
    coming: list[Future[None]] = []

    def update(parameter: torch.Tensor) -> None:
        with record_function("update"), torch.no_grad():
            for _ in range(job["passes"] if parameter.dim() == 2 else 1):
                moment = moments[parameter].lerp_(parameter.grad, 0.1)
                parameter.add_(moment / (moment.pow(2).sqrt() + 1e-3), alpha=-1e-6)

    with ThreadPoolExecutor(1) as thread:
        for parameter in net.parameters():
            parameter.register_post_accumulate_grad_hook(lambda it: coming.append(thread.submit(update, it)))
        for _ in job.steps():
            net(x).pow(2).mean().backward()
            wait(coming)
            coming.clear()
            net.zero_grad(set_to_none=False)


def tokenized(job: Job) -> None:
    """A thread tokenizes in a Python loop while the main thread trains: each operator waits for the interpreter."""
    net, x = perceptron(192, job.get("layers", 6)), torch.rand(job.get("batch", 192), 192)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5, foreach=True)
    with ThreadPoolExecutor(1) as thread:

        def tokenize() -> None:
            with record_function("tokenize"):
                looped(job["tokenize_ms"])

        for _ in job.steps():
            coming = thread.submit(tokenize) if job["tokenize_ms"] else None
            net(x).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if coming is not None:
                coming.result()


class _Unpacked(Dataset[torch.Tensor]):
    """Images that are unpacked when they are asked for."""

    def __init__(self, count: int, passes: int) -> None:
        noise = torch.randint(0, 64, (3 * 64 * 64,), dtype=torch.uint8).numpy().tobytes()
        self.count, self.passes, self.packed = count, passes, zlib.compress(noise)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        for _ in range(self.passes):
            raw = bytearray(zlib.decompress(self.packed))
        return torch.frombuffer(raw, dtype=torch.uint8).view(3, 64, 64)[:, ::2, ::2].float()


def crowded_loader(job: Job) -> None:
    """Train a convolutional network on what `workers` processes unpack: with it they are more than the cores."""
    data = _Unpacked(8 * (WARM_UP + RECORDED + 8), job["passes"])
    loader, net = iter(DataLoader(data, batch_size=8, num_workers=job["workers"])), convolutions(16)
    for _ in job.steps():
        images = next(loader)
        with record_function("train"):
            for _ in range(job["repeats"]):
                net(images).pow(2).mean().backward()
            net.zero_grad()


def evaluated_beside(job: Job) -> None:
    """Train data parallel; a thread of rank 0 evaluates all the time (`evaluate`), on cores that the ranks need."""
    net, x = DistributedDataParallel(perceptron(256, 4)), torch.rand(job.get("batch", 384), 256)
    frozen, over = perceptron(256, 4), threading.Event()

    def evaluating() -> None:
        while not over.is_set():
            with record_function("evaluate"), torch.no_grad():
                frozen(x)

    thread = threading.Thread(target=evaluating)
    if job.rank == 0 and job["evaluate"]:
        thread.start()
    for _ in job.steps():
        net(x).pow(2).mean().backward()
        net.zero_grad()
    over.set()
    if thread.is_alive():
        thread.join()


def augmented_ahead(job: Job) -> None:
    """Train data parallel; a thread of each rank augments one batch ahead: two ranks then keep four threads busy."""
    net, dense = DistributedDataParallel(perceptron(256, 3)), torch.rand(job.get("batch", 256), 256)
    augment = computed("augment")
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(augment, dense, 1.0)
        for _ in job.steps():
            batch = coming.result()
            coming = thread.submit(augment, dense, job["augment_ms"])
            with record_function("train"):
                for _ in range(job["repeats"]):
                    net(batch).pow(2).mean().backward()
            net.zero_grad()


def crowded_ranks(job: Job) -> None:
    """Compute and all-reduce on more ranks than cores."""
    x = torch.zeros(job.get("elements", 4_000))
    compute, update = computed("compute"), computed("update")
    for step in job.steps():
        compute(x, job["compute_ms"] * job.factor(step))
        dist.all_reduce(x)
        update(x, job["update_ms"])


def pickled(job: Job) -> None:
    """Gather predictions as Python objects at rank 0 in each `every` steps; all pickle, rank 0 sorts them."""
    net, x = perceptron(256, 3), torch.rand(job.get("batch", 256), 256)
    for step in job.steps():
        net(x).pow(2).mean().backward()
        net.zero_grad()
        dist.all_reduce(torch.cat([each.flatten()[:1_000] for each in net.parameters()]))
        if step % job.get("every", 2) == 0 and job["numbers"]:
            with record_function("collect"):
                mine = {"rank": job.rank, "scores": [number * 0.5 for number in range(job["numbers"])]}
                everyone: list[Any] | None = [None] * job.ranks if job.rank == 0 else None
                dist.gather_object(mine, everyone, 0)
                if everyone is not None:
                    sorted(score for each in everyone for score in each["scores"])


def saved_by_thread(job: Job) -> None:
    """A thread writes the weights each third step, packed; the next one waits until the one before is written."""
    net, x = perceptron(256, 6), torch.rand(job.get("batch", 256), 256)
    before: Future[int] | None = None

    def save(state: dict[str, torch.Tensor]) -> int:
        with record_function("save"):
            file = io.BytesIO()
            torch.save(state, file)
            return sum(len(zlib.compress(file.getvalue(), 6)) for _ in range(job["passes"]))

    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            net(x).pow(2).mean().backward()
            net.zero_grad()
            if step % 3 == 0:
                if before is not None:
                    before.result()
                with record_function("copy"):
                    state = {name: each.clone() for name, each in net.state_dict().items()}
                before = thread.submit(save, state)


def evaluated(job: Job) -> None:
    """Train a language model and evaluate it on `batches` batches in each third step (`evaluate`)."""
    model, tokens = Transformer(job), torch.randint(0, 400, (4, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for step in job.steps():
        cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 3 == 0:
            for _ in range(job["batches"]):
                with record_function("evaluate"), torch.no_grad():
                    cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).item()


def accumulated(job: Job) -> None:
    """Accumulate gradients over `micro` micro-batches, take their norm where `clip`, update."""
    model, tokens = Transformer(job), torch.randint(0, 400, (2, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=False)
    for _ in job.steps():
        for part in range(job["micro"]):
            with record_function(f"part_{part}"):
                loss = cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
        with record_function("inspect") if job["inspect"] else nullcontext():
            for each in model.parameters() if job["inspect"] else ():
                if each.dim() == 2:
                    torch.histc(each.grad, 50).sum().item()
                    each.grad.abs().flatten().sort()
        optimizer.step()
        optimizer.zero_grad()


def shared_embedding(job: Job) -> None:
    """Exchange pickled requests and rows by send and recv: rank 0 looks up what rank 1 wants."""
    table, net = torch.rand(20_000, 128), perceptron(128, 4)
    for _ in job.steps():
        wanted = torch.zeros(512, dtype=torch.long)
        rows = torch.zeros(512, 128)
        if job.rank == 0:
            dist.recv(wanted, 1)
            with record_function("normalize"):
                for _ in range(job["passes"]):
                    found = torch.nn.functional.normalize(table[wanted + 1], dim=1).tanh()
            dist.send(found, 1)
            with record_function("account"):
                pickle.loads(pickle.dumps(wanted.tolist() * job.get("numbers", 20)))
        else:
            wanted.random_(10_000)
            dist.send(wanted, 0)
            dist.recv(rows, 0)
            with record_function("train"):
                for _ in range(job["repeats"]):
                    net(rows).pow(2).mean().backward()
            net.zero_grad()
