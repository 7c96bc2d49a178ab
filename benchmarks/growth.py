"""Whether the time of an answer grows faster than a job: every verb over jobs of n, 2n, 4n and 8n of each parameter.

    python -m benchmarks.growth                                  # the whole grid, some twenty minutes
    python -m benchmarks.growth --parameters depth --only summary --share 0.1

A job is larger by one parameter: events, ranks, streams, names … . What is measured is processor time of this process,
less that of a small job; less than 50 ms count as 50 ms. The exponent is that of the power of the size which fits these
times. What seems to grow too fast is measured again, and the least times count. A verb that is added to
`htagraph.cli.verbs` is measured without further ado. ``tests/laws/test_growth.py`` runs a small part, with a wider
limit: machines that test are busy.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import io
import json
import math
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import typer

import htagraph as hg
from benchmarks.processor_time import least, seconds_of
from htagraph.cli import main as cli
from htagraph.cli.verbs import VERBS
from htagraph.core.errors import HtagraphError
from htagraph.graph import load as loading
from htagraph.output import plot, validation
from htagraph.simulate.next_pftrace import as_pftrace
from tests.trace.nsys.made import exported

__all__ = ["ASIDE", "LIMIT", "PARAMETERS", "Growth", "commands", "exponent", "grown", "main"]

LIMIT = 1.15
"""Chosen: sorting many by comparisons has 1.1. Doubled, what is quadratic passes."""
_SHORT_S = 0.05
"""Seconds of processor time below which nothing is said. Chosen: so much varies on a busy machine."""
_LONG_S = 100
"""Seconds of processor time after which a command is ended."""

Json = dict[str, Any]
Job = Mapping[int, list[Json]]


class Made(NamedTuple):
    """Where a job was written, where its graph was saved, if it has one, and the seconds that reading it took."""

    folder: Path
    saved: Path | None
    load_seconds: float


# jobs of a size

_PID = 4100


def _event(cat: str, name: str, at: float, lasts: float, where: tuple[int, int], **args: object) -> Json:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": where[0], "tid": where[1], "ts": at, "dur": lasts, "args": args,
    }  # fmt: skip


def _step(number: int, at: float, lasts: float) -> Json:
    return _event("user_annotation", f"ProfilerStep#{number}", at, lasts, (_PID, 1))


def _work(i: int, at: float, thread: int = 1, stream: int = 7, device: int = 0, name: str = "") -> list[Json]:
    """Return an operator that launches a kernel, 100 µs in all."""
    host = (_PID, thread)
    return [
        _event("cpu_op", f"aten::mm{name}", at, 40, host, **{"External id": i, "Sequence number": i}),
        _event("cuda_runtime", "cudaLaunchKernel", at + 10, 5, host, correlation=i, **{"External id": i}),
        _event("kernel", f"gemm{name}", at + 30, 60, (device, stream), correlation=i, stream=stream, device=device),
    ]


def _collective(i: int, at: float, group: int = 0, ranks: str = "[0, 1]", size: int = 2) -> list[Json]:
    """Return an all-reduce of a process group, 100 µs in all."""
    more = {
        "Collective name": "allreduce", "Process Group Name": str(group), "Process Group Ranks": ranks,
        "Group size": size, "In msg nelems": 1000, "dtype": "Float", "stream": 20, "device": 0, "correlation": i,
    }  # fmt: skip
    return [
        _event("cuda_runtime", "cudaLaunchKernel", at + 10, 5, (_PID, 1), correlation=i),
        _event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 30, 60, (0, 20), **more),
    ]


def _alone(events: Sequence[list[Json]], steps: int = 4) -> Job:
    """Return a job of one rank: pieces of 100 µs, in some steps."""
    flat = [event for each in events for event in each]
    length = 100 * len(events) / steps
    return {0: [_step(number, number * length, length) for number in range(steps)] + flat}


def _events(n: int) -> Job:
    return _alone([_work(i, 100 * i) for i in range(n)])


def _ranks(n: int) -> Job:
    few = f"[0, 1, ..., {n - 1}]"
    pieces = [_work(i, 100 * i) if i % 4 else _collective(i, 100 * i, ranks=few, size=n) for i in range(16)]
    return dict.fromkeys(range(n), _alone(pieces)[0])


def _streams(n: int) -> Job:
    return _alone([_work(i, 100 * i, stream=7 + i % n) for i in range(4 * n)])


def _threads(n: int) -> Job:
    return _alone([_work(i, 100 * i, thread=1 + i % n) for i in range(4 * n)])


def _devices(n: int) -> Job:
    return _alone([_work(i, 100 * i, device=i % n) for i in range(4 * n)])


def _groups(n: int) -> Job:
    pieces = [[*_work(2 * i, 200 * i), *_collective(2 * i + 1, 200 * i + 100, group=i)] for i in range(n)]
    return {rank: _alone(pieces)[0] for rank in (0, 1)}


def _collectives(n: int) -> Job:
    pieces = [[*_work(2 * i, 200 * i), *_collective(2 * i + 1, 200 * i + 100)] for i in range(n)]
    return {rank: _alone(pieces)[0] for rank in (0, 1)}


def _names(n: int) -> Job:
    return _alone([_work(i, 100 * i, name=f"_{i % n}") for i in range(2 * n)])


def _long_names(n: int) -> Job:
    return _alone([_work(i, 100 * i, name=f"_{i % 8}<{'x, ' * n}>") for i in range(16)])


def _many_long_names(n: int) -> Job:
    arguments = "x, " * 3300  # 10 kB: more than is read for meaning
    return _alone([_work(i, 100 * i, name=f"_{i}<{arguments}{i}>") for i in range(n)])


def _steps(n: int) -> Job:
    return _alone([_work(i, 100 * i) for i in range(2 * n)], steps=n)


def _flows(n: int) -> Job:
    job = _alone([_work(i, 100 * i) for i in range(2 * n)])
    for i in range(n):
        both = {"cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": _PID, "tid": 1}
        job[0].append({"ph": "s", **both, "ts": 100 * i + 1})
        job[0].append({"ph": "f", "bp": "e", **both, "ts": 100 * (2 * n - i - 1) + 1})
    return job


def _nested(cat: str) -> Callable[[int], Job]:
    def job(n: int) -> Job:
        work = _alone([_work(i, 2 * n + 100 * i) for i in range(64)], steps=1)
        last = 4 * n + 6400
        names = ("outer", "middle", "inner")
        ids = ({"Python id": i, "Python parent id": i - 1} for i in range(n))
        where = (_PID, 1)
        around = [_event(cat, f"{names[i % 3]} {i}", i, last - 2 * i, where, **each) for i, each in enumerate(ids)]
        return {0: [*work[0], *around]}

    return job


def _waits(n: int) -> Job:
    def wait(i: int, at: float) -> list[Json]:
        host, calls = (_PID, 1), ("cudaStreamSynchronize", "cudaEventRecord", "cudaStreamWaitEvent", "cudaMalloc")
        return [*_work(2 * i, at), _event("cuda_runtime", calls[i % 4], at + 95, 4, host, correlation=2 * i + 1)]

    return _alone([wait(i, 100 * i) for i in range(n)])


def _pauses(n: int) -> Job:
    return _alone([_work(i, 5000 * i) if i % 2 else [] for i in range(n)], steps=1)


def _allocations(n: int) -> Job:
    def allocated(i: int) -> Json:
        args = {"Total Allocated": 512 * i, "Bytes": 512 if i % 2 else -512, "Addr": i // 2, "Device Type": 1}
        return {
            "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": _PID, "tid": 1,
            "ts": 100 * i + 5, "args": {**args, "Device Id": 0},
        }  # fmt: skip

    return _alone([[*_work(i, 100 * i), allocated(i)] for i in range(n)])


def _files(n: int) -> Job:
    return dict.fromkeys(range(-n, 0), _alone([_work(i, 100 * i) for i in range(2)])[0])


class Exported(NamedTuple):
    """A job that is written as an export of Nsight Systems."""

    job: Job


class Native(NamedTuple):
    """A job that is written in Perfetto's native format."""

    job: Job


def _exported(make: Callable[[int], Job]) -> Callable[[int], Exported]:
    return lambda n: Exported(make(n))


def _native(make: Callable[[int], Job]) -> Callable[[int], Native]:
    return lambda n: Native(make(n))


PARAMETERS: Mapping[str, tuple[int, Callable[[int], Job | Exported | Native]]] = {
    "events": (8000, _events), "ranks": (48, _ranks), "streams": (1000, _streams), "threads": (1000, _threads),
    "groups": (2000, _groups), "collectives": (2000, _collectives), "names": (4000, _names),
    "length of names": (20_000, _long_names), "long names": (500, _many_long_names),
    "depth of operators": (1000, _nested("cpu_op")),
    "depth of annotations": (1000, _nested("user_annotation")),
    "depth of Python": (1000, _nested("python_function")), "steps": (1000, _steps), "flows": (4000, _flows),
    "files without rank": (100, _files), "devices": (500, _devices), "waits": (4000, _waits),
    "pauses": (4000, _pauses), "allocations": (4000, _allocations),
    "exported events": (8000, _exported(_events)), "exported ranks": (192, _exported(_ranks)),
    "exported streams": (1000, _exported(_streams)), "exported names": (4000, _exported(_names)),
    "exported depth": (1000, _exported(_nested("user_annotation"))),
    "packets": (8000, _native(_events)), "packets in one another": (1000, _native(_nested("cpu_op"))),
}  # fmt: skip
"""By name: the smallest size of the whole grid, and the job of a size."""


def _written(job: Job, folder: Path) -> Path:
    """Write a job, a file per rank; ranks below 0 are files that do not say their rank."""
    folder.mkdir()
    texts: dict[int, str] = {}
    for rank, events in job.items():
        text = texts.setdefault(id(events), json.dumps(events))
        info = {"distributedInfo": {"rank": rank, "world_size": len(job)}} if rank >= 0 else {}
        head = json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10**18, **info})
        name = f"rank-{rank}.json" if rank >= 0 else f"trace_{'abcdefghij'[-rank % 10]}{chr(97 - rank // 10)}.json"
        (folder / name).write_text(f'{head[:-1]}, "traceEvents": {text}}}')
    return folder


def _made(job: Job | Exported | Native, folder: Path) -> Made:
    if isinstance(job, Exported):
        folder.mkdir()
        exported(folder / "job.sqlite", job.job)
    elif isinstance(job, Native):
        folder.mkdir()
        for rank, events in job.job.items():
            (folder / f"rank-{rank}.pftrace").write_bytes(as_pftrace({"traceEvents": events}))
    else:
        _written(job, folder)
    loaded: list[hg.DependencyGraph] = []
    seconds = seconds_of(lambda: _loaded(folder, loaded.append))
    saved = [hg.save(graph, folder.with_suffix(".htagraph")) for graph in loaded]
    return Made(folder, saved[0] if saved else None, seconds)


def _loaded(folder: Path, keep: Callable[[hg.DependencyGraph], None]) -> None:
    """Read a job; one that is refused must not take long either."""
    with contextlib.suppress(HtagraphError):
        keep(loading.load(folder))


# what is asked of a job

ASIDE = ("mcp", "serve", "schema", "demo", "simulate", "cache", "execution-trace")
"""Verbs without a job, or without an end; what serve shows is the page of report."""
_NOT_OF_ONE_JOB = ("diff", "sweep", "what_if")
_ASKED: Mapping[str, Sequence[str]] = {
    "critical-path": (
        "{job}", "{job} --segments -f json --perfetto {out}/a.json", "{job} --graphviz {out}/a.dot -o {out}/tables/",
    ),
    "what-if": (
        "{job} --network 2", "{job} --scale kind=computation:0.5", "{job} --fix-straggler auto --perfetto {out}/a.json",
        "{job} --no-overlap", "{job} --remove-sync name=*", "{job} --perfect-overlap", "{job} --sweep network=0.5,2",
    ),
    "counters": ("{job} --series -f json --perfetto {out}/a.json",),
    "patterns": ("{job} --operator aten --overlay {out}",),
    "kernels": ("{job}", "{job} --by operator", "{job} --by module", "{job} --by annotation", "{job} --by shape"),
    "diff": ("{job} {job}", "{job} {job} --names", "{job} {job} --names --by path"),
    "plan": ("{job}", "{job} -k 3"),
    "plot": tuple(f"{name} {{job}} -o {{out}}/a.html" for name in plot.__all__ if name not in _NOT_OF_ONE_JOB),
    "export": ("{job} --chakra {out}/chakra",),
    "report": ("{job} -o {out}/a.html", "{job} {job} --compare -o {out}/a.html"),
    "validate": ("{job}", "{job} --arguments"),
    "summary": ("{job}", "{job} --full -f json"),
}  # fmt: skip
"""What follows a verb, where this is not the job alone."""


def commands() -> list[str]:
    """Return the lines that are measured: ``{job}`` stands for the job, ``{out}`` for a folder; ``load`` is no verb."""
    lines = [f"{verb} {asked}" for verb in VERBS if verb not in ASIDE for asked in _ASKED.get(verb, ("{job}",))]
    return ["load {job}", *lines]


class Endless(BaseException):
    """A command took too long."""


def _ended(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise Endless


def _ran(line: str, job: Path, saved: Path | None) -> float:
    """Return the processor time of a command, in seconds; the graph is opened, not read."""
    with tempfile.TemporaryDirectory() as out, contextlib.ExitStack() as stack:
        for stream in ("stdout", "stderr"):
            stack.enter_context(patch.object(sys, stream, io.StringIO()))
        if _loads(line):
            return seconds_of(lambda: _loaded(job, lambda _: None))
        if saved is not None:
            for reader in (loading, validation):
                stack.enter_context(patch.object(reader, "load", lambda *_, **__: hg.open(saved)))
        stack.enter_context(patch.object(sys, "argv", ["htagraph", *line.format(job=job, out=out).split()]))
        return seconds_of(_answered)


def _loads(line: str) -> bool:
    return line.startswith("load ")


def _answered() -> None:
    """Run the command line; any error but that of an option is an answer: that there is no communication, say."""
    code: Any = 0
    try:
        cli.main()
    except SystemExit as left:
        code = left.code
    if code == typer.BadParameter.exit_code:
        raise ValueError(sys.stderr.getvalue())  # type: ignore[union-attr] # a text


@cache
def _small() -> Made:
    """Return the smallest job; it stays until the process ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return _made(_events(4), Path(folder, "job"))


@cache
def _start(line: str) -> float:
    """Return the processor time of a command on the smallest job, with what is compiled and imported by then.

    The first run reads the job: what is imported while `load` is replaced would keep what replaces it.
    """
    small = _small()
    _ran(line, small.folder, None)
    return _ran(line, small.folder, small.saved)


def _round(line: str, jobs: Mapping[int, Made]) -> dict[int, float]:
    """Return the seconds of a command by size; infinite from the first that does not end."""
    seconds: dict[int, float] = {}
    for size, made in jobs.items():
        endless = math.inf in seconds.values()
        seconds[size] = math.inf if endless else _within_patience(line, made)
    return seconds


def _first(line: str, jobs: Mapping[int, Made]) -> dict[int, float]:
    """Return the seconds of a command by size; those of reading are known."""
    return {size: made.load_seconds for size, made in jobs.items()} if _loads(line) else _round(line, jobs)


def _within_patience(line: str, made: Made) -> float:
    signal.setitimer(signal.ITIMER_PROF, _LONG_S)
    try:
        return _ran(line, made.folder, made.saved)
    except Endless:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Growth(NamedTuple):
    """Seconds of processor time of a command by size; the first is of a small job."""

    line: str
    seconds: Mapping[int, float]

    @property
    def exponent(self) -> float:
        """Its growth: infinite where a command did not end, 0 where nothing grows."""
        return exponent(self.seconds)


def exponent(seconds: Mapping[int, float]) -> float:
    """Return the power of the size that fits times, each less the first, which is that of start-up; 0 for one size.

    Example:
        >>> round(exponent({1: 1.0, 10: 2.0, 20: 5.0, 40: 17.0}), 2)
        2.0
    """
    if math.inf in seconds.values():
        return math.inf
    (_, start), *larger = seconds.items()
    if len(larger) == 1:
        return 0.0
    sizes, times = np.log([(size, max(took - start, _floor(start))) for size, took in larger]).T
    return float(np.polyfit(sizes, times, 1)[0])


def _floor(start: float) -> float:
    """Return the seconds above start-up below which nothing is said."""
    return max(_SHORT_S, start / 10)


def _cannot_exceed(limit: float, start: float, took: float, times: Sequence[int]) -> bool:
    """Return whether a command takes so little on the larger job that it cannot grow too fast from the smaller one."""
    return len(times) == 2 and took - start <= _floor(start) * (times[1] / times[0]) ** limit


def grown(
    parameter: str, lines: Sequence[str], share: float = 1.0, times: Sequence[int] = (1, 2, 4, 8), runs: int = 5,
    limit: float = LIMIT,
) -> Iterator[Growth]:  # fmt: skip
    """Yield the growth of some commands over jobs of several times a share of a parameter's smallest size.

    Each runs once, and up to so often where it seems to grow too fast: a busy machine only makes times longer. Then the
    small job is measured again too: of a start that seems long, a small size seems to add little. Of two sizes, the
    smaller one is not measured where the larger one takes too little to say anything.
    """
    smallest, make = PARAMETERS[parameter]

    def too_fast(seconds: Mapping[int, float]) -> bool:
        return limit < exponent(seconds) < math.inf

    signal.signal(signal.SIGPROF, _ended)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        sizes = [max(2, int(smallest * share)) * each for each in times]
        made = cache(lambda size: _made(make(size), Path(folder, str(size))))
        for line in lines:
            start = _start(line)
            largest = _first(line, {sizes[-1]: made(sizes[-1])})
            if _cannot_exceed(limit, start, largest[sizes[-1]], times):
                yield Growth(line, {1: start, **largest})
                continue
            jobs = {size: made(size) for size in sizes}
            smaller = _first(line, {size: jobs[size] for size in sizes[:-1]})
            measured = partial(_round, line, {1: _small(), **jobs})
            yield Growth(line, least(measured, too_fast, runs, {1: start, **smaller, **largest}))


def main() -> int:
    """Measure, print a row per parameter and command, and return 1 if one grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", nargs="*", default=list(PARAMETERS), choices=list(PARAMETERS))
    parser.add_argument("--only", default="", help="a regular expression for commands")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes of the whole grid")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    os.environ["HTAGRAPH_NO_CACHE"] = "1"
    lines = [line for line in commands() if re.search(given.only, line)]
    fast = 0
    for parameter in given.parameters:
        for growth in grown(parameter, lines, given.share, runs=given.runs):
            too_fast = growth.exponent > LIMIT
            fast += too_fast
            times = " ".join(f"{took:.2f}" for took in growth.seconds.values())
            mark = "FAST" if too_fast else ""
            print(f"{mark:4s} {growth.exponent:5.2f}  {parameter:22s} {growth.line:60s} {times}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{fast} grow faster than {LIMIT}; peak {peak:.1f} GB")
    return bool(fast)


if __name__ == "__main__":
    sys.exit(main())
