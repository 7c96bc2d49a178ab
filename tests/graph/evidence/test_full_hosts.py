"""Hosts all of whose cores were taken: as many threads at work as the files say there are cores."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.evidence.full_hosts import were_full
from htagraph.graph.evidence.job import RecordedJob

MS = 1_000_000


def two_ranks(folder: Path, cores: int) -> RecordedJob:
    """Return two ranks of a host; one is at work from 0 to 10 ms, the other from 5 to 15 ms."""
    for rank, begin_us in enumerate((0, 5_000)):
        event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": rank, "tid": rank, "ts": begin_us, "dur": 10_000}
        written = {
            "distributedInfo": {"rank": rank, "world_size": 2},
            "host_name": "one",
            "htagraph_profile": {"cores": list(range(cores))},
            "traceEvents": [event],
        }
        Path(folder, f"rank-{rank}.json").write_text(json.dumps(written))
    graph = hg.load(folder)
    works = np.arange(2)
    return cast(
        RecordedJob,
        SimpleNamespace(
            activities=graph.activities,
            traces=graph.traces,
            slices=(2 * works, 2 * works + 1, works),
            moment=lambda vertex: graph.time[vertex],
        ),
    )


@pytest.mark.parametrize(("cores", "full"), [(1, [1, 1, 1, 0]), (2, [0, 1, 0, 0]), (3, [0, 0, 0, 0]), (0, [0] * 4)])
def test_a_host_is_full_while_as_many_threads_work_as_it_has_cores(tmp_path: Path, cores: int, full: list[int]) -> None:
    job = two_ranks(tmp_path, cores)
    first = job.moment(np.arange(4)).min()
    moment = first + np.array([4, 10, 15, 16]) * MS
    assert were_full(job, np.zeros(4, np.int64), moment).astype(int).tolist() == full
