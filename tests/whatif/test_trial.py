from __future__ import annotations

import pytest

from htagraph.core.kinds import ActivityKind
from htagraph.queries.weights import initial, own_time, with_factor
from htagraph.whatif.candidates import candidates, time_of
from htagraph.whatif.trial import Trial
from tests.reach import DATA, graph_of


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("name", ["demo", "gloo_ddp"])
def test_a_gain_is_that_of_the_weights_that_a_scenario_would_have(name: str, factor: float) -> None:
    trial = Trial(initial(graph_of(DATA / name)))
    for candidate in list(candidates(trial))[::7]:
        time = time_of(trial.state, candidate)
        assert trial.gain(time, factor) == trial.gained(with_factor(trial.state, time, factor)), candidate.name


def test_time_on_the_path_is_part_of_all_time() -> None:
    trial = Trial(initial(graph_of(DATA / "demo")))
    time = own_time(trial.state, {"kind": "computation"})
    lags, gaps = trial.counted(time)
    acts = trial.state.graph.activities
    kernels = acts.duration[acts.kind == ActivityKind.COMPUTATION].sum()
    assert 0 < trial.on_path(time) < lags.sum() + gaps.sum() == kernels
