from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import State
from htagraph.whatif import changes
from htagraph.whatif.scenario import Scenario, sweep
from tests.reach import DATA, JOBS, LARGE_BYTES, graph_of, label
from tests.strategies import COMMUNICATE, annotation, kernel, launch, load, op
from tests.whatif.changes.made import Piece, made
from tests.whatif.changes.simulated import recorded, small
from tests.whatif.changes.test_cuda_graph import host_bound
from tests.whatif.changes.test_network import reducing


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return graph_of(DATA / "demo")


CHANGES = sorted(path.stem for path in Path(changes.__path__[0]).glob("[!_]*.py"))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_a_function_of_its_modules_name_and_a_method(name: str) -> None:
    function = getattr(importlib.import_module(f"htagraph.whatif.changes.{name}"), name)
    method = getattr(Scenario, name)
    assert "scenario" in (inspect.getdoc(method) or "")
    assert "state:" not in (inspect.getdoc(method) or "")
    parameters = list(inspect.signature(function).parameters.values())[1:]
    offered = inspect.signature(method).parameters
    for parameter in parameters:
        assert parameter.name in offered, f"Scenario.{name} lacks {parameter.name}"
        assert offered[parameter.name].default == parameter.default


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_has_a_test(name: str) -> None:
    tests = Path(__file__).parent / "changes"
    assert any(f"{name}(" in path.read_text(encoding="utf-8") for path in tests.glob("test_*.py")), name


def test_changes_apply_left_to_right(graph: DependencyGraph) -> None:
    half = hg.what_if(graph).set_duration(ns=1000, name="*gemm*").scale(factor=2, name="*gemm*").run()
    kernels = graph.select(name="*gemm*", kind="computation").activities
    assert (half.graph.activities.duration[kernels] == 2000).all()
    kept = hg.what_if(graph).scale(factor=2, name="*gemm*").set_duration(ns=1000, name="*gemm*").run()
    assert (kept.graph.activities.duration[kernels] == 1000).all()


def test_a_scenario_never_changes(graph: DependencyGraph) -> None:
    start = hg.what_if(graph)
    first = start.scale(factor=0.5, kind="computation")
    before = first.run().makespan_ns
    first.scale(factor=0.5, kind="computation").no_launch_overhead()
    assert first.run().makespan_ns == before
    assert start.run().makespan_ns == start.run().baseline_ns
    with pytest.raises(AttributeError):
        first.changes = ()  # type: ignore[misc]


def test_it_says_what_was_changed(graph: DependencyGraph) -> None:
    scenario = hg.what_if(graph).scale(factor=0.5, name="*gemm*").infinite_host()
    assert scenario.changes == ("scale(factor=0.5, name='*gemm*')", "infinite_host()")
    assert repr(scenario) == "Scenario(scale(factor=0.5, name='*gemm*') · infinite_host())"
    assert repr(hg.what_if(graph)) == "Scenario(nothing changed)"
    assert "infinite_host()" in repr(scenario.run())


def test_a_change_of_ones_own(graph: DependencyGraph) -> None:
    def late(state: State, *, by_ns: int) -> State:
        return State(state.graph, state.lag, state.gap, state.head + by_ns)

    outcome = hg.what_if(graph).apply(late, by_ns=5).run()
    assert outcome.changes == ("late(by_ns=5)",)
    assert np.array_equal(outcome.time, graph.time + 5)


REFUSED: dict[str, tuple[Callable[[], DependencyGraph], list[tuple[str, dict[str, Any], str]]]] = {
    "demo": (lambda: graph_of(DATA / "demo"), [
        ("scale", {"factor": 0.5, "name": "*gmm*"}, "gemm"),
        ("scale", {"factor": -1}, "at least 0"),
        ("scale", {"factor": 0.5, "rank": 7}, "its ranks: 0, 1, 2, 3"),
        ("scale", {"factor": 0.5, "kind": "compute"}, "computation"),
        ("set_duration", {"ns": -1, "name": "*gemm*"}, "at least 0"),
        ("remove", {"step": 99}, "its steps"),
        ("fix_straggler", {"rank": 9}, "rank 9 is not in this graph; its ranks: 0, 1, 2, 3"),
        ("fix_straggler", {"to": "max"}, "choose from median, mean, min"),
        ("no_interruptions", {}, "host code was not interrupted"),
    ]),
    "an operator": (lambda: load([op("a", 0, 10)]), [
        ("infinite_gpu", {}, "no device work was recorded"),
        ("no_launch_overhead", {}, "launch"),
        ("free_dataloader", {}, "no waits for a data loader"),
        ("free_outside", {}, "no waits for something outside"),
        ("exclusive_device", {}, "no launched work waited"),
        ("pin_memory", {}, "no copy from or to pageable memory"),
        ("scale_ranks", {"n": 8}, "no collective"),
        ("set_duration", {"ns": -1, "name": "a"}, "ns="),
        ("set_duration", {"ns": float("nan"), "name": "a"}, "ns="),
        ("jitter", {"sigma": -1}, "sigma"),
        ("jitter", {"sigma": 0.1, "runs": 0}, "runs"),
        ("jitter", {"sigma": 0.1, "runs": 1.5}, "runs"),
        ("fix_straggler", {}, "nothing to compare it with"),
    ]),
    "an annotation": (lambda: load([annotation("phase", 0, 10)]), [
        ("set_duration", {"ns": 5, "name": "phase"}, "phase"),
    ]),
    "a collective without a partner": (lambda: load([launch(0, 1, 1), kernel(COMMUNICATE, 3, 5, 1)]), [
        ("network", {"latency_us": 1}, "scale_network"),
        ("scale_network", {"factor": 2, "name": "gloo*"}, "no transfer between ranks meets name='gloo[*]'; .* nccl"),
    ]),
    "two streams": (lambda: made([Piece("gemm", 7, 7), Piece("b", 8, 5)]), [
        ("scale", {"factor": 2, "name": "gem"}, "'gemm'"),
        ("scale_network", {"factor": 0.5}, "this job has no transfers between ranks"),
        ("network", {"latency_us": 1}, "this job has no transfers between ranks"),
        ("move_to_stream", {"stream": 9, "name": "cudaLaunchKernel"}, "no device work.*streams: 7, 8"),
        ("move_to_stream", {"stream": 9, "name": "nothing"}, "no device work.*streams: 7, 8"),
        ("move_to_stream", {"stream": 7, "name": "gemm"}, "on stream 7 already"),
    ]),
    "two groups": (lambda: made([Piece("nccl", 7, 5, collective=each) for each in (0, 1)]), [
        ("perfect_overlap", {"group": "tensor*"}, "process groups: even, odd"),
        ("no_overlap", {"group": "tensor*"}, "process groups: even, odd"),
        ("fuse", {"name": "nccl*"}, "no two of the 0 selected kernels"),
    ]),
    "messages of unknown size": (lambda: reducing((1, 2, 3), (-1, -1, -1)), [
        ("network", {"latency_us": 1, "bandwidth_gb_s": 1}, "scale_network"),
    ]),
    "messages of two sizes": (lambda: reducing((150, 300, 150)), [
        ("network", {}, "latency_us=.*bandwidth_gb_s="),
        ("network", {"latency_us": -1.0}, "latency_us"),
        ("network", {"bandwidth_gb_s": 0.0}, "bandwidth_gb_s"),
        ("network", {"latency_us": float("inf")}, "latency_us"),
        ("network", {"bandwidth_gb_s": float("nan")}, "bandwidth_gb_s"),
    ]),
    "gpu_bound": (lambda: recorded(small("gpu_bound"))[0], [
        ("inject", {"rank": 9, "factor": 2}, "its ranks: 0, 1"),
        ("inject", {"rank": 9, "factor": 2, "kind": "loader"}, "its ranks: 0, 1"),
        ("inject", {"rank": 0, "factor": -2}, "factor="),
        ("inject", {"rank": 0, "factor": 2, "kind": "gpu"}, "kernels, host, loader"),
        ("inject", {"rank": 0, "factor": 2, "name": "*nothing*"}, "nothing matches"),
        ("scale_ranks", {"n": 0}, "n="),
        ("scale_ranks", {"n": 2.5}, "whole number"),
        ("scale_ranks", {"n": 8, "groups": "tp*"}, "no process group"),
        ("remove_sync", {"name": "aten::mm"}, "none of the selected"),
        ("remove_sync", {"name": "cudaNothing"}, "nothing on the host matches name='cudaNothing'; the most"),
        ("remove_sync", {"op": "nope"}, "; calls and operators that wait for the device:"),
    ]),
    "two steps": (host_bound, [
        ("cuda_graph", {}, "give step="),
        ("cuda_graph", {"step": 1, "start_us": 0, "end_us": 5}, "give step="),
        ("cuda_graph", {"start_us": 5}, "give step="),
        ("cuda_graph", {"start_us": 5, "end_us": 5}, "is empty"),
        ("cuda_graph", {"start_us": float("nan"), "end_us": 5}, "finite"),
        ("cuda_graph", {"start_us": 61, "end_us": 90}, "nothing is launched"),
        ("cuda_graph", {"step": 9}, "its steps: 1, 2"),
        ("cuda_graph", {"step": 1, "rank": 4}, "its ranks: 0"),
    ]),
}  # fmt: skip
"""What is refused, by job: the change, its options, and words of the error."""


@pytest.mark.parametrize(
    ("job", "method", "options", "message"), [(job, *row) for job, (_, rows) in REFUSED.items() for row in rows]
)
def test_errors_come_at_the_call(job: str, method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        getattr(hg.what_if(REFUSED[job][0]()), method)(**options)


@pytest.mark.parametrize(
    "path", [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES], ids=label
)
def test_nothing_changed_is_exact_and_extremes_are_bounds(path: Path) -> None:
    graph = graph_of(path)
    start = hg.what_if(graph)
    assert np.array_equal(start.run().time, graph.time)
    if not len(graph.activities):
        return
    quick, none = start.scale(factor=0.5).run(), start.scale(factor=0).run()
    assert none.makespan_ns <= quick.makespan_ns <= quick.baseline_ns
    assert (start.infinite_host().run().time <= graph.time).all()
    assert (none.time <= quick.time).all()


def test_a_bound_is_found_by_halving_each_resource() -> None:
    graph = graph_of(next(path for path in JOBS if path.name == "demo"))
    gain = {kind: hg.what_if(graph).scale(factor=0.5, kind=kind).run().saved_ns for kind in ("host", "device")}
    assert max(gain.values()) > 0
    assert hg.what_if(graph).scale(factor=0.5).run().saved_ns >= max(gain.values())


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
