"""Halving and doubling a threshold changes no conclusion: who met whom, and what a what-if predicts.

The jobs are the demo and generated ones: without arguments, on skewed clocks, with blocked hosts. Measured on all of
them, no constant, halved or doubled, changed a collective, or a prediction by as much as `BAND`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.graph.construction.build import build
from htagraph.graph.tolerances import LIMITS
from htagraph.simulate import Job, simulate
from htagraph.trace.discover import rank_files
from htagraph.trace.readers import read_trace
from tests.reach import DATA

THRESHOLDS = (
    "resolution_ns", "tick_ns", "two_clocks_ns", "proven_by_id_ns", "host_clocks_ns", "clock_estimates_ns",
    "ends_ns", "window_ns", "launch_ns", "idle_start_ns", "queued_ns", "pause_ns",
    "own_call_ns", "jitter_ns", "usual_return_ns", "long_call_ns",
    "python_ns", "turn_ns", "damaged", "spreads", "times_usual", "often",
    "few", "tried", "close_ns", "for_drift", "transfer_ratio",
    "track_neighbours", "times_worse", "tested",
)  # fmt: skip
"""The fields of the tolerances that decide conclusions; shares near 1 cannot be doubled, nor can `proof`: short
recordings have few collectives."""
BAND = 0.002
"""By how much at most, as a share of the makespan, a prediction changes."""
JOBS = {
    "without arguments": Job(
        ranks=4, tp=2, group_args=False, clock_offsets_us=(0.0, 4321.0, -250.0, 17.5), steps=2, layers=2
    ),
    "pipeline": Job(ranks=2, parallelism="pipeline", group_args=False, steps=2, layers=2),
    "blocked hosts": Job(
        ranks=2, cuda_sync=False, input_memory="pageable", item="pinned", synchronize="step", steps=2, layers=2
    ),
    "full queue": Job(ranks=1, queue_depth=32, kernel_us=200.0, optimizer="loop", item="none", steps=2, layers=2),
}


@cache
def parts() -> dict[str, list[RankPart]]:
    """Return what was read of each job, before anything is matched or linked."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, job in JOBS.items():
            simulate(job).write(Path(folder, name), truth=False)
        folders = [DATA / "demo", *(Path(folder, name) for name in JOBS)]
        for path in folders:
            out[path.name] = [
                prepare(read_trace(file.path, file.rank_in, None), DEFAULT_NAMING) for file in rank_files(path)
            ]
    return out


def conclusions(graph: DependencyGraph) -> tuple[list[tuple[str, frozenset[tuple[int, int]]]], list[float]]:
    """Return (the collectives with their members as (rank, event), the makespans that what-ifs predict, ns)."""
    found, acts = graph.matches, graph.activities
    assert found is not None
    members: list[set[tuple[int, int]]] = [set() for _ in range(found.count)]
    for activity, collective in zip(found.activity.tolist(), found.collective.tolist(), strict=True):
        members[collective].add((int(acts.rank[activity]), int(acts.event[activity])))
    met = sorted(((op, frozenset(each)) for op, each in zip(found.op, members, strict=True)), key=repr)
    predicted = [
        hg.what_if(graph).scale(factor=factor, kind=kind).run().makespan_ns
        for kind, factor in (("computation", 0.5), ("communication", 0.25))
        if len(graph.select(kind=kind))
    ]
    return met, [float(each) for each in predicted]


@cache
def as_they_are() -> dict[str, tuple[list[tuple[str, frozenset[tuple[int, int]]]], list[float], int]]:
    """Return by job its conclusions under the constants as they are, and its makespan, ns."""
    graphs = {name: build(ranks) for name, ranks in parts().items()}
    return {name: (*conclusions(graph), int(graph.time.max() - graph.origin_ns)) for name, graph in graphs.items()}


def scale(name: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiply a field of the tolerances by a factor; it keeps its type."""
    value = getattr(LIMITS, name)
    other = type(value)(max(1, round(value * factor)) if isinstance(value, int) else value * factor)
    monkeypatch.setitem(vars(LIMITS), name, other)


def worst_change(jobs: Iterable[str]) -> float:
    """Return by how much predictions change at most, as a share of the makespan; the collectives must not change."""
    worst = 0.0
    for job in jobs:
        met, predicted = conclusions(build(parts()[job]))
        before_met, before, makespan = as_they_are()[job]
        assert met == before_met, f"{job}: other collectives"
        worst = max([worst, *(abs(one - other) / makespan for one, other in zip(predicted, before, strict=True))])
    return worst


@pytest.mark.parametrize("factor", [0.5, 2])
@pytest.mark.parametrize("name", THRESHOLDS)
def test_no_conclusion_hangs_on_one_threshold(name: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    as_they_are()
    scale(name, factor, monkeypatch)
    assert worst_change(JOBS) <= BAND


@pytest.mark.parametrize("factor", [0.5, 2])
def test_no_conclusion_hangs_on_all_thresholds_together(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    as_they_are()
    for name in THRESHOLDS:
        scale(name, factor, monkeypatch)
    assert worst_change(("demo",)) <= BAND


def test_a_threshold_of_nothing_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no spread at all is allowed, the stages of the pipeline are not linked: a prediction changes by 9 %."""
    _, before, makespan = as_they_are()["pipeline"]
    monkeypatch.setattr("htagraph.graph.construction.matching.clusters.LIMITS", replace(LIMITS, ends_ns=0))
    met, predicted = conclusions(build(parts()["pipeline"]))
    assert met == []
    changes = [abs(one - other) / makespan for one, other in zip(predicted, before, strict=True)]
    assert 0.08 < max(changes) < 0.11
