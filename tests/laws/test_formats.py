"""The graph of a job does not depend on which of PyTorch's backends wrote it: activities, edges, kinds and times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.simulate import Job, simulate
from htagraph.simulate.next_json import Dialect, in_next_dialect
from htagraph.simulate.next_pftrace import as_pftrace
from tests.reach import DATA, SHARED

NEXT = SHARED.parent / "next_profiler"
"""What PyTorch 2.14.1 wrote; absent where the folder of shared traces is."""
needs_next = pytest.mark.skipif(not NEXT.is_dir(), reason="needs files of PyTorch's next backend")
_NOT_CONVERTED = ("cuda_sync", "overhead", "gpu_user_annotation")
"""Categories of events that the conversion to those files leaves out."""


class Facts(NamedTuple):
    """What must be equal, in an order that does not depend on the order of a file."""

    activities: set[tuple[Any, ...]]
    edges: set[tuple[Any, ...]]


def facts_of(graph: DependencyGraph) -> Facts:
    acts = graph.activities
    lanes = [
        "" if lane < 0 else f"{graph.lanes[lane].rank} {graph.lanes[lane].device} {graph.lanes[lane].stream} "
        f"{graph.lanes[lane].tid if graph.lanes[lane].device < 0 else ''}"
        for lane in acts.lane.tolist()
    ]  # fmt: skip
    names = np.array(graph.names, object)[acts.name]
    columns = (acts.rank.tolist(), acts.kind.tolist(), lanes, acts.start.tolist(), acts.duration.tolist(), names)
    numbered: dict[tuple[Any, ...], int] = {}
    activities = []
    for row in zip(*columns, acts.step.tolist(), strict=True):
        numbered[row] = numbered.get(row, 0) + 1
        activities.append((*row, numbered[row]))
    ends = zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True)
    edges = {
        (activities[source // 2], source % 2, activities[target // 2], target % 2, kind, lag)
        for (source, target), kind, lag in zip(ends, graph.edges.kind.tolist(), graph.edges.lag.tolist(), strict=True)
    }
    return Facts(set(activities), edges)


def rewritten(source: Path, target: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Write the traces of a folder once more, each changed."""
    target.mkdir()
    for path in sorted(source.glob("*.json.gz")):
        (target / path.name.removesuffix(".gz")).write_text(
            json.dumps(change(json.loads(gzip.decompress(path.read_bytes()))))
        )
    return target


def native(source: Path, target: Path, dialect: Dialect | None = None) -> Path:
    """Write the traces of a folder once more, in Perfetto's native format."""
    target.mkdir()
    for path in sorted(source.glob("*.json.gz")):
        text = as_pftrace(json.loads(gzip.decompress(path.read_bytes())), dialect)
        (target / path.name.replace(".json.gz", ".pftrace")).write_bytes(gzip.compress(text, 1))
    return target


def without_directions(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace that says of copies what PyTorch writes to a `.pftrace`, which is not their direction."""
    events = [
        {**event, "name": "Memcpy"} if event.get("cat") == "gpu_memcpy" and event["ph"] == "X" else event
        for event in trace["traceEvents"]
    ]
    return {**trace, "traceEvents": events}


def assert_equal(one: DependencyGraph, other: DependencyGraph) -> None:
    first, second = facts_of(one), facts_of(other)
    assert first.activities == second.activities
    assert first.edges == second.edges
    assert hg.replay(other).max_error_ns == 0
    other.check()


JOBS = {
    "data parallel": Job(ranks=2, steps=2, layers=2),
    "forward as a graph": Job(ranks=2, steps=3, layers=2, cuda_graph="forward"),
    "optimizer as a graph": Job(ranks=2, steps=3, layers=2, cuda_graph="optimizer", input_memory="pageable"),
    "without rows of waits": Job(ranks=2, steps=3, layers=3, cuda_sync=False, item="pinned", clock_offsets_us=(0, 800)),
    "sharded": Job(ranks=2, steps=2, layers=2, data_strategy="fsdp", cuda_graph="optimizer"),
}


@pytest.mark.parametrize("lanes", [0, 1, 3])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_simulated_jobs(job: Job, lanes: int, tmp_path: Path) -> None:
    simulate(job).write(tmp_path / "kineto", level=1, truth=False)
    samples = [("SM Active (%)", 0, 1.5, 80.0)]
    dialect = Dialect(lanes=lanes, samples=samples)
    rewritten(tmp_path / "kineto", tmp_path / "next", lambda trace: in_next_dialect(trace, dialect))
    assert_equal(hg.load(tmp_path / "kineto"), hg.load(tmp_path / "next"))


@pytest.mark.parametrize("lanes", [0, 3])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_simulated_jobs_in_perfettos_format(job: Job, lanes: int, tmp_path: Path) -> None:
    simulate(job).write(tmp_path / "kineto", level=1, truth=False)
    samples = [("SM Active (%)", 0, 1.5, 80.0)]
    after = hg.load(native(tmp_path / "kineto", tmp_path / "next", Dialect(lanes=lanes, samples=samples)))
    assert_equal(hg.load(rewritten(tmp_path / "kineto", tmp_path / "bare", without_directions)), after)
    copied = [name.startswith("Memcpy") for name in after.names]
    whole = hg.load(tmp_path / "kineto")
    assert len(whole.activities) == len(after.activities)
    assert any(copied)
    waits = [int((graph.edges.kind != EdgeKind.MEMCPY_SYNC).sum()) for graph in (whole, after)]
    assert waits[0] == waits[1]  # the direction decides about nothing else


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "gloo_ddp"])
def test_jobs_of_the_repository_in_perfettos_format(name: str, tmp_path: Path) -> None:
    bare = rewritten(DATA / name, tmp_path / "bare", without_directions)
    assert_equal(hg.load(bare), hg.load(native(DATA / name, tmp_path / "next")))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "gloo_ddp"])
def test_jobs_of_the_repository(name: str, tmp_path: Path) -> None:
    after = rewritten(DATA / name, tmp_path / "next", lambda trace: in_next_dialect(trace, Dialect(lanes=2)))
    assert_equal(hg.load(DATA / name), hg.load(after))


@needs_next
def test_the_demo_as_the_next_backend_wrote_it(tmp_path: Path) -> None:
    def without_rows(trace: dict[str, Any]) -> dict[str, Any]:
        return {**trace, "traceEvents": [e for e in trace["traceEvents"] if e.get("cat") not in _NOT_CONVERTED]}

    kineto = hg.load(rewritten(DATA / "demo", tmp_path / "demo", without_rows))
    after = hg.load(NEXT / "demo_json")
    assert_equal(kineto, after)
    assert int((after.edges.kind == EdgeKind.MEMCPY_SYNC).sum()) == 12
    assert hg.stragglers(after).straggler == hg.stragglers(hg.load(DATA / "demo")).straggler == 2


@needs_next
def test_the_demo_in_perfettos_format(tmp_path: Path) -> None:
    after = hg.load(NEXT / "demo_pftrace")
    bare = rewritten(NEXT / "demo_json", tmp_path / "bare", without_arguments_of_copies)
    assert_equal(hg.load(bare), after)
    assert int((after.edges.kind == EdgeKind.MEMCPY_SYNC).sum()) == 12  # by sizes and times
    assert hg.stragglers(after).straggler == 2
    assert [trace.issues for trace in after.traces.values()] == [()] * 4


def without_arguments_of_copies(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace of the next backend without the arguments that say a copy's direction."""
    keys = {"copy kind", "src kind", "dst kind"}
    events = [
        {**event, "args": {key: value for key, value in event["args"].items() if key not in keys}}
        if event.get("cat") == "gpu_memcpy" and event["ph"] == "X"
        else event
        for event in trace["traceEvents"]
    ]
    return {**trace, "traceEvents": events}


@needs_next
@pytest.mark.parametrize("name", ["graph_with_dependencies", "graph_with_lanes", "graph_pftrace"])
def test_graphs_with_dependencies(name: str, tmp_path: Path) -> None:
    after = hg.load(NEXT / name)
    change = without_arguments_of_copies if name == "graph_pftrace" else dict[str, Any]
    assert_equal(hg.load(rewritten(NEXT / "graph_plain", tmp_path / "plain", change)), after)
    (trace,) = after.traces.values()
    assert len(trace.dependencies) == 420
    position = {event: row for row, event in enumerate(after.activities.event.tolist())}
    by_id = after.edges.take(after.edges.provenance == Provenance.OBSERVED)
    observed = set(zip(by_id.source.tolist(), by_id.target.tolist(), strict=True))
    ends = zip(trace.dependencies.source.tolist(), trace.dependencies.target.tolist(), strict=True)
    assert all((2 * position[source] + 1, 2 * position[target]) in observed for source, target in ends)


def test_samples_are_the_same_in_both_formats(tmp_path: Path) -> None:
    simulate(Job(ranks=2, steps=2, layers=2, backend="cupti")).write(tmp_path / "json", level=1, truth=False)
    after = hg.load(native(tmp_path / "json", tmp_path / "native", Dialect()))
    before = hg.load(tmp_path / "json")
    samples = hg.device_samples(before)
    assert set(samples["counter"]) == {"Power (W)", "SM Active (%)"}
    pd.testing.assert_frame_equal(hg.device_samples(after), samples)
    pd.testing.assert_frame_equal(hg.device_samples(after, by="counter"), hg.device_samples(before, by="counter"))
