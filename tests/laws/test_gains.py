"""A gain per step is the whole saving over the number of steps, in all verbs, and gains of disjoint work add up."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.findings.gain import GAIN
from htagraph.findings.results import Results
from htagraph.findings.uneven_steps import step_text
from htagraph.findings.verbs.what_if import sentences
from htagraph.graph.measures.steps import cadence_of, gain_steps, usual_step_ns
from htagraph.queries.path_segments import bound_of
from htagraph.simulate import Job, ScaleKernels, Simulated, SlowRank, simulate
from htagraph.whatif.together import Offer, savings_of
from tests.reach import REAL, graph_of, label
from tests.strategies import Json, load, op, step

NAMES = ("aten::mm", "aten::add", "aten::relu")
TIMES = st.tuples(*(st.integers(1, 400) for _ in NAMES))
STEPS = st.lists(TIMES, min_size=2, max_size=8)


def host_job(steps: list[tuple[int, ...]]) -> list[Json]:
    """Return steps of operators one after the other, µs, with 5 µs of Python before each operator."""
    events: list[Json] = []
    at = 0
    for number, times in enumerate(steps):
        begin = at
        for name, lasts in zip(NAMES, times, strict=True):
            events.append(op(name, at + 5, lasts))
            at += 5 + lasts
        events.append(step(number, begin, at - begin))
    return events


def scaled_to_none(name: str) -> Offer:
    return Offer(name, (), lambda scenario: scenario.scale(factor=0, op=name))


@given(STEPS)
@settings(max_examples=40)
def test_a_gain_per_step_is_the_saving_over_the_number_of_regular_steps(steps: list[tuple[int, ...]]) -> None:
    graph = load(host_job(steps))
    cadence = cadence_of(graph)
    assert cadence is not None
    regular = [steps[each] for each in cadence.steps[cadence.chosen]]
    if len(regular) < 2 or gain_steps(graph) < 2:
        return
    assert usual_step_ns(graph, graph.time) == pytest.approx(1000 * np.mean([sum(times) + 15 for times in regular]))
    table = hg.opportunities(graph).set_index("name")["gain_per_step_us"]
    savings = savings_of(graph, [scaled_to_none(name) for name in NAMES])
    together = 0.0
    for at, change in enumerate(savings.changes):
        saved_us = np.mean([times[NAMES.index(change.name)] for times in regular])
        outcome = change.apply(hg.what_if(graph)).run()
        assert outcome.baseline_step_ns - outcome.step_ns == pytest.approx(1000 * saved_us)
        assert savings.of((at,)) == pytest.approx(1000 * saved_us)
        if change.name in table.index:
            assert table[change.name] == pytest.approx(saved_us)
        together += savings.of((at,))
    assert together <= usual_step_ns(graph, graph.time) + 1
    assert savings.of(tuple(range(len(savings.changes)))) == pytest.approx(together)


@given(STEPS)
@settings(max_examples=40)
def test_the_ratio_of_printed_times_is_the_printed_speedup(steps: list[tuple[int, ...]]) -> None:
    graph = load(host_job(steps))
    outcome = hg.what_if(graph).scale(factor=0.5, op=NAMES[0]).run()
    bound = bound_of(hg.critical_path(graph))
    said = sentences(outcome, bound, bound)[0]
    for after, unit, before, other, times, how in re.findall(
        r"([\d.]+) (µs|ms) instead of ([\d.]+) (µs|ms)[^:;]*: ([\d.]+) times as (fast|long)", said
    ):
        scale = {"µs": 1.0, "ms": 1000.0}
        ratio = float(before) * scale[other] / (float(after) * scale[unit])
        assert (ratio if how == "fast" else 1 / ratio) == pytest.approx(float(times), rel=0.02)


@given(STEPS)
@settings(max_examples=40)
def test_the_head_names_every_step_that_is_not_like_the_others(steps: list[tuple[int, ...]]) -> None:
    """Times in the head are those of steps; where one differs by more than 10 %, a range or its number is there."""
    graph = load(host_job(steps))
    lengths = [sum(times) + 15 for times in steps]
    text = step_text(graph)
    middle = float(np.median(lengths))
    if any(abs(each - middle) > 0.25 * middle for each in lengths):
        assert re.search(r" to |step \d|steps \d", text), (lengths, text)


REGULAR = Job(ranks=1, steps=5, first_step=0, layers=2, jitter=0.0)
SLOW_STEP = SlowRank(rank=0, what="host", factor=2.0, steps=(2,))
SLOW_TURNS = SlowRank(rank=0, what="kernels", factor=1.7, steps=(1, 3))
JOBS = {
    "regular": REGULAR,
    "interrupted": REGULAR.model_copy(update={"slow_ranks": (SLOW_STEP,)}),
    "taking turns": REGULAR.model_copy(update={"slow_ranks": (SLOW_TURNS,)}),
}
HALF = ScaleKernels(name="*gemm*", what="compute", factor=0.5)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_gain_per_step_is_what_the_simulator_saves_per_step(job: Job, tmp_path: Path) -> None:
    recorded = simulate(job)
    recorded.write(tmp_path, level=1, truth=False)
    graph = hg.load(tmp_path)
    cadence = cadence_of(graph)
    assert cadence is not None
    regular = cadence.steps[cadence.chosen].tolist()
    took = true_step_ns(recorded, regular)
    takes = true_step_ns(simulate(job.model_copy(update={"changes": (HALF,)})), regular)
    outcome = hg.what_if(graph).scale(factor=0.5, name="*gemm*", kind="computation").run()
    assert outcome.baseline_step_ns == pytest.approx(took, rel=0.001)
    assert outcome.baseline_step_ns - outcome.step_ns == pytest.approx(took - takes, rel=0.03)


def true_step_ns(simulated: Simulated, chosen: list[int]) -> float:
    """Return the mean time of chosen steps of rank 0 from the end of the step before, ns, by the simulator's truth."""
    ends = {step: end for (_, step), (_, end) in simulated.step_times().items()}
    return float(np.mean([ends[number] - ends[number - 1] for number in chosen]))


def check_gains_against_times(graph: hg.DependencyGraph) -> None:
    """Nothing saves more than its own time, and no interval reaches further; times without start-up."""
    results = Results(graph)
    table = results.opportunities
    assert (table["gain_us"] <= table["time_us"] + 0.001).all()
    assert (table["critical_us"] <= table["time_us"] + 0.001).all()
    time_us = table.groupby("name")["time_us"].max()
    for claim in results.claims(GAIN.when):
        _, high_us = claim.interval or (claim.figure, claim.figure)
        assert high_us <= max(time_us[claim.about], claim.figure) + 0.001
        if claim.gain and claim.gain.scope == "job":  # else a figure is of regular steps, and the time of all steps
            assert claim.figure <= time_us[claim.about] + 0.001


@pytest.mark.parametrize("path", [path for path in REAL if path.stat().st_size < 400_000], ids=label)
def test_nothing_recorded_saves_more_than_its_own_time(path: Path) -> None:
    check_gains_against_times(graph_of(path))


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_nothing_simulated_saves_more_than_its_own_time(job: Job, tmp_path: Path) -> None:
    simulate(job).write(tmp_path, truth=False)
    check_gains_against_times(hg.load(tmp_path))
