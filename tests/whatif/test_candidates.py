"""Whether nothing that gains much is missing, by removing every name of a job in turn."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.queries.weights import initial, own_time, with_factor
from htagraph.whatif.candidates import Baseline, candidates, time_of
from tests.reach import DATA, DATASETS, REAL, graph_of

SMALL = [path for path in REAL if path.stat().st_size < 150_000 and path.name != "memory_timeline.raw.json.gz"]
NOTICEABLE = 0.05
SAME = 0.97


def every_name(graph: hg.DependencyGraph) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each name that takes a noticeable time, with the criteria that select all of its time."""
    acts = graph.activities
    least = NOTICEABLE * (graph.time.max(initial=0) - graph.origin_ns)
    by_name = (ActivityKind.COMPUTATION, ActivityKind.MEMORY, ActivityKind.RUNTIME)
    for kind in (*by_name, ActivityKind.OP, ActivityKind.ANNOTATION):
        rows = acts.kind == kind
        total = np.bincount(acts.name[rows], acts.duration[rows], len(graph.names))
        for name in np.flatnonzero(total >= least):
            text = glob.escape(graph.names[name])
            yield graph.names[name], {"kind": kind.label, "name": text} if kind in by_name else {"op": text}


@pytest.mark.parametrize("path", [*DATASETS, *SMALL], ids=lambda path: path.name[:30])
def test_whatever_gains_as_much_as_a_row_is_a_row_or_has_one_inside(path: Path) -> None:
    graph = graph_of(path)
    table = hg.opportunities(graph, top=10)
    last = table["gain_percent"].min() if len(table) == 10 else 0.0
    shown = table["gain_us"].to_numpy() * 1000
    for name, which in every_name(graph):
        outcome = hg.what_if(graph).scale(factor=0.0, **which).run()
        percent = 100 * outcome.saved_ns / max(outcome.baseline_ns, 1)
        if percent <= max(last / SAME, 0.01):
            continue
        gains = shown[(shown >= SAME * outcome.saved_ns - 1) & (shown <= outcome.saved_ns + 1)]
        assert len(gains), f"{name} gains {percent:.1f} %, more than the last row, and is not shown"


def test_no_gain_is_larger_than_the_bound_by_which_candidates_are_ordered() -> None:
    baseline = Baseline(initial(graph_of(DATA / "demo")))
    every = list(candidates(baseline))
    assert len(every) > 20
    for candidate in every[::3]:
        time = time_of(baseline.state, candidate)
        assert baseline.gain(time, 0.0) <= baseline.on_path(time) <= candidate.bound


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("name", ["demo", "gloo_ddp"])
def test_a_gain_is_that_of_the_weights_that_a_scenario_would_have(name: str, factor: float) -> None:
    baseline = Baseline(initial(graph_of(DATA / name)))
    for candidate in list(candidates(baseline))[::7]:
        time = time_of(baseline.state, candidate)
        assert baseline.gain(time, factor) == baseline.gained(with_factor(baseline.state, time, factor)), candidate.name


def test_time_on_the_path_is_part_of_all_time() -> None:
    baseline = Baseline(initial(graph_of(DATA / "demo")))
    time = own_time(baseline.state, {"kind": "computation"})
    lags, gaps = baseline.counted(time)
    acts = baseline.state.graph.activities
    kernels = acts.duration[acts.kind == ActivityKind.COMPUTATION].sum()
    assert 0 < baseline.on_path(time) < lags.sum() + gaps.sum() == kernels


@pytest.mark.parametrize("path", [*DATASETS, *SMALL], ids=lambda path: path.name[:30])
def test_criteria_of_a_process_group_select_its_members_among_all_communication(path: Path) -> None:
    graph = graph_of(path)
    matches = graph.matches
    if matches is None:
        return
    talks = np.flatnonzero(np.isin(graph.activities.kind, COMMUNICATION))
    for candidate in candidates(Baseline(initial(graph))):
        if candidate.what == "group" and candidate.criteria and candidate.name in matches.group:
            in_group = np.array([group == candidate.name for group in matches.group])[matches.collective]
            selected = graph.select(**candidate.criteria).activities
            assert np.intersect1d(selected, talks).tolist() == np.unique(matches.activity[in_group]).tolist()
