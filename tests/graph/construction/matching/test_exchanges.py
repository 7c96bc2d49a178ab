"""Kernels without a known name are communication where arguments, calls or times show it, and nowhere else."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import ActivityKind
from htagraph.graph.construction.matching.exchanges import shown_by_times
from htagraph.simulate import REGIMES, simulate
from tests.reach import SHARED
from tests.strategies import Json, kernel, launch, load, op

UNKNOWN = "mycomm::exchange"
_TELLING = re.compile(r"ollective|rocess Group|roup size|msg nelems|dtype|split size|Rank|Seq$|comm")


def counts(graph: DependencyGraph) -> dict[str, Counter[str]]:
    """Return how many activities of each name are communication, and how many computation."""
    acts = graph.activities
    return {
        kind.label: Counter(graph.names[name] for name in acts.name[acts.kind == kind].tolist())
        for kind in (ActivityKind.COMMUNICATION, ActivityKind.COMPUTATION)
    }


# one rank: arguments and calls


def test_a_kernel_whose_arguments_name_a_group_is_communication() -> None:
    told = kernel(UNKNOWN, 10, 5, 1)
    told["args"] |= {"Process Group Name": "0", "Collective name": "allreduce"}
    found = counts(load([launch(0, 1, 1), told, launch(2, 1, 2), kernel("mine", 20, 5, 2)]))
    assert found == {"communication": Counter([UNKNOWN]), "computation": Counter(["mine"])}


@pytest.mark.parametrize("call", ["c10d::allreduce_", "symm_mem::one_shot_all_reduce", "nccl:all_reduce"])
def test_a_kernel_that_an_operator_of_communication_launched_is_communication(call: str) -> None:
    found = counts(load([op(call, 0, 50), launch(5, 1, 1), kernel(UNKNOWN, 60, 5, 1)]))
    assert found["communication"] == Counter([UNKNOWN])


@pytest.mark.parametrize(
    ("inner", "name"),
    [("aten::copy_", UNKNOWN), ("c10d::allreduce_", "checkForNaN"), ("mine::matmul", UNKNOWN)],
)
def test_what_prepares_data_inside_an_operator_of_communication_computes(inner: str, name: str) -> None:
    found = counts(load([op("c10d::allreduce_", 0, 50), op(inner, 1, 20), launch(5, 1, 1), kernel(name, 60, 5, 1)]))
    assert found["computation"] == Counter([name])


def test_kernels_whose_call_is_not_recorded_are_what_others_of_their_name_are() -> None:
    events = [op("c10d::allreduce_", 0, 50), launch(5, 1, 1), kernel(UNKNOWN, 60, 5, 1), kernel(UNKNOWN, 70, 5, 99)]
    assert counts(load(events))["communication"] == Counter({UNKNOWN: 2})


# several ranks: times


def meeting(seed: int, *, wait: bool, call: str = "", other: bool = False, count: int = 12) -> dict[int, list[Json]]:
    """Return two ranks whose kernels arrive apart: they end together if they wait, else each takes its own time."""
    draw = np.random.default_rng(seed)
    job: dict[int, list[Json]] = {0: [], 1: []}
    now = 1000
    for i in range(count):
        arrive = now + draw.integers(0, 400, 2)
        lasts = draw.integers(10, 300, 2)
        end = np.full(2, arrive.max() + 20) if wait else arrive + lasts
        now = int(end.max()) + 200
        for rank, events in job.items():
            at = int(arrive[rank])
            launched = at - 60
            events += [op(call, launched - 5, 20)] if call else []
            events += [launch(launched, 2, i + 1), kernel(UNKNOWN, at, int(end[rank]) - at, i + 1, stream=20)]
            if other:
                events.append(kernel("ncclDevKernel_AllReduce_Sum", at + 1, int(end[rank]) - at, 1000 + i, stream=21))
    return job


@pytest.mark.parametrize("seed", range(5))
def test_kernels_that_arrive_apart_and_end_together_are_communication(seed: int) -> None:
    graph = load(meeting(seed, wait=True))
    assert counts(graph)["communication"] == Counter({UNKNOWN: 24})
    (issue,) = (each for each in graph.issues if each.what == "communication_by_times")
    assert UNKNOWN in issue.detail
    assert issue.count == 24


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "how",
    [
        {"wait": False},
        {"wait": True, "call": "aten::add"},
        {"wait": True, "other": True},
        {"wait": True, "count": 4},
    ],
    ids=["own time", "operator of ATen", "beside other communication", "too few"],
)
def test_kernels_that_show_no_wait_of_their_own_compute(seed: int, how: dict[str, Any]) -> None:
    assert UNKNOWN in counts(load(meeting(seed, **how)))["computation"]


def test_beside_communication_that_takes_no_time_kernels_may_show_a_wait() -> None:
    job = meeting(1, wait=True)
    for events in job.values():
        events.append(kernel("ncclDevKernel_AllReduce_Sum", 1500, 0, 1000, stream=21))
    assert counts(load(job))["communication"][UNKNOWN] == 24


def test_one_rank_alone_shows_no_waits() -> None:
    assert counts(load({0: meeting(1, wait=True)[0]}))["communication"] == Counter()


# simulated jobs and recordings of several ranks


def unnamed(folder: Path, into: Path) -> Path:
    """Write a job without what tells that kernels are communication: their names, their calls, their arguments."""
    into.mkdir()
    for path in sorted(folder.glob("*.json*")):
        data = path.read_bytes()
        root = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
        for event in root["traceEvents"]:
            name = event.get("name", "")
            if event.get("cat") == "kernel" and "nccl" in name:
                event["name"] = UNKNOWN
            elif name.startswith(("c10d::", "nccl:", "record_param_comms")):
                event["name"] = "mycomm::call"
            event["args"] = {key: value for key, value in event.get("args", {}).items() if not _TELLING.search(key)}
        (into / path.name.removesuffix(".gz")).write_text(json.dumps(root))
    return into


def told_by_times(graph: DependencyGraph) -> set[str]:
    """Return the names of kernels of computation that times alone would call communication, asking nothing else."""
    acts = graph.activities
    rows = np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)
    found = shown_by_times(acts, graph.names, rows, np.full(len(rows), -1))
    return {graph.names[name] for name in acts.name[found].tolist()}


@pytest.mark.slow
@pytest.mark.parametrize("regime", sorted(set(REGIMES) - {"pipeline"}))
def test_simulated_collectives_are_found_without_names_and_nothing_else_is(regime: str, tmp_path: Path) -> None:
    simulate(REGIMES[regime]()).write(tmp_path / "job", suffix=".json", truth=False)
    before = counts(hg.load(tmp_path / "job"))
    graph = hg.load(unnamed(tmp_path / "job", tmp_path / "unnamed"))
    assert counts(graph)["communication"] == Counter({UNKNOWN: before["communication"].total()})
    assert counts(graph)["computation"] == before["computation"]
    assert told_by_times(graph) == set()


@pytest.mark.slow
def test_of_sends_and_receives_of_a_pipeline_times_tell_nothing_wrong(tmp_path: Path) -> None:
    simulate(REGIMES["pipeline"]()).write(tmp_path / "job", suffix=".json", truth=False)
    graph = hg.load(unnamed(tmp_path / "job", tmp_path / "unnamed"))
    assert set(counts(graph)["communication"]) <= {UNKNOWN}
    assert told_by_times(graph) <= {UNKNOWN}


FOLDERS = [
    folder
    for folder in (
        SHARED / "megatron_tp8_a100", SHARED / "torchrec_v100_equal", SHARED / "torchrec_v100_leading_missing",
        SHARED.parent / "next_profiler" / "demo_json",
    )
    if folder.exists()
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_recorded_collectives_are_found_without_names_and_nothing_else_is(folder: Path, tmp_path: Path) -> None:
    before = hg.load(folder)
    graph = hg.load(unnamed(folder, tmp_path / "unnamed"))
    assert counts(graph)["communication"] == Counter({UNKNOWN: counts(before)["communication"].total()})
    assert counts(graph)["computation"] == counts(before)["computation"]
    assert told_by_times(before) == told_by_times(graph) == set()
