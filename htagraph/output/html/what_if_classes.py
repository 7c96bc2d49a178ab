"""What the what-if panel can change: classes of time with a slider each, and changes of the whole job to start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.core.kinds import COMMUNICATION
from htagraph.findings.phrases import shortened
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.blocking_calls import longest_blocking
from htagraph.queries.weights import OwnTime, State, initial, own_time
from htagraph.whatif.candidates import candidates, target_of, time_of
from htagraph.whatif.change_options import CHANGES, criteria, criteria_text
from htagraph.whatif.trial import Trial
from htagraph.whatif.what_if import what_if

__all__ = ["Slider", "Start", "sliders", "starts"]

_LEAST_SHARE = 0.005
"""Share of the makespan that a class has on the critical path at least. Chosen: what has less can gain less than runs
of one job differ. Doubled, fewer sliders."""
_MOST_NAMED = 6
"""How many kernels, operators, calls and phases have a slider, those that gain most. Chosen: with the classes they fill
one screen. Doubled, the panel takes twice the place, and up to twice the bytes."""
_LEAST_CHANGE = 0.001
"""Relative change of the makespan from which a start is offered. Chosen: less than any digit that the panel shows.
Doubled, a start that saves 0.15 % is not offered."""
_MOST_LETTERS = 40
"""Letters of a name in a start; chosen: those of most operators. Doubled, a start takes two lines."""
_FAMILIES = (
    ("All kernels", "computation", {"kind": "computation"}),
    ("GEMM kernels", "", {"kind": "computation", "name": "*gemm*"}),
    ("Attention kernels", "", {"kind": "computation", "name": "*flash*"}),
    ("Attention kernels", "", {"kind": "computation", "name": "*attention*"}),
    ("Copies and sets of memory", "memory", {"kind": "memory"}),
    ("Network: all transfers between ranks", "communication", {"kind": [kind.label for kind in COMMUNICATION]}),
    ("Launch calls", "launch", {"kind": "launch"}),
    ("Python between operators", "gap", {"kind": "untraced"}),
    ("All host code", "host", {"kind": "host"}),
)
"""Name, category on the critical path (empty where it is a part of another one), criteria."""
_STARTS = (
    ("Blocking calls do not wait for the device", "remove-sync", "kind=sync"),
    ("The data loader always has the next batch ready", "free-dataloader", ""),
    ("Launching takes no time", "no-launch-overhead", ""),
    ("The straggler is as fast as its peers", "fix-straggler", "auto"),
    ("No other work waits for collectives (an upper bound)", "perfect-overlap", ""),
)
"""What the job may start from: in words, as an option of ``htagraph what-if``, and the value of that."""


@dataclass(frozen=True)
class Slider:
    """A class of time that a factor multiplies."""

    name: str
    category: str
    """Its category on the critical path; empty where it is a part of others."""
    criteria: dict[str, Any]
    note: str = ""
    """What its time includes; empty where the name says it."""

    @property
    def option(self) -> tuple[str, str]:
        """The option of ``htagraph what-if`` and what stands before the factor in its value."""
        if self.category == "communication":
            return "--network", ""
        return "--scale", f"{criteria_text(self.criteria)}:"


@dataclass(frozen=True, eq=False)
class Start:
    """The weights that all factors are applied to."""

    name: str
    option: tuple[str, ...]
    """The words of ``htagraph what-if`` that make them; none for the job as recorded."""
    state: State


def sliders(graph: DependencyGraph, opportunities: pd.DataFrame) -> list[Slider]:
    """Return the classes with time on the critical path: kinds of work, one rank, and what could gain most.

    Args:
        graph: the job.
        opportunities: result of `htagraph.opportunities`.
    """
    trial = Trial(initial(graph))
    chosen: list[Slider] = []
    times: list[OwnTime] = []
    named = 0
    for slider, is_named in [
        *((each, False) for each in _families()),
        *((each, False) for each in _rank_and_loader(trial)),
        *((each, True) for each in _named(opportunities)),
    ]:
        time = _time_on_path(trial, slider)
        if time is None or any(_same(time, other) for other in times) or (is_named and named == _MOST_NAMED):
            continue
        named += is_named
        chosen.append(slider)
        times.append(time)
    return chosen


def starts(graph: DependencyGraph) -> Iterator[Start]:
    """Yield the job as recorded, and with each change that changes its makespan."""
    job = what_if(graph)
    yield Start("As recorded", (), job.state)
    for name, option, value in (*_blocking_start(graph), *_STARTS):
        try:
            scenario = CHANGES[option].read(value).apply(job)
            outcome = scenario.run()
        except HtagraphError:  # the job has nothing that this changes
            continue
        if abs(outcome.saved_ns) > _LEAST_CHANGE * outcome.baseline_ns:
            yield Start(name, (f"--{option}", value) if value else (f"--{option}",), scenario.state)


def _blocking_start(graph: DependencyGraph) -> Iterator[tuple[str, str, str]]:
    """Yield what the job would be if its host did not wait where it waits longest for its device."""
    place = longest_blocking(graph)
    if place is not None:
        name = f"The host does not wait for its device in {shortened(place.name, _MOST_LETTERS)}"
        yield name, "remove-sync", criteria_text(place.criteria)


def _families() -> Iterator[Slider]:
    for name, category, which in _FAMILIES:
        yield Slider(name, category, dict(which))


def _rank_and_loader(trial: Trial) -> Iterator[Slider]:
    """Yield the data loader, and the rank with most time on the critical path."""
    ranks = []
    for candidate in candidates(trial):
        if candidate.what == "rank":
            ranks.append(candidate)
        elif candidate.name == "data loading":
            yield Slider("Data loading", "data-loading", dict(candidate.criteria or {}), candidate.note)
    for candidate in sorted(ranks, key=lambda each: -each.bound)[:1]:
        which = target_of(trial.state, candidate, time_of(trial.state, candidate))
        if which:
            yield Slider(f"All own work of {candidate.name}", "", which, candidate.note)


def _named(opportunities: pd.DataFrame) -> Iterator[Slider]:
    for row in opportunities.itertuples():
        if row.target and row.what not in {"rank", "straggler"}:
            yield Slider(f"{row.what} {row.name}", "", criteria(str(row.target)), str(row.note))


def _time_on_path(trial: Trial, slider: Slider) -> OwnTime | None:
    """Return the time of a class; None if too little of it is on the critical path."""
    try:
        time = own_time(trial.state, dict(slider.criteria))
    except SelectionError:  # the job has no such work
        return None
    least = max(1.0, _LEAST_SHARE * trial.makespan)
    return time if trial.on_path(time) >= least else None


def _same(one: OwnTime, other: OwnTime) -> bool:
    def sizes(time: OwnTime) -> tuple[bytes, bytes]:
        return time.edges.tobytes(), time.gaps.tobytes()

    return sizes(one) == sizes(other)
