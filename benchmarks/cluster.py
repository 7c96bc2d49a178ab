"""A job of thousands of ranks end to end on a local Dask cluster of two workers, one of which is killed on the way.

    python benchmarks/cluster.py --ranks 4096 --folder /tmp/ranks

A simulated data-parallel job of 128 ranks is written once, and copied with other rank numbers: as many files as the job
has ranks, each with collectives over all of them. One file is damaged. What is printed: the time and processor time of
reading and digesting, of joining and of answers; how many bytes the digests have; and which ranks the answers lack.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import htagraph as hg
from htagraph.simulate import Job, simulate

_SIMULATED = 128
"""Ranks that are simulated; the others are copies. Chosen: a minute of simulation."""
_PER_HOST = 8
"""Ranks of a host. Chosen: as on machines with eight devices. Doubled, more pairs of clocks are compared."""
_SIZES = ((1, 50_000), (8, 5_000), (48, 1_456), (160, 450), (256, 10))
"""Of each 256 ranks, the first of how many have how many events at least; chosen: 3 million events of 4,096 ranks."""
_SHOWN_MEMBERS = 30
"""Ranks that PyTorch lists of a group before it writes dots."""


def write_job(folder: Path, ranks: int, *, mixed: bool = False) -> None:
    """Write the files of a job of many ranks, if they are not there; `mixed`: of ten events to 50,000 each."""
    base = folder.parent / f"{folder.name}-base"
    if not base.exists():
        simulate(Job(ranks=min(ranks, _SIMULATED), steps=2, layers=2)).write(base)
    folder.mkdir(exist_ok=True)
    members = list(range(ranks))
    listed = json.dumps(members) if ranks <= _SHOWN_MEMBERS else f"{str(members[:29])[:-1]}, ..., {ranks - 1}]"
    traces = {}
    for path in base.glob("rank-*.json.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        text = re.sub(r'"Process Group Ranks": "[^"]*"', f'"Process Group Ranks": "{listed}"', text)
        text = re.sub(r'"Group size": \d+', f'"Group size": {ranks}', text)
        text = re.sub(r'"(world_size|pg_size)": \d+', rf'"\1": {ranks}', text)
        text = re.sub(r'"ranks": \[[^\]]*\]', f'"ranks": {members}', text)
        traces[int(path.name.split("-")[1].split(".")[0])] = json.loads(text)
    for rank in range(ranks):
        path = folder / f"rank-{rank}.json.gz"
        if not path.exists():
            own = traces[rank % len(traces)]
            size = next(size for most, size in _SIZES if rank % 256 < most) if mixed else len(own["traceEvents"])
            events = _of_size(own["traceEvents"], size)
            info = {**own["distributedInfo"], "rank": rank}
            header = {**own, "distributedInfo": info, "host_name": f"host-{rank // _PER_HOST}"}
            path.write_bytes(gzip.compress(json.dumps({**header, "traceEvents": events}).encode(), 1))


def _of_size(events: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """Return about so many of some events, or these and others on a thread beside them."""
    work = [each for each in events if each["ph"] == "X" and each["cat"] != "Trace"]
    if size < len(work) // 8:
        return work[:size]
    if size < len(events):  # without operators
        return [each for each in events if each["ph"] not in "sf" and each.get("cat") != "cpu_op"]
    first, last = (find(each["ts"] for each in work) for find in (min, max))
    more = max(0, size - len(events))
    beside = next(each for each in work if each["cat"] == "cpu_op")
    beside = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": beside["pid"], "tid": 1, "dur": 0.5}
    return events + [{**beside, "ts": round(first + (last - first) * at / more, 3)} for at in range(more)]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--mixed", action="store_true", help="ranks of ten events to 50,000 each")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    write_job(given.folder, given.ranks, mixed=given.mixed)
    damaged = given.folder / f"rank-{given.ranks // 2}.json.gz"
    damaged.write_bytes(damaged.read_bytes()[:100])
    import distributed

    make_cluster: Any = distributed.LocalCluster  # without types
    make_client: Any = distributed.Client

    with (
        make_cluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        make_client(cluster) as client,
    ):
        _measure(given.folder, client)
    print(f"processor time of the workers: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f} s")


def _measure(folder: Path, client: Any) -> None:  # noqa: ANN401 - of distributed
    killed: list[int] = []

    def kill_one(share: float) -> None:
        if share > 0.3 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    began, used = time.perf_counter(), time.process_time()
    job = hg.load(folder, engine=client, progress=kill_one)
    print(f"{job}\nread, digested and joined in {time.perf_counter() - began:.0f} s, of which this process computed "
          f"{time.process_time() - used:.0f} s; killed process {killed}")  # fmt: skip
    print(f"missing: {job.missing}")
    for name in ("makespan_ns", "step_times", "critical_path", "waits", "stragglers"):
        began = time.process_time()
        answer = getattr(job.moments, name)()
        print(f"{name}: {time.process_time() - began:.1f} s of this process; {type(answer).__name__}")
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = hg.temporal_breakdown(job)
    took = time.perf_counter() - began
    print(f"temporal_breakdown: {len(table)} ranks in {took:.0f} s, missing {table.attrs['missing']}")
    print(f"largest memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
