"""What every change saves: never more than the time that it takes away, and where it saves nothing, a note says why."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import HtagraphError
from htagraph.findings.change import saved_us
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import gain_steps, regular_steps
from htagraph.simulate import Job, SlowRank, simulate
from htagraph.whatif.options import CHANGES, criteria
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.time_taken import most_per_usual_steps, possible_savings
from tests.reach import DATASETS, REAL, graph_of, label

SMALL = [*DATASETS, *(path for path in REAL if path.stat().st_size < 400_000)]
ASKED = {
    "scale": "kind=host:0.5", "set": "kind=computation:1us", "remove": "kind=memory", "network": "0.5",
    "device": "H100 SXM", "host-factor": "0.8", "fix-straggler": "auto", "no-launch-overhead": "",
    "cuda-graph": "step=1", "inject": "rank=0:1.0", "jitter": "0.05:2", "free-dataloader": "",
    "remove-sync": "kind=sync", "perfect-overlap": "",
    "no-overlap": "", "shared-link": "on", "fuse": "kind=computation", "move-to-stream": "kind=memory:7",
    "batch": "8:16", "scale-ranks": "2", "no-interruptions": "", "infinite-host": "", "infinite-gpu": "",
    "exclusive-device": "", "pin-memory": "", "free-outside": "",
}  # fmt: skip
"""A value for the option of each change."""
JOBS = {
    "regular": Job(ranks=2, steps=4, first_step=0, layers=2),
    "uneven": Job(ranks=1, steps=5, layers=2, slow_ranks=(SlowRank(rank=0, what="host", factor=2.0, steps=(2,)),)),
}


def test_every_change_is_asked() -> None:
    assert ASKED.keys() == CHANGES.keys()


def outcomes(graph: DependencyGraph) -> list[Outcome]:
    """Return what each change does to a job that has something to change."""
    found = []
    for option, text in ASKED.items():
        try:
            found.append(CHANGES[option].read(text).apply(hg.what_if(graph)).run())
        except HtagraphError:  # it says why it cannot be made
            continue
    return found


def check_every_change(graph: DependencyGraph) -> None:
    for outcome in outcomes(graph):
        check_savings(outcome)
        is_same = outcome.makespan_ns == outcome.baseline_ns and outcome.step_ns == outcome.baseline_step_ns
        if is_same and not outcome.state.jitter:  # noise is in runs of their own
            assert outcome.notes, outcome
        if outcome.state.ceilings:
            assert any("at most" in note for note in outcome.notes)


def check_savings(outcome: Outcome) -> None:
    """No interval of a saving is below nothing, or above the time that is taken away."""
    low, high = outcome.saved_range_ns
    assert low <= outcome.saved_ns <= high
    assert outcome.low <= outcome.speedup <= outcome.high
    ends = possible_savings(outcome.baseline, outcome.state)
    if ends is not None and not outcome.links.may_share:
        assert low >= 0
        assert outcome.saved_ns <= ends[1]


@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_recorded_job_that_stays_as_it_is_has_a_note(path: Path) -> None:
    check_every_change(graph_of(path))


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_simulated_job_that_stays_as_it_is_has_a_note(job: Job, tmp_path: Path) -> None:
    simulate(job).write(tmp_path, truth=False)
    check_every_change(hg.load(tmp_path))


def check_gains_per_step(graph: DependencyGraph) -> None:
    """A usual step gains at most the time of the thing in the regular steps, over their number; so do intervals."""
    results = Results(graph)
    job = results.warm_graph
    for row in results.opportunities.to_dict("records"):
        if not row["target"]:
            continue
        outcome = hg.what_if(job).scale(factor=0.0, **criteria(row["target"])).run()
        check_savings(outcome)
        us, (low, high) = saved_us(outcome)
        most_us = most_per_usual_steps(job, outcome.state) / 1000
        assert low <= us <= high
        if not outcome.links.may_share:
            assert us <= most_us + 0.01
            assert high <= max(most_us, us) + 0.01


@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_recorded_step_gains_at_most_the_time_of_the_thing(path: Path) -> None:
    check_gains_per_step(graph_of(path))


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_simulated_step_gains_at_most_the_time_of_the_thing(job: Job, tmp_path: Path) -> None:
    simulate(job).write(tmp_path, truth=False)
    graph = hg.load(tmp_path)
    assert gain_steps(graph) == len(regular_steps(graph, graph.time)[0]) or gain_steps(graph) > 1
    check_gains_per_step(graph)


def test_the_gain_of_a_ceiling_is_one_sided(tmp_path: Path) -> None:
    simulate(JOBS["regular"]).write(tmp_path, truth=False)
    graph = hg.load(tmp_path)
    ceiling, plain = (
        hg.what_if(graph).infinite_gpu().run(),
        hg.what_if(graph).scale(factor=0.0, kind="computation").run(),
    )
    at_most, either = (each.high / each.speedup for each in (ceiling, plain))
    assert at_most < either
    assert at_most < ceiling.speedup / ceiling.low
    assert plain.saved_ns <= ceiling.saved_ns
