"""The profiler before Kineto: flows name the operator of each piece of device work, and no call is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.trace.readers import READERS
from tests.reach import SHARED
from tests.strategies import Json

LEGACY = SHARED.parent / "cases" / "recordings" / "legacy_autograd.json.gz"


def recorded(*works: tuple[str, float, float, float, float]) -> list[Json]:
    """Return operators, their times on a device and flows, as the profiler before Kineto wrote all of them.

    Args:
        works: name, start and length of an operator, start and length on the device, µs; a length of 0 on the device is
            no device work.
    """
    events: list[Json] = []
    for name, start, lasts, begins, runs in works:
        host = {"name": name, "pid": "CPU functions", "tid": 1, "ts": start, "args": {}}
        events.append({**host, "ph": "X", "dur": lasts})
        if runs:
            device = {"name": name, "pid": "CUDA functions", "tid": 0, "ts": begins, "args": {}}
            flow = {"id": len(events), "cat": "cpu_to_cuda"}
            events += [
                {**host, "ph": "s", **flow},
                {**device, "ph": "f", **flow},
                {**device, "ph": "X", "dur": runs},
            ]
    return events


def written(folder: Path, events: list[Json]) -> Path:
    path = folder / "legacy.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    return path


def operators(graph: hg.DependencyGraph) -> list[tuple[str, str]]:
    acts = graph.activities
    work = np.flatnonzero(acts.on_device)
    return [
        (graph.names[acts.name[row]], graph.names[acts.name[acts.cause[row]]]) for row in work if acts.cause[row] >= 0
    ]


def test_work_names_its_operator(tmp_path: Path) -> None:
    events = recorded(("aten::mm", 10, 20, 15.5, 100), ("aten::empty", 12, 3, 0, 0), ("aten::add", 40, 9, 120, 30))
    graph = hg.load(written(tmp_path, events))
    assert operators(graph) == [("aten::mm", "aten::mm"), ("aten::add", "aten::add")]
    assert not [issue for issue in graph.issues if issue.what == "launch_missing"]
    assert [(int(graph.edges.lag[row])) for row in np.flatnonzero(graph.edges.kind == hg.EdgeKind.LAUNCH)]


def test_a_flow_without_an_event_at_both_ends_links_nothing(tmp_path: Path) -> None:
    events = recorded(("aten::mm", 10, 20, 15.5, 100), ("aten::add", 40, 9, 120, 30))
    lost = [event for event in events if not (event["name"] == "aten::add" and event["pid"] == "CPU functions")]
    unended = [event for event in lost if event["ph"] != "f" or event["name"] != "aten::mm"]
    assert operators(hg.load(written(tmp_path, lost))) == [("aten::mm", "aten::mm")]
    assert operators(hg.load(written(tmp_path, unended))) == []


@pytest.mark.parametrize("compiled", [False, True])
def test_both_ways_to_read_a_file_link_alike(tmp_path: Path, compiled: bool) -> None:  # noqa: FBT001
    path = written(tmp_path, recorded(("aten::mm", 10, 20, 15.5, 100), ("aten::add", 40, 9, 120, 30)))
    trace = READERS["kineto"].columns(path, lambda facts, log: 0, compiled=compiled)
    assert trace.events.arg("external_id").tolist() == [1, 1, 3, 3]


@pytest.mark.skipif(not LEGACY.exists(), reason="the shared recordings are not here")
def test_a_recording_of_operators_alone_is_bound_by_its_device() -> None:
    graph = hg.load(LEGACY)
    assert len(operators(graph)) == int(graph.activities.on_device.sum())
    job = hg.what_if(graph)
    makespan = graph.time.max() - graph.time.min()
    assert job.scale(kind="computation", factor=0.0).run().saved_ns > 0.97 * makespan
    assert job.scale(kind="computation", factor=0.5).run().saved_ns > 0.97 * makespan / 2
    assert job.infinite_host().run().saved_ns < 0.01 * makespan
    assert hg.replay(graph).max_error_ns == 0
