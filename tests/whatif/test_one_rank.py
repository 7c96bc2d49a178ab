from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind
from htagraph.simulate import simulate
from htagraph.whatif.one_rank import with_activations_exchanged, with_gradients_exchanged, with_stages_of_one
from tests.strategies import Json, annotation, kernel, launch, load, op
from tests.whatif.changes.simulated import recorded, small

ONE_RANK = small("gpu_bound").model_copy(update={"ranks": 1})


def line(*durations: int) -> hg.DependencyGraph:
    """Return operators that follow each other, without an optimizer."""
    acts = pd.DataFrame({"name": [f"op{at}" for at in range(len(durations))], "duration_ns": durations})
    follow = pd.DataFrame({"source": range(len(durations) - 1), "target": range(1, len(durations))})
    return hg.DependencyGraph.from_frames(acts, follow)


def trained(
    folder: Path, *, shapes: tuple[bool, bool] = (True, True), device: bool = False, ranks: int = 1
) -> hg.DependencyGraph:
    """Return a step of ranks: two gradients of 400,000 and 4,000,000 bytes are complete at 40 and 80 µs."""
    events = [op("forward", 0, 30)]
    for at, size in enumerate((100_000, 1_000_000)):
        dims: Json = {"Input Dims": [[size]], "Input type": ["float"]} if shapes[at] else {}
        events.append(op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 30 + 40 * at, 10))
        events.append(op("torch::autograd::AccumulateGrad", 30 + 40 * at, 10, **dims))
        events += [launch(32 + 40 * at, 2, at + 1), kernel("add", 34 + 40 * at, 40, at + 1)] if device else []
    events.append(annotation("Optimizer.step#SGD.step", 100, 20))
    events += [launch(102, 2, 9), kernel("step", 130, 20, 9)] if device else [op("aten::add_", 101, 18)]
    return load(dict.fromkeys(range(ranks), events), folder)


@pytest.mark.parametrize("device", [False, True])
def test_the_optimizer_waits_for_gradients(tmp_path: Path, *, device: bool) -> None:
    graph = trained(tmp_path, device=device)
    took = 2 * (4 - 1) / 4 * 4.4e6 / 10  # ns, at 10^10 bytes/s: both fill the first bucket
    outcome = hg.what_if(graph).scale_ranks(4, bandwidth_gb_s=10).run()
    since = 114_000 if device else 80_000  # when the last gradient is complete
    begin = 130_000 if device else 80_000  # on hosts, the pause before the optimizer stays
    assert outcome.makespan_ns - outcome.baseline_ns == pytest.approx(since + took + 60_000 - begin, abs=5)
    assert outcome.low < outcome.speedup < outcome.high
    assert "4 MB" in outcome.notes[0] or "4.4 MB" in outcome.notes[0]


def test_replicas_of_several_ranks_reduce_the_gradients_of_each(tmp_path: Path) -> None:
    (tmp_path / "several").mkdir()
    graphs = trained(tmp_path, device=True), trained(tmp_path / "several", device=True, ranks=3)
    states = [hg.what_if(graph).state for graph in graphs]
    alone, several = (with_gradients_exchanged(state, 2, 10, None) for state in states)
    waits = [sorted(each.lag[each.graph.edges.kind == EdgeKind.COLLECTIVE].tolist()) for each in (alone, several)]
    assert waits[1] == sorted(3 * waits[0]) != []
    assert "4.4 MB" in alone.notes[-1]
    assert alone.notes == several.notes
    assert with_gradients_exchanged(states[1], 2, None, 0).lag is states[1].lag


def test_gradients_without_shapes_are_refused_or_given(tmp_path: Path) -> None:
    graph = trained(tmp_path, shapes=(False, False))
    state = hg.what_if(graph).state
    with pytest.raises(SelectionError, match="record_shapes=True"):
        with_gradients_exchanged(state, 2, 10, None)
    with pytest.raises(SelectionError, match="bandwidth_gb_s="):
        with_gradients_exchanged(state, 2, None, None)
    outcome = hg.what_if(graph).scale_ranks(2, bandwidth_gb_s=10, gradients_mb=4.4).run()
    assert outcome.makespan_ns - outcome.baseline_ns == 440_000 + 60_000
    assert outcome.high >= 1  # all of it may overlap


def test_gradients_of_which_some_have_no_shapes_are_refused(tmp_path: Path) -> None:
    state = hg.what_if(trained(tmp_path, shapes=(True, False))).state
    with pytest.raises(SelectionError, match="record_shapes=True"):
        with_gradients_exchanged(state, 2, 10, None)


def test_stages_and_tensors_of_one_rank() -> None:
    state = hg.what_if(line(6_000_000, 2_000_000)).state
    idle = with_stages_of_one(state, 3, 1 / 3, 4).gap.sum()
    assert idle == pytest.approx(2 / 4 * 8e6 / 3, abs=2)
    sent = with_activations_exchanged(state, 2, 10.0, 5.0).gap.sum()
    assert sent == pytest.approx(5e6 / 10 + 60_000, abs=2)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 8])
def test_one_simulated_rank_among_others_is_in_the_interval(ranks: int) -> None:
    graph, _ = recorded(ONE_RANK)
    outcome = hg.what_if(graph).scale_ranks(ranks, bandwidth_gb_s=300, gradients_mb=75).run()
    truth = simulate(ONE_RANK.model_copy(update={"ranks": ranks})).mean_step_ns
    assert outcome.mean_step_ns == pytest.approx(truth, rel=0.04)
    assert outcome.low * 0.99 <= outcome.baseline_mean_step_ns / truth <= outcome.high * 1.01


def test_more_ranks_never_take_less(tmp_path: Path) -> None:
    graph = trained(tmp_path)
    took = [hg.what_if(graph).scale_ranks(n, bandwidth_gb_s=10).run().makespan_ns for n in (1, 2, 4, 8, 64)]
    assert took == sorted(took)
