from __future__ import annotations

from typing import Any

import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.whatif.scenario import Scenario
from htagraph.whatif.sweep import sweep
from tests.reach import DATA, graph_of

FACTORS = [0.5, 2.0, 0.0, 1.0, 0.5, 0.25]
SCENARIOS: dict[str, Any] = {
    "kernels": lambda job, factor: job.scale(factor=factor, kind="computation"),
    "network": lambda job, factor: job.scale_network(factor=factor),
    "two changes": lambda job, factor: job.remove_sync().scale(factor=factor, kind="host"),
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("threads", [1, 4])
def test_each_row_is_the_scenario_run_alone(name: str, threads: int) -> None:
    graph = graph_of(DATA / "demo")
    table = sweep(graph, SCENARIOS[name], FACTORS, threads=threads)
    assert table["factor"].tolist() == FACTORS
    for row in table.to_dict("records"):
        alone = SCENARIOS[name](hg.what_if(graph), row.pop("factor")).run()
        assert row == {
            "makespan_us": alone.makespan_ns / 1000, "mean_step_us": alone.step_ns / 1000,
            "saved_us": alone.saved_ns / 1000, "speedup": alone.speedup,
        }  # fmt: skip


def test_intervals_are_those_of_the_scenario_run_alone() -> None:
    graph = graph_of(DATA / "demo")
    (row,) = sweep(graph, SCENARIOS["network"], [0.5], intervals=True).to_dict("records")
    alone = hg.what_if(graph).scale_network(factor=0.5).run()
    assert (row["low"], row["high"]) == (alone.low, alone.high)


def test_no_factors_give_no_rows() -> None:
    table = sweep(graph_of(DATA / "demo"), SCENARIOS["kernels"], [])
    assert (len(table), table.dtypes.unique().tolist()) == (0, ["float64"])


def test_what_a_change_refuses_is_refused() -> None:
    graph = graph_of(DATA / "demo")
    with pytest.raises(SelectionError, match="factor=-1"):
        sweep(graph, SCENARIOS["kernels"], [1.0, -1.0])
    with pytest.raises(SelectionError, match="threads=0"):
        sweep(graph, SCENARIOS["kernels"], [1.0], threads=0)


def test_each_call_gets_the_job_without_changes() -> None:
    graph = graph_of(DATA / "demo")
    seen: list[Scenario] = []

    def unchanged(job: Scenario, _: float) -> Scenario:
        seen.append(job)
        return job

    sweep(graph, unchanged, [1.0, 2.0])
    assert [each.changes for each in seen] == [(), ()]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("data/demo", SCENARIOS["kernels"], [1]), r"takes a graph first .*not 'data/demo' \(str\)"),
        ((None, 0.5, [1]), "takes a function of a scenario and a factor, not 0.5"),
        ((None, SCENARIOS["kernels"], 0.5), r"takes a list of factors, not 0\.5"),
        ((None, SCENARIOS["kernels"], "fast"), "takes factors that are numbers, not 'f'"),
        ((None, lambda *_: None, [1.0]), "takes a function that returns the changed scenario, not None"),
    ],
)
def test_what_is_no_sweep_is_refused_in_words(given: tuple[Any, Any, Any], says: str) -> None:
    graph, scenario, factors = given
    with pytest.raises(TypeError, match=says):
        sweep(graph or graph_of(DATA / "demo"), scenario, factors)
