"""Halving and doubling a threshold changes no conclusion: who met whom, and what a what-if predicts.

The jobs are the demo and generated ones: without arguments, on skewed clocks, with blocked hosts. Measured on all of
them, no constant, halved or doubled, changed a collective, or a prediction by as much as `BAND`.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.graph.construction.build import build
from htagraph.simulate import Job, simulate
from htagraph.trace.discover import rank_files
from htagraph.trace.kineto.read import read_trace
from tests.reach import DATA

MATCHING, GRAPH = "htagraph.graph.construction.matching", "htagraph.graph"
CONSTANTS = {
    f"{GRAPH}.shared_clocks": ("_TOLERANCE_NS", "_MAX_SPREADS", "_MIN_FOR_OFFSET"),
    f"{GRAPH}.clock_fits": ("RESOLUTION_NS", "_CLOSE_NS", "MIN_FOR_DRIFT", "_MIN_DRIFT_SPREADS", "_MAX_SWEEPS"),
    f"{GRAPH}.matches": ("_TRANSFER_PERCENTILE", "_MAX_TRANSFER_RATIO", "_MIN_MESSAGES", "_MAX_VIOLATED_SHARE",
                         "_TOLERANCE_NS"),
    f"{MATCHING}.sequence_alignment": (
        "TOLERANCE_NS", "FLOOR_NS", "_NEAR_SHIFTS", "MAX_VIOLATED", "MIN_PROOF", "PRIOR_NS"),
    f"{MATCHING}.pairs": ("_NEIGHBOURS",),
    f"{MATCHING}.clusters": ("_COMPRESSED", "_MAX_OFFSET_ERROR_NS", "_MUCH_BETTER"),
    f"{MATCHING}.timing_check": ("_MAX_VIOLATED", "_MIN_PROOF", "_FOREIGN_TIMES", "_FOREIGN_NS", "_FOREIGN_PAIR_NS"),
    f"{MATCHING}.partners": ("_MAX_APART_NS", "_MAX_SPREAD_NS", "_MIN_TIMES_WORSE", "_RESOLUTION_NS"),
    f"{MATCHING}.match": ("_SWAP_NS",),
    f"{GRAPH}.construction.fit": ("_ONE_CLOCK_NS", "_TWO_CLOCKS_NS", "_LAUNCH_NS"),
    f"{GRAPH}.construction.latency": ("_UNKNOWN_NS", "_MAX_START_NS", "_MAX_TIMES_USUAL"),
    f"{GRAPH}.construction.settle": ("_UNKNOWN_OWN_NS", "_MAX_PAUSE_NS", "_MAX_RETURN_NS"),
    f"{GRAPH}.evidence.wait_hypotheses": ("TOLERANCE_NS", "_USUAL_RETURN_NS", "_MAX_RETURN_NS", "_MIN_RETURNS",
                                  "_MAX_RECORDS_BACK", "_SAMPLE", "_MAX_WINDOW_NS"),
    f"{GRAPH}.evidence.stream_waits": ("WINDOW_NS", "LATENCY_NS", "_MAX_PLACES"),
    f"{GRAPH}.rules.stream": ("_AHEAD_NS", "_MAX_PAUSE_NS", "_MIN_PAUSES", "_USUAL_PAUSE_NS"),
    f"{GRAPH}.rules.thread": ("_MAX_BUSY_GAP_NS",),
    f"{GRAPH}.rules.host_sync": ("_OWN_NS",),
    f"{GRAPH}.rules.memcpy_sync": ("_MAX_RETURN_NS", "_SOONER_NS", "_LONG_NS"),
    f"{GRAPH}.rules.queue_full": ("_LONG_RATIO", "_LONG_NS", "_MIN_BLOCKED", "_MAX_RETURN_NS"),
}  # fmt: skip
"""The thresholds that decide conclusions, by module; shares near 1 cannot be doubled."""
CASES = [(module, name, factor) for module, names in CONSTANTS.items() for name in names for factor in (0.5, 2)]
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


def scaled(module: ModuleType, name: str, factor: float) -> float:
    """Return a constant times a factor, of its own type."""
    value = getattr(module, name)
    return type(value)(max(1, round(value * factor)) if isinstance(value, int) else value * factor)


def worst_change(jobs: Iterable[str]) -> float:
    """Return by how much predictions change at most, as a share of the makespan; the collectives must not change."""
    worst = 0.0
    for job in jobs:
        met, predicted = conclusions(build(parts()[job]))
        before_met, before, makespan = as_they_are()[job]
        assert met == before_met, f"{job}: other collectives"
        worst = max([worst, *(abs(one - other) / makespan for one, other in zip(predicted, before, strict=True))])
    return worst


def jobs_of(module: str) -> tuple[str, ...]:
    """Return the generated jobs in which the thresholds of a module have something to decide."""
    of_ranks = MATCHING in module or module.endswith(("_clocks", ".clock_fits", ".matches"))
    return ("without arguments", "pipeline") if of_ranks else ("blocked hosts", "full queue")


@pytest.mark.parametrize(("module", "name", "factor"), CASES, ids=[f"{m[15:]}.{n} x{f}" for m, n, f in CASES])
def test_no_conclusion_hangs_on_one_threshold(
    module: str, name: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_they_are()
    monkeypatch.setattr(importlib.import_module(module), name, scaled(importlib.import_module(module), name, factor))
    assert worst_change(jobs_of(module)) <= BAND


@pytest.mark.parametrize("factor", [0.5, 2])
@pytest.mark.parametrize("module", CONSTANTS, ids=[module[15:] for module in CONSTANTS])
def test_no_conclusion_hangs_on_all_thresholds_of_a_module(
    module: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_they_are()
    for name in CONSTANTS[module]:
        monkeypatch.setattr(
            importlib.import_module(module), name, scaled(importlib.import_module(module), name, factor)
        )
    assert worst_change(("demo",)) <= BAND


def test_a_threshold_of_nothing_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no spread at all is allowed, the stages of the pipeline are not linked: a prediction changes by 9 %."""
    _, before, makespan = as_they_are()["pipeline"]
    monkeypatch.setattr(f"{MATCHING}.partners._MAX_SPREAD_NS", 0.0)
    met, predicted = conclusions(build(parts()["pipeline"]))
    assert met == []
    changes = [abs(one - other) / makespan for one, other in zip(predicted, before, strict=True)]
    assert 0.08 < max(changes) < 0.11
