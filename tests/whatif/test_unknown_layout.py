"""Which groups are tensor parallel, and what their ranks share: told from passes, or left open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import htagraph as hg
from htagraph.queries.weights import Unsure
from htagraph.whatif.layout import known_groups, undecided_groups, with_shared_work
from htagraph.whatif.unknown_layout import counted, opens_layout, shorter_if_they_stay
from tests.whatif.changes.simulated import recorded, small
from tests.whatif.test_layout import labelled, without_operators_of_passes


@pytest.mark.parametrize("ranks", [2, 4])
def test_forward_operators_show_the_forward_pass_without_modules(ranks: int) -> None:
    job = small("tensor").model_copy(update={"tp": 2, "ranks": ranks})
    graph, _ = recorded(job)
    assert graph.matches is not None
    names = {label: str(place) for place, label in enumerate(dict.fromkeys(graph.matches.group))}
    bare = replace(graph, matches=replace(graph.matches, group=tuple(names[each] for each in graph.matches.group)))
    said = known_groups(graph, "tensor")
    assert said.any()
    assert np.array_equal(known_groups(bare, "tensor"), said)
    assert not undecided_groups(bare).any()
    blind = without_operators_of_passes(bare)
    assert not known_groups(blind, "tensor").any()
    assert undecided_groups(blind).all()


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_gradients_are_not_taken_for_activations(strategy: str) -> None:
    job = small("communication_bound").model_copy(update={"data_strategy": strategy})
    graph, _ = recorded(job)
    bare = labelled(graph, "a")
    assert not known_groups(bare, "tensor").any()
    assert not undecided_groups(bare).any()


def test_tensor_parallel_ranks_may_each_do_all_short_work_on_activations() -> None:
    graph, _ = recorded(small("gpu_bound"))
    state = with_shared_work(hg.what_if(graph).state, 0.5, "tensor")
    (unsure,) = [each for each in state.unsure if each.of_layout]
    duration = graph.activities.duration
    names = [graph.names[code] for code in graph.activities.name[unsure.activities]]
    assert names
    assert not any("gemm" in name or "layer_norm" in name or "flash" in name for name in names)
    assert (unsure.high == 2).all()
    norms = np.array(["layer_norm" in name for name in graph.names])[graph.activities.name]
    assert duration[unsure.activities].max() <= duration[norms].max()


def test_groups_that_stay_take_what_they_took() -> None:
    rows = np.arange(2)
    shorter = shorter_if_they_stay(np.array([6.0, 9.0]), np.array([12.0, 8.0]), rows, rows[:0])
    assert shorter.low.tolist() == [0.5, 1.0]
    model = Unsure(rows, shorter.low, shorter.high)
    assert counted([model, shorter], of_layout=False) == [model]
    assert opens_layout([shorter], longer=False)
    assert not opens_layout([shorter], longer=True)
    assert not opens_layout([model], longer=False)
