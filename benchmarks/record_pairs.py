"""Record pairs of real PyTorch jobs that differ in one thing: ``python -m benchmarks.record_pairs [OUTPUT]``.

What takes time on a CPU are operators, loaders and Python that sleep, so a busy or small machine does not change
their time, and gloo over a loopback device whose rate a token bucket limits, so "the network is twice as fast" is
exactly true. Autograd, DistributedDataParallel, fully_shard, loader workers, threads, gloo and Kineto are real.

It needs Linux, root (for a network namespace), iproute2 and PyTorch, not htagraph.

Written per pair, into OUTPUT/NAME: `A1` and `B1` with `rank-N.json.gz`, the traces of the first run of each, and with
`--keep-all` those of every run; for every run, `A1.steps.json` and so on: when each recorded step of each rank began,
µs; `truth.json`: what changed, the what-if that says so, what a diff must blame, the straggler of A and the beginning
of A's verdict, where there is one.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import gzip
import importlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.halves import add_half, of_half
from benchmarks.recorded.catalogue import PAIRS
from benchmarks.recorded.pair import Pair

ROOT = Path(__file__).resolve().parents[1]

LIMIT_S = 120
"""Seconds after which a run has failed. Chosen: ten times what the longest job takes; more only delays the message."""

PRIORITY = 20
"""Real-time priority (1 to 99) of recorded processes. Chosen: any makes them wake up before other work."""

FIRST = -20
"""The nice value of jobs that share cores: the one of Linux that has the most weight."""

_GROUP = Path("/proc/self/autogroup")
"""Where the nice value of a session is set."""

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of Linux' sched.h."""

_SET_TIMER_SLACK = 29
"""PR_SET_TIMERSLACK of Linux' prctl.h."""

_FORK = multiprocessing.get_context("fork")
"""How processes start: forked, which saves imports. CUDA survives no fork, but no process here uses it before one."""


def main() -> None:
    """Record the pairs asked for, one line each."""
    options = parser().parse_args()
    names = [name for name in PAIRS if fnmatch.fnmatch(name, options.only)]
    names = of_half(names, options.half)
    if options.list:
        print("\n".join(f"{name:30}{PAIRS[name].change}" for name in names))
        return
    warnings.simplefilter("ignore")
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    names = runnable(names, devices())
    for module in sorted({PAIRS[name].job.split(".")[0] for name in names}):
        importlib.import_module(f"benchmarks.recorded.{module}")  # once, for all processes that are forked
    failed = [name for name in names if not recorded(name, options)]
    if failed:
        sys.exit(f"not recorded: {', '.join(failed)}")


def recorded(name: str, options: argparse.Namespace) -> bool:
    """Record the pair of a name as options say; return whether all runs went well."""
    return record_pair(options.output / name, PAIRS[name], name, options.runs, keep_all=options.keep_all)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("output", nargs="?", type=Path, default=Path("pairs"))
    command.add_argument("--only", default="*", help="glob on the names of pairs")
    command.add_argument("--runs", type=int, default=3, help="how often A and B are run")
    command.add_argument("--keep-all", action="store_true", help="keep the traces of every run, not of the first alone")
    add_half(command)
    command.add_argument("--list", action="store_true", help="print names and changes, record nothing")
    return command


def devices() -> int:
    """Return how many CUDA devices there are, asked in another process: CUDA must not be up where jobs are forked."""
    code = "import torch; print(torch.cuda.device_count())"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def runnable(names: list[str], count: int) -> list[str]:
    """Return the pairs that this machine can record with so many CUDA devices, and print which are left out.

    >>> runnable(["backward_op_removed", "cuda_ddp_straggler"], 1)
    cuda_ddp_straggler            left out: needs 2 CUDA devices, here are 1
    ['backward_op_removed']
    """
    needed = {name: devices_of(PAIRS[name].a) for name in names}
    for name in names:
        if needed[name] > count:
            print(f"{name:30}left out: needs {needed[name]} CUDA devices, here are {count}")
    return [name for name in names if needed[name] <= count]


def devices_of(settings: dict[str, Any]) -> int:
    """Return how many CUDA devices a job needs: one per rank, or one for all that `share` it."""
    if settings.get("device") != "cuda":
        return 0
    return 1 if settings.get("share") else int(settings.get("ranks", 1))


def record_pair(folder: Path, pair: Pair, name: str, runs: int, *, keep_all: bool = False) -> bool:
    """Record A and B in turn, so that what drifts meets both; return whether all runs went well."""
    began, partial = time.time(), folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    settings = {"A": pair.a, "B": {**pair.a, **pair.b}}
    for run in range(1, runs + 1):
        for side in "AB":
            if not record_run(pair.job, settings[side], partial / f"{side}{run}", keep=keep_all or run == 1):
                print(f"{name:30}failed; see {partial}", flush=True)
                return False
    (partial / "truth.json").write_text(json.dumps(pair.truth(name), indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    print(f"{name:30}{time.time() - began:6.1f} s", flush=True)
    return True


def record_run(job: str, settings: dict[str, Any], target: Path, *, keep: bool) -> bool:
    """Run a job once and write when its steps began; with `keep`, its traces too."""
    with tempfile.TemporaryDirectory() as scratch:
        process = _FORK.Process(target=run_job, args=(job, settings, Path(scratch)))
        process.start()
        process.join()
        files = sorted(Path(scratch).glob("rank-*.json"))
        if process.exitcode or not files:
            return False
        starts = {}
        for file in files:
            trace = anonymous(file.read_text(encoding="utf-8"), scratch)
            starts[file.stem.removeprefix("rank-")] = step_starts(trace)
            if keep:
                target.mkdir(exist_ok=True)
                (target / f"{file.name}.gz").write_bytes(gzip.compress(trace.encode(), 9, mtime=0))
    target.with_suffix(".steps.json").write_text(json.dumps({"step_starts_us": starts}) + "\n", encoding="utf-8")
    return True


def anonymous(trace: str, scratch: str) -> str:
    """Return a trace without the machine's name and folders; every other byte stays as Kineto wrote it.

    >>> anonymous('{"host_name": "box7", "traceName": "/tmp/x/rank-0.json"}', "/tmp/x")
    '{"host_name": "localhost", "traceName": "rank-0.json"}'
    """
    trace = re.sub(r'"host_name": "[^"]*"', '"host_name": "localhost"', trace)
    for folder in (scratch, str(ROOT)):
        trace = trace.replace(folder + "/", "")
    return trace


def step_starts(trace: str) -> list[float]:
    """Return when each recorded step of a trace begins, µs, in the order of their numbers.

    >>> step_starts('{"name": "ProfilerStep#3", "ts": 7.5}, {"name": "ProfilerStep#2", "ts": 1.25}')
    [1.25, 7.5]
    """
    begins = re.findall(r'"name": "ProfilerStep#(\d+)",[^{}]*?"ts": ([\d.]+)', trace)
    return [float(begin) for _, begin in sorted({int(number): begin for number, begin in begins}.items())]


def run_job(job: str, settings: dict[str, Any], folder: Path) -> None:
    """Run all ranks of a job in a network of its own; exit with 1 if one fails."""
    before_other_work(fair=settings.get("fair", False))
    if settings.get("ranks", 1) > 1 and settings.get("device") != "cuda":
        limit_network(settings.get("mbit"))
    ranks = [
        _FORK.Process(target=run_rank, args=(job, settings, rank, folder)) for rank in range(settings.get("ranks", 1))
    ]
    for each in ranks:
        each.start()
    until = time.time() + LIMIT_S
    for each in ranks:
        each.join(max(0.0, until - time.time()))
    failed = [each for each in ranks if each.exitcode != 0]
    for each in failed:
        each.kill()
    sys.exit(bool(failed))


def before_other_work(*, fair: bool) -> None:
    """Give this process and its children precedence over other work: real-time, or `fair` among each other.

    Real-time threads run until they wait, however many there are. Threads that outnumber the cores share them only
    under the default scheduler, as those of jobs do.
    """
    try:
        if fair:
            os.setsid()  # a scheduling group of its own, whose weight is raised
            _GROUP.write_text(str(FIRST), encoding="ascii")
            os.setpriority(os.PRIO_PROCESS, 0, FIRST)
        else:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError as error:
        print(f"no precedence over other work ({error}): expect noise", file=sys.stderr)


def limit_network(mbit: float | None) -> None:
    """Move this process into a network namespace whose only device is a loopback of `mbit` 10^6 bits per second."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET): run as root")
    commands = ["ip link set lo mtu 9000", "ip link set lo up"]
    if mbit:
        commands.append(f"tc qdisc add dev lo root tbf rate {mbit}mbit burst 20kb limit 64mb")
    for command in commands:
        subprocess.run(command.split(), check=True)


def run_rank(job: str, settings: dict[str, Any], rank: int, folder: Path) -> None:
    """Run one rank of a job: join the process group, then the job's function."""
    import torch  # here, since --list and the tests need none
    import torch.distributed as dist

    from benchmarks.recorded.job import Job

    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ranks = settings.get("ranks", 1)
    if ranks > 1:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        # NCCL refuses ranks that share a device, gloo does not
        backend = "nccl" if settings.get("device") == "cuda" and not settings.get("share") else "gloo"
        backend = os.environ.get("PAIR_BACKEND", backend)
        dist.init_process_group(backend, init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    module, function = job.split(".")
    getattr(importlib.import_module(f"benchmarks.recorded.{module}"), function)(Job(folder, rank, settings))
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
