"""By how much steps take longer, and what of that is noise."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.analyses.differences.step_change import change_of_runs, change_of_times, step_change, typical
from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.core.statistics import upper_quantile
from htagraph.graph.measures.steps import step_lengths
from tests.reach import REPOSITORY, graph_of

DEMO = REPOSITORY / "data" / "demo"


def drawn(rng: np.random.Generator, runs: int, steps: int, slower: float = 1.0) -> list[np.ndarray]:
    """Return step times of runs that differ by 0.4 %, and whose steps differ by 3 %."""
    means = 1e5 * slower * (1 + 0.004 * rng.standard_normal(runs))
    return [mean * (1 + 0.03 * rng.standard_normal(steps)) for mean in means]


@pytest.mark.parametrize(("runs", "steps"), [(1, 4), (1, 20), (3, 8), (5, 3)])
def test_of_unchanged_jobs_one_in_a_hundred_is_called_changed(runs: int, steps: int) -> None:
    rng = np.random.default_rng(7)
    changes = [change_of_times(drawn(rng, runs, steps), drawn(rng, runs, steps)) for _ in range(1_500)]
    assert np.mean([not change.is_noise for change in changes]) < 0.02
    assert np.mean([change.plus_minus_percent for change in changes]) < 12


@pytest.mark.parametrize(("runs", "steps"), [(1, 10), (3, 8)])
def test_of_jobs_a_tenth_slower_nearly_all_are_called_slower(runs: int, steps: int) -> None:
    rng = np.random.default_rng(7)
    changes = [change_of_times(drawn(rng, runs, steps), drawn(rng, runs, steps, 1.1)) for _ in range(500)]
    assert np.mean([change.percent > 0 and not change.is_noise for change in changes]) > 0.95


def test_runs_are_clusters_however_many_steps_they_have() -> None:
    rng = np.random.default_rng(1)
    far_apart = [mean + rng.standard_normal(1_000) for mean in (100.0, 110.0, 120.0)]
    other = [mean + rng.standard_normal(1_000) for mean in (105.0, 115.0, 125.0)]
    assert change_of_times(far_apart, other).is_noise
    assert not change_of_times(far_apart[:1], other[:1]).is_noise


def test_the_interval_of_few_steps_is_that_of_welch() -> None:
    before, after = np.array([100.0, 110, 90, 100]), np.array([130.0, 150, 110, 130, 130])
    logs = [np.log(run) for run in (before, after)]
    parts = [(1.57 * run.var(ddof=1) / len(run) + 0.004**2, len(run) - 1) for run in logs]
    error = sum(part for part, _ in parts)
    freedom = error**2 / sum(part**2 / free for part, free in parts)
    expected = 100 * 1.3 * (1 - np.exp(-upper_quantile(0.005, freedom) * np.sqrt(error)))
    assert change_of_times([before], [after]).plus_minus_percent == pytest.approx(expected)


def test_one_odd_step_hides_no_change_of_all_others() -> None:
    """With means, 270 ms to 1.10 s was 307 % ± 1856 %, which passed."""
    before, after = (
        np.array([270.0, 272, 268, 271, 269, 270, 273]),
        np.array([1100.0, 1090, 9000, 1105, 1098, 1102, 1101]),
    )
    change = change_of_times([before], [after])
    assert change.percent == pytest.approx(100 * (1101 / 270 - 1))
    assert change.fails(5.0, strict=False)
    assert change_of_times([after], [before]).percent == pytest.approx(100 * (270 / 1101 - 1))
    few = change_of_times([before[:3]], [after[:3]])
    assert (few.cannot_tell(5.0), few.fails(5.0, strict=False), few.fails(5.0, strict=True)) == (True, False, True)
    assert few.steps_to_tell(5.0) > 100


def test_a_gate_whose_noise_exceeds_its_limit_cannot_tell() -> None:
    rng = np.random.default_rng(3)
    before, after = (1e5 * (1 + 0.1 * rng.standard_normal(12)) for _ in range(2))
    change = change_of_times([before], [after])
    assert change.is_noise
    assert change.cannot_tell(1.0)
    assert not change.cannot_tell(60.0)
    assert not change.cannot_tell(0.0), "no limit is smaller than noise"


@pytest.mark.parametrize("side", [[], [np.zeros(0)], [np.array([100.0])]])
def test_too_few_steps_are_said_to_tell_nothing(side: list[np.ndarray]) -> None:
    change = change_of_times([np.array([100.0, 101, 99])], side)
    assert not change.is_known
    assert not change.is_noise
    assert "too few steps" in change.text()


def test_of_a_single_step_only_what_no_chance_explains_fails() -> None:
    one = [np.array([100.0])]
    far = change_of_times(one, [np.array([933.0])])
    assert not far.cannot_tell(5.0)
    assert far.fails(5.0, strict=False)
    near = change_of_times(one, [np.array([112.0])])
    assert near.cannot_tell(5.0)
    assert not near.fails(5.0, strict=False)
    assert near.fails(5.0, strict=True)
    shorter = change_of_times(one, [np.array([50.0])])
    assert not shorter.fails(5.0, strict=False)
    assert change_of_times(one, [np.zeros(0)]).cannot_tell(5.0)  # no step at all tells nothing


def test_the_change_is_that_of_the_steps_of_the_diff() -> None:
    graph = graph_of(DEMO)
    result = hg.diff(graph, graph, steps=[5, 6], steps_after=[6, 7])
    change = change_of_runs(result, [graph], [graph])
    lengths = dict(zip(*step_lengths(graph, graph.time, ends=True), strict=True))
    assert (change.before_us, change.after_us) == (lengths[6] / 1000, (lengths[6] + lengths[7]) / 2000)
    assert change.runs == (1, 1)


def test_the_same_runs_do_not_differ() -> None:
    graph = graph_of(DEMO)
    change = step_change([graph, graph], [graph])
    assert change.percent == pytest.approx(0)
    assert (change.runs, change.is_noise) == ((2, 1), True)
    assert typical([graph]) is graph
    assert typical([graph] * 3) is graph


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(HtagraphError, match="at least one recording"):
        step_change([], [graph_of(DEMO)])
    with pytest.raises(SelectionError):
        step_change([graph_of(DEMO)], [graph_of(DEMO)], steps=[99])


def test_few_steps_that_all_lie_apart_are_a_difference_that_chance_may_make() -> None:
    slower = change_of_times([np.array([100.0, 104.0])], [np.array([190.0, 230.0])])
    assert slower.is_noise and slower.is_apart and not slower.shows_none
    assert slower.cannot_tell(5.0), "a gate needs more steps"
    mixed = change_of_times([np.array([100.0, 204.0])], [np.array([190.0, 230.0])])
    assert mixed.shows_none and not mixed.is_apart
