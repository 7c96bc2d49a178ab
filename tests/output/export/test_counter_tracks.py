"""Counters beside recorded events: as the tables have them, each in the process of its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.output.export.counter_tracks import bandwidths, memory, queues
from htagraph.output.export.perfetto_job import Job
from tests.reach import DATA, graph_of


def job_of(path: Path) -> Job:
    return Job.of(graph_of(path), "o.json")


def test_every_row_of_the_tables_is_a_value() -> None:
    job = job_of(DATA / "demo")
    lengths, copies = hg.queue_length(job.graph), hg.memory_bandwidth(job.graph)
    found = list(queues(lengths, job))
    assert sum(len(each) for each in found) == len(lengths)
    assert len(found) == len(lengths.groupby(["rank", "device", "stream"]))
    assert [float(each.value.max()) for each in found] == lengths.groupby(["rank", "device", "stream"], sort=False)[
        "queue_length"
    ].max().tolist()
    assert sum(len(each) for each in bandwidths(copies, job)) == len(copies)
    assert all((each.moment >= 0).all() for each in found)


def table(device: str) -> pd.DataFrame:
    return pd.DataFrame({"rank": [0, 0], "device": [device] * 2, "time_us": [1.5, 2.0], "allocated_bytes": [10, 5],
                         "reserved_bytes": [0, 0]})  # fmt: skip


@pytest.mark.parametrize("device", ["cuda:0", "cpu", "cuda:9"])
def test_memory_lies_with_its_device_or_with_the_host(device: str) -> None:
    job = job_of(DATA / "demo")
    (one,) = memory(table(device), job)  # nothing is reserved
    pids = job.device_pids()
    assert one.pid == (pids[0, 0] if device == "cuda:0" else pids[0, -1])
    assert (one.name, one.series, one.value.tolist()) == ("memory allocated", device, [10, 5])
    assert (one.moment - (job.graph.origin_ns - job.base_ns)).tolist() == [1_500, 2_000]


def test_memory_of_a_rank_without_activities_is_left_out() -> None:
    frame: Any = table("cpu").assign(rank=77)
    assert not list(memory(frame, job_of(DATA / "demo")))
