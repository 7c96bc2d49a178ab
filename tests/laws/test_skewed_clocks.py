"""Answers do not depend on how far the ranks' clocks are apart: the same job, recorded with other offsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.simulate import REGIMES, simulate

OFFSETS = (0.0, 4_321.5, -2_750.25, 900.125)
SPREAD_US = 3.0
"""Of the ends of a collective, in the simulator's jobs: as well as offsets can be known."""


def recorded(regime: str, folder: Path) -> tuple[DependencyGraph, DependencyGraph]:
    job = REGIMES[regime]()
    graphs = []
    for name, offsets in (("right", ()), ("skewed", OFFSETS)):
        simulate(job.model_copy(update={"clock_offsets_us": offsets})).write(folder / name, level=1, truth=False)
        graphs.append(hg.load(folder / name))
    return graphs[0], graphs[1]


@pytest.mark.slow
@pytest.mark.parametrize("regime", ["communication_bound", "straggler", "pipeline"])
def test_analyses_do_not_change(regime: str, tmp_path: Path) -> None:
    right, skewed = recorded(regime, tmp_path)
    assert max(abs(clock.offset_ns) for clock in skewed.clocks) > 4_000_000
    one, other = (hg.collectives(graph) for graph in (right, skewed))
    for column in ("wait_us", "start_us", "duration_us"):
        assert one[column].to_numpy() == pytest.approx(other[column].to_numpy(), abs=SPREAD_US)
    slow, same = (hg.stragglers(graph) for graph in (right, skewed))
    assert slow.straggler == same.straggler
    apart = np.abs(slow.to_frame()["blamed_us"] - same.to_frame()["blamed_us"])
    assert apart.max() <= 0.02 * slow.total_wait_us + 50
    assert _makespan_us(right) == pytest.approx(_makespan_us(skewed), abs=SPREAD_US)
    starts = [hg.step_times(graph)["start_us"].to_numpy() for graph in (right, skewed)]
    assert starts[0] == pytest.approx(starts[1], abs=SPREAD_US)
    steps = [hg.what_if(graph).scale_network(factor=0.5).run().mean_step_ns for graph in (right, skewed)]
    assert steps[0] == pytest.approx(steps[1], rel=0.002)
    assert hg.replay(skewed).max_error_ns == 0


def _makespan_us(graph: DependencyGraph) -> float:
    return hg.critical_path(graph).makespan_ns / 1000
