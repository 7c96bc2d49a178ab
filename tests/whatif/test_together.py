from __future__ import annotations

import fnmatch
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.findings.plan import offers_of, plan_of
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import duration_ns, gain_steps
from htagraph.queries.weights import State, initial
from htagraph.simulate import Job, SlowRank, simulate
from htagraph.whatif import together
from htagraph.whatif.scenario import Scenario
from htagraph.whatif.together import COUNTS_ONCE, Offer, best_sets, outcome_of, savings_of
from tests.reach import DATA, graph_of
from tests.whatif.changes.made import Piece, jobs, made


def scaled(name: str, factor: float) -> Offer:
    """Return a change of the device work of names that fit a pattern."""
    return Offer(f"{name} {factor}", (), lambda each: each.scale(factor=factor, name=name))


def replayed(graph: DependencyGraph, start: State, changes: list[Offer]) -> float:
    """Return what changes save, ns, each time as short as any change leaves it, and the whole job replayed.

    Changes that replace the graph or make times longer come first.
    """
    before = Scenario(graph, start)
    shorter = list[Offer]()
    for change in changes:
        state = change.apply(before).state
        if state.graph is graph and (state.lag <= start.lag).all() and (state.gap <= start.gap).all():
            shorter.append(change)
        else:
            before = change.apply(before)
    states = [change.apply(before).state for change in shorter]
    lag = np.min([before.state.lag, *(state.lag for state in states)], axis=0)
    gap = np.min([before.state.gap, *(state.gap for state in states)], axis=0)
    outcome = replace(before, state=replace(before.state, lag=lag, gap=gap)).run()
    after = duration_ns(outcome.state.graph, outcome.time, graph)
    return (duration_ns(graph, Scenario(graph, start).run().time) - after) / max(gain_steps(graph), 1)


def compared(graph: DependencyGraph, changes: list[Offer], start: State | None = None, budget: int = 3) -> None:
    """Check every set against a replay of the whole job, and the best sets against all of them."""
    savings, first = savings_of(graph, changes, start), start or initial(graph)
    most = [0.0]
    for size in range(1, min(budget, len(savings.changes)) + 1):
        sets = [each for each in combinations(range(len(savings.changes)), size) if savings.may_be(each)]
        truth = {each: replayed(graph, first, [savings.changes[number] for number in each]) for each in sets}
        assert {each: savings.of(each) for each in sets} == truth
        assert all(savings.bound(each) >= saved for each, saved in truth.items())
        most.append(max(truth.values(), default=0.0))
    found = best_sets(savings, budget, duration_ns(graph, graph.time) / max(gain_steps(graph), 1))
    assert [each.saved for each in found] == most[1 : len(found) + 1]
    assert all(each.possible == each.saved for each in found)


def best_of(graph: DependencyGraph) -> None:
    """Check the plan of a job against every set of up to three of the changes that it is chosen among."""
    results = Results(graph)
    plan = plan_of(results)
    compared(results.warm_graph, offers_of(results))
    assert plan.how == "optimal"
    assert plan.saved_us == pytest.approx(float(plan.curve["saved_us"].iloc[-1]), abs=0.001)
    assert plan.changes["adds_us"].sum() == pytest.approx(plan.saved_us, abs=0.001)


NAMES = ("gemm_a", "gemm_b", "gemm_*", "nccl*", "cudaLaunch*")


@given(jobs(), st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from((0.0, 0.5))), max_size=5, unique=True))
def test_sets_are_the_replay_to_the_nanosecond(pieces: list[Piece], which: list[tuple[str, float]]) -> None:
    """Also of a job that is shorter from the start."""
    there = {"cudaLaunchKernel", *(piece.name for piece in pieces)}
    some = [scaled(*each) for each in which if fnmatch.filter(there, each[0])]
    graph = made(pieces)
    compared(graph, some)
    if fnmatch.filter(there, "gemm_b"):
        compared(graph, some, scaled("gemm_b", 0).apply(hg.what_if(graph)).state)


@pytest.mark.parametrize("seed", range(3))
def test_plans_of_simulated_jobs_are_the_best_of_all_sets(seed: int, tmp_path: Path) -> None:
    slow = (SlowRank(rank=1, factor=1.4),) if seed else ()
    simulate(Job(ranks=2, steps=3, layers=2, seed=seed, changes=slow)).write(tmp_path)
    best_of(hg.load(tmp_path))


def test_a_plan_of_the_demo_is_the_best_of_all_sets() -> None:
    best_of(graph_of(DATA / "demo"))


def test_a_part_of_a_whole_adds_nothing_to_it() -> None:
    pieces = [Piece("gemm_a", 7, 50), Piece("gemm_b", 7, 40)]
    savings = savings_of(made(pieces), [scaled("gemm_a", 0), scaled("gemm_*", 0), scaled("gemm_a", 0.5)])
    assert savings.of((0, 1)) == savings.of((1,)) == savings.of((0, 1, 2)) > savings.of((0,)) > savings.of((2,))
    (best,) = best_sets(savings, 3, 200)
    assert best.changes == (1,)


def test_too_many_sets_leave_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(graph_of(DATA / "demo"))
    exact = plan_of(results)
    monkeypatch.setattr(together, "_MOST_SETS", 1)
    greedy = plan_of(results)
    assert exact.how == "optimal" != greedy.how
    assert greedy.saved_us <= exact.saved_us <= greedy.curve["possible_us"].iloc[-1]
    assert "within" in greedy.sentences(["data/demo"])[1]


def test_changes_that_stand_first_are_in_each_larger_set() -> None:
    results = Results(graph_of(DATA / "demo"))
    savings = savings_of(results.warm_graph, offers_of(results))
    job_ns = results.makespan_ns / results.steps
    for first in combinations(range(3), 2):
        (one, *_, most) = best_sets(savings, 4, job_ns, first)
        assert set(one.changes) <= set(first)
        assert one.saved == max(savings.of((number,)) for number in first)
        assert most.saved >= max(best.saved for best in best_sets(savings, 1, job_ns, first))
        assert set(one.changes) <= set(most.changes)


def test_a_change_that_adds_work_is_compared_too() -> None:
    savings = savings_of(graph_of(DATA / "demo"), [Offer("slower", (), lambda each: each.scale(factor=2))])
    assert [each.name for each in savings.changes] == ["slower"]
    assert savings.of((0,)) < 0


def test_sets_with_one_kernel_in_place_of_many_are_the_replay_to_the_nanosecond() -> None:
    fused = Offer("fused", (), lambda each: each.fuse(kind="computation"))
    compared(graph_of(DATA / "demo"), [fused, scaled("Mem*", 0.5), scaled("*gemm*", 0.5), scaled("cuda*", 0.0)])


def test_no_set_has_two_changes_that_put_work_in_the_place_of_other_work() -> None:
    fused = Offer("fused", (), lambda each: each.fuse(kind="computation"))
    slower = Offer("slower", (), lambda each: each.scale(factor=2))
    savings = savings_of(graph_of(DATA / "demo"), [fused, slower])
    assert not savings.may_be((0, 1))


def test_a_time_that_two_changes_shorten_counts_once() -> None:
    """Kernels of 50 and 40 µs: both twice as fast, one of these by two changes, save 45 µs, not 57.5 µs."""
    graph = made([Piece("gemm_a", 7, 50), Piece("gemm_b", 7, 40)])
    offers = [scaled("gemm_a", 0.5), scaled("gemm_*", 0.5)]
    compared(graph, offers)
    outcome = outcome_of(graph, offers)
    assert COUNTS_ONCE in outcome.state.notes
    assert COUNTS_ONCE not in outcome_of(graph, offers[1:]).state.notes
    assert outcome.makespan_ns == outcome_of(graph, offers[1:]).makespan_ns
