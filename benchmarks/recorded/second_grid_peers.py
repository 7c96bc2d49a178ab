"""Jobs whose ranks meet by no collective: bounds on staleness, rings in memory, mailboxes, calls in batches.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener, wait

import torch
import torch.distributed as dist
from torch.distributed import rpc

from benchmarks.recorded.job import Job
from benchmarks.recorded.mechanisms import PORT

POLL_S = 0.0005
"""Seconds between two looks at shared memory. Chosen: a fiftieth of what is waited for; less only fills the trace."""


def bounded_staleness(job: Job) -> None:
    """Each rank says by a store which step it has done, and is at most `bound` steps ahead of the slowest one."""
    store = dist.TCPStore("127.0.0.1", PORT, is_master=job.rank == 0)
    x = torch.zeros(4, 32)
    train, push = job.operator("train"), job.operator("push")
    for step in job.steps():
        train(x, job["train_ms"] * job.factor(step))
        push(x, job.get("push_ms", 3))
        store.set(f"{job.rank}/{step}", "1")
        if step >= job["bound"]:
            store.wait([f"{rank}/{step - job['bound']}" for rank in range(job.ranks)])
    dist.barrier()


def memory_ring(job: Job) -> None:
    """Rank 0 fills slots of a ring in shared memory, rank 1 empties them; both look at two counters again and again."""
    path = job.folder / "ring"
    if job.rank == 0:
        path.write_bytes(bytes(mmap.PAGESIZE))
    dist.barrier()
    x = torch.zeros(4, 32)
    produce, consume = job.operator("produce"), job.operator("consume")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as memory, memoryview(memory) as raw:
        filled_and_emptied = raw.cast("q")
        for step in job.steps():
            if job.rank == 0:
                produce(x, job["produce_ms"])
                while step - filled_and_emptied[1] >= job["slots"]:
                    time.sleep(POLL_S)
                filled_and_emptied[0] = step + 1
            else:
                while filled_and_emptied[0] <= step:
                    time.sleep(POLL_S)
                consume(x, job["consume_ms"])
                filled_and_emptied[1] = step + 1
        filled_and_emptied.release()


def mailbox(job: Job) -> None:
    """Other ranks write to rank 0 by connections of `multiprocessing`; it answers whoever has written."""
    x, path = torch.zeros(4, 32), str(job.folder / "mailbox")
    answer, work = job.operator("answer"), job.operator("work")
    if job.rank == 0:
        with Listener(path, "AF_UNIX", backlog=job.ranks) as listener:
            dist.barrier()
            lines = [listener.accept() for _ in range(job.ranks - 1)]
        dist.barrier()
        for _ in job.steps():
            _answer(job, lines, lambda: answer(x, job["answer_ms"]))
        return
    dist.barrier()
    with Client(path, "AF_UNIX") as line:
        dist.barrier()
        for step in job.steps():
            work(x, job["work_ms"] * job.factor(step))
            line.send_bytes(b"question")
            line.recv_bytes()


def _answer(job: Job, lines: list[Connection], answer: Callable[[], torch.Tensor]) -> None:
    """Answer as many questions as there are other ranks, in the order in which they come."""
    answered = 0
    while answered < job.ranks - 1:
        ready = wait(lines)
        for line in lines:
            if line not in ready:
                continue
            line.recv_bytes()
            answer()
            line.send_bytes(b"answer")
            answered += 1


class _Server:
    """Gradients that rank 0 has got in this round, and the future of their update."""

    lock = threading.Lock()
    arrived = 0
    updated: torch.futures.Future[torch.Tensor] | None = None


@rpc.functions.async_execution  # type: ignore[untyped-decorator]
def updated(trainers: int, ms: float) -> torch.futures.Future[torch.Tensor]:
    """Return a future of the update that the last trainer's call makes: ``timed::update``."""
    with _Server.lock:
        _Server.updated = _Server.updated or torch.futures.Future()
        answer = _Server.updated
        _Server.arrived += 1
        if _Server.arrived == trainers:
            _Server.arrived, _Server.updated = 0, None
            answer.set_result(torch.ops.timed.update(torch.zeros(4, 32), ms))
    return answer


def called_in_batches(job: Job) -> None:
    """Trainers call rank 0, which answers all of them by one future when the last gradient of a round has come."""
    job.operator("update")
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=4, init_method=f"tcp://127.0.0.1:{PORT}", _transports=["uv"], _channels=["basic"]
    )
    rpc.init_rpc(f"rank{job.rank}", rank=job.rank, world_size=job.ranks, rpc_backend_options=options)
    x = torch.zeros(4, 32)
    train = job.operator("train")
    for step in job.steps():
        if job.rank:
            train(x, job["train_ms"] * job.factor(step))
            rpc.rpc_sync("rank0", updated, args=(job.ranks - 1, job["update_ms"]))
        dist.barrier()
    rpc.shutdown()
