"""Jitter: durations vary at random, drawn many times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.core.arrays import Ints, coded
from htagraph.core.kinds import TRANSFERS
from htagraph.queries.weights import ChangeError, Jitter, OwnTime, State, checked, of_kind, own_time, with_factor
from htagraph.whatif.rewire import with_scope_note

__all__ = ["drawn", "jitter"]

_MAX_RUNS = 100_000
"""The largest number of runs allowed.

Chosen: each run costs a replay, so more would take hours on any real job. Doubled, only the error comes later."""


def jitter(state: State, /, *, sigma: float, runs: int = 100, seed: int = 0, **criteria: Any) -> State:  # noqa: ANN401
    """Return the state that draws the time of the selected activities anew in each of `runs` runs.

    The time of every activity is multiplied by a log-normal factor of mean 1; the members of a collective share a
    factor, as they share the network. The outcome's ``makespan_ns`` is still without noise; the runs are in
    ``samples_ns``, ``p50_ns`` and ``p99_ns``, and for the mean step in ``step_samples_ns`` and so on.

    Args:
        sigma: relative standard deviation of the factors, at least 0.
        runs: how many runs, at least 1.
        seed: the same seed draws the same numbers.
        **criteria: which activities; see `DependencyGraph.select`. None means all.

    Raises:
        SelectionError: nothing meets the criteria, or sigma, runs or seed are out of range.
    """
    sigma = checked(sigma, "sigma", most=10)
    if int(checked(runs, "runs", least=1, most=_MAX_RUNS)) != runs or int(checked(seed, "seed", most=2**63)) != seed:
        msg = f"runs={runs!r}, seed={seed!r}: give whole numbers"
        raise ChangeError(msg)
    time = own_time(state, criteria)
    noise = Jitter(time, _owners(state, time), sigma, int(runs), int(seed))
    return with_scope_note(replace(state, jitter=(*state.jitter, noise)), state, time, criteria, "varied")


def drawn(state: State) -> Iterator[State]:
    """Yield the state of each run."""
    for run in range(max((noise.runs for noise in state.jitter), default=0)):
        one = state
        for place, noise in enumerate(state.jitter):
            width = np.sqrt(np.log1p(noise.sigma**2))
            random = np.random.default_rng((noise.seed, run, place))
            normal = random.standard_normal(int(noise.owner.max(initial=-1)) + 1)
            one = with_factor(one, noise.time, np.exp(width * normal - width**2 / 2)[noise.owner])
        yield one


def _owners(state: State, time: OwnTime) -> Ints:
    """Return the number of the draw for each edge and then for each gap: one per activity, per collective, per gap."""
    edges = state.graph.edges
    by = edges.activity[time.edges]
    shared = of_kind(state.graph, *TRANSFERS)[time.edges]
    by[shared] = edges.source[time.edges[shared]] >> 1  # the JOIN
    number = coded(by)
    return np.concatenate((number, int(number.max(initial=-1)) + 1 + np.arange(len(time.gaps))))
