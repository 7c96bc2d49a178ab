"""The what-if panel: sliders whose step time, critical path and interval are computed in the page.

The page gets small graphs with the times of the job (`htagraph.contract`): one for each reading of the recording, with
one weight per class of time, so that it predicts what ``hg.what_if`` does for any factors.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.names import readable_name
from htagraph.findings.change import scenario_of
from htagraph.findings.changes import ProposedChange
from htagraph.findings.phrases import plural, shortened, time_text
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import cadence_of, is_paced_by_ends
from htagraph.output.html.page import Html, Section, element, json_bytes
from htagraph.queries.skeleton import MatchedMembers, Skeleton, contract
from htagraph.queries.weights import State, initial, own_time
from htagraph.whatif.candidates import Baseline, candidates, target_of, time_of
from htagraph.whatif.contracted_readings import Reading, contracted_readings, shares_links_differently
from htagraph.whatif.interval import CONSTANTS
from htagraph.whatif.options import criteria, criteria_text
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.run_spread import run_spread
from htagraph.whatif.scenario import what_if

__all__ = ["Slider", "Start", "sliders", "starts", "what_if_section"]

SCRIPTS = (
    "payload.js", "words.js", "what_if_model.js", "what_if_interval.js", "what_if_chart.js", "what_if.js",
)  # fmt: skip
STYLES = ("what_if.css",)

_MOST = 2
"""The largest factor of a slider. Chosen: what takes longer than twice its time is another program. Doubled, skeletons
are a few percent larger."""
_MOST_BYTES = 350_000
"""Compressed bytes of the job as recorded, with all readings. Chosen: a twentieth of the largest page. Doubled, more
sliders fit where many of them overlap."""
_MOST_EDGES_WITH_STARTS = 300_000
"""Edges of a job that may start from other than the recorded one. Measured: the skeletons of a start take 15 s of
CPU at 800,000 edges. Doubled, a report of a job of that size takes as much longer."""
_MOST_LETTERS = 76
"""Letters of a name that are shown; the whole one is its title. Chosen: two lines. Doubled, four."""
_OTHER = {"name": "everything else", "number": -1, "css": "c-other"}
_NONE = "Nothing can be changed here: the job has no work on its critical path, or took no time."
_SHARED = (
    "Transfers of this job share links: how long each takes depends on which others run at the same moment. No small "
    "graph describes that, so this page has no sliders; the command computes it."
)
_HOW = (
    "Each slider multiplies the time of some work in all ranks and steps; 50 % is twice as fast, 0 % is free. Waits "
    "between threads, devices and ranks follow from the dependencies. Where two selections overlap, both factors "
    "apply. Move several at once. A slider that has the focus moves by arrow keys."
)
_WORDS = {
    "command": "The same on the command line:",
    "starts": "Start from",
    "steps": "Each step, before (grey) and after (blue)",
    "curve": "Usual step over the share of the time that is left to",
    "path": "The critical path by what it is spent on",
    "ranks": "The critical path by rank",
    "missing": "The interval is not whole; the command gives all of it. Not in it:",
}
_DEFINITIONS = (
    "Usual step: the mean of regular steps, none of which warms up or is odd. As fast: the recorded makespan "
    "over the predicted one. 90 %: the interval of hg.what_if, which has other readings of the same recording (waits "
    "that are not certain or not shown, pauses that nothing explains, a loader that may not keep up) and chance; for "
    "steps, the interval of the speedup applied to the usual step. Critical path: the longest chain of work and waits "
    "that the makespan is; of equally long ones, one. Everything else: time that belongs to none of the classes above, "
    "such as the latency from a launch to its kernel."
)

_MOST_NAMED = 6
"""How many kernels, operators, calls and phases have a slider, those that gain most. Chosen: with the classes they fill
one screen. Doubled, the panel takes twice the place, and up to twice the bytes."""
_MOST_PROPOSED = 5
"""Proposed changes that the job may start from. Chosen: the panel shows them in two rows. Doubled, the page takes up to
twice the bytes."""
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
    ("Nobody waits for what was not recorded", "free-outside", ""),
    ("Launching takes no time", "no-launch-overhead", ""),
    ("The straggler is as fast as its peers", "fix-straggler", "auto"),
    ("No other work waits for collectives (an upper bound)", "perfect-overlap", ""),
)
"""What the job may start from: in words, as an option of ``htagraph what-if``, and the value of that."""


def what_if_section(
    graph: DependencyGraph,
    inputs: Sequence[str],
    opportunities: pd.DataFrame,
    proposed: Iterable[ProposedChange] = (),
) -> Section:
    """Return the section of the what-if panel.

    Args:
        graph: the job.
        inputs: the words of a command line that read the job.
        opportunities: the table whose targets have sliders.
        proposed: the list of changes that the panel can start from.
    """
    outcome = what_if(graph).run()
    levers = sliders(graph, opportunities)
    if not levers or outcome.baseline_ns <= 0:
        return Section("what-if", "What if?", element("p", _NONE))
    if shares_links_differently(outcome.links.state):
        return Section("what-if", "What if?", element("p", _SHARED))
    every = len(levers)
    levers, recorded = _fitting(graph, levers)
    dropped = every - len(levers)
    left_out = [f"{plural(dropped, 'slider')} left out, to keep the page small."] if dropped else []
    jobs: list[dict[str, Any]] = []
    data = bytearray()
    for start in starts(graph, proposed):
        readings, missing = _readings(graph, start.state, levers) if start.option else recorded
        found = _different(readings)
        if not found or (start.option and len(data) + sum(len(each) for _, _, each in found) > 2 * _MOST_BYTES):
            left_out.append(f"Not here, to keep the page small: {start.name}: {' '.join(start.option)}")
            continue
        jobs.append({
            "name": start.name, "option": start.option, "missing": missing, "ceiling": bool(start.state.ceilings),
            "ranks": _added(data, _ranks(graph, found[0][0].skeleton)),
            "readings": [
                {"cause": each.cause, "ratio": each.ratio, "unit": unit, **_added(data, piece)}
                for each, unit, piece in found
            ],
        })  # fmt: skip
    result = element("div", element("div", "The sliders need scripts; the table does not.", class_="answer"),
                     element("div", class_="command"), class_="result", aria_live="polite")  # fmt: skip
    charts = element("div", element("div", class_="curve"), element("div", class_="steps"), class_="columns changes")
    panel = element(
        "div", element("div", class_="starts"), result, _table(levers, recorded[0][0].skeleton, outcome),
        element("svg", class_="swatch", aria_hidden="true"), charts, element("div", class_="path"),
        *(element("p", each, class_="note") for each in left_out),
        element("details", element("summary", "What these numbers mean"), element("p", _DEFINITIONS)),
        class_="what-if", data_key="what-if",
    )  # fmt: skip
    payload = {"what-if-header": json_bytes(_header(jobs, levers, outcome, inputs)), "what-if-data": bytes(data)}
    body = element("div", element("p", _HOW, class_="hint"), panel)
    return Section("what-if", "What if?", body, SCRIPTS, STYLES, payload)


def _added(data: bytearray, piece: bytes) -> dict[str, int]:
    """Return where a piece is that is added to the bytes of the page."""
    data += piece
    return {"at": len(data) - len(piece), "size": len(piece)}


def _fitting(graph: DependencyGraph, levers: list[Slider]) -> tuple[list[Slider], tuple[list[Reading], list[str]]]:
    """Return (the sliders whose skeletons are small enough, these of the job as recorded); the last ones go first."""
    state = what_if(graph).state
    readings = len(_different(contracted_readings(graph, state, _classes(levers[:1]), _MOST)[0]))
    most, made = _MOST_BYTES / readings, None  # one is about as large as another
    while len(levers) > 1:
        made = contract(state, _classes(levers), most=_MOST)
        size = len(_packed(made)[1])
        if size <= most:
            break
        made = None
        # measured on two jobs: from 5 to 12 sliders, a skeleton becomes three times as large
        levers = levers[: max(1, min(len(levers) - 1, round(len(levers) * (most / size) ** 0.7)))]
    return levers, contracted_readings(graph, state, _classes(levers), _MOST, known=made)


def _different(readings: Sequence[Reading]) -> list[tuple[Reading, int, bytes]]:
    """Return readings that differ from all before, each with its unit, ns, and its bytes."""
    found: dict[tuple[bytes, float], tuple[Reading, int, bytes]] = {}
    for each in readings:
        unit, data = _packed(each.skeleton)
        found.setdefault((data, each.ratio), (each, unit, data))
    return list(found.values())


def _packed(skeleton: Skeleton) -> tuple[int, bytes]:
    """Return (the ns of which all its weights are multiples, its bytes in multiples of that)."""
    unit = max(int(np.gcd.reduce(skeleton.weight, axis=None)), 1)
    return unit, replace(skeleton, weight=skeleton.weight // unit, members=MatchedMembers.none()).to_bytes()


def _classes(levers: Sequence[Slider]) -> dict[str, dict[str, Any]]:
    return {str(number): lever.criteria for number, lever in enumerate(levers)}


def _readings(graph: DependencyGraph, state: State, levers: Sequence[Slider]) -> tuple[list[Reading], list[str]]:
    """Return the readings of a job that starts from other than the recorded one; none where that would take long."""
    if len(graph.edges) > _MOST_EDGES_WITH_STARTS or shares_links_differently(state):
        return [], []
    try:
        return contracted_readings(graph, state, _classes(levers), _MOST)
    except HtagraphError:  # the change leaves nothing of a class
        return [], []


def _ranks(graph: DependencyGraph, skeleton: Skeleton) -> bytes:
    """Return 1 + the rank of each vertex, 0 where it is between ranks, as compressed numbers of two bytes."""
    acts = graph.activities
    row = np.maximum(skeleton.vertex, 0) // 2
    none = (skeleton.vertex < 0) | (acts.kind[row] == ActivityKind.JOIN)
    return zlib.compress(np.where(none, 0, acts.rank[row] + 1).astype("<u2").tobytes(), 9)


def _header(
    jobs: list[dict[str, Any]], levers: Sequence[Slider], outcome: Outcome, inputs: Sequence[str]
) -> dict[str, Any]:
    """Return what the panel's script reads first; other host code is all that no other category of host code has."""
    categories = [
        {
            "name": "other host code" if lever.category == "host" else lever.name, "number": number,
            "css": f"c-{lever.category}",
        }
        for number, lever in enumerate(levers)
        if lever.category
    ]  # fmt: skip
    cadence = cadence_of(outcome.baseline)
    return {
        "inputs": list(inputs), "jobs": jobs, "words": _WORDS,
        "constants": {**CONSTANTS, "run_spread": run_spread(outcome.baseline)},
        "recorded": {
            "makespan": outcome.baseline_ns, "step": outcome.baseline_step_ns, "steps": outcome.baseline_steps_ns,
        },
        "paced": {
            "ends": is_paced_by_ends(outcome.baseline),
            "counted": cadence.steps[cadence.chosen].tolist() if cadence else [],
        },
        "stepped": bool(len(outcome.step_times())),
        "classes": [{"name": lever.name, "option": lever.option} for lever in levers],
        "categories": [*categories, _OTHER],
    }  # fmt: skip


def _table(levers: Sequence[Slider], skeleton: Skeleton, outcome: Outcome) -> Html:
    """Return the sliders' rows, with what is known without any script."""
    columns = "What", "On the critical path", "Percent of its time", "Job at half of it", "Job without it"
    styles = None, "number", "lever", "number alone", "number alone"
    head = element("tr", *(element("th", each, class_=style) for each, style in zip(columns, styles, strict=True)))
    # how much of a critical path is time of each class, ns
    times = skeleton.weight[skeleton.critical_edges()].sum(axis=0)[1:].tolist()
    parts = [*zip(skeleton.classes.parts, times, strict=True)]
    on_path = [sum(ns for part, ns in parts if each in part) for each in range(len(levers))]
    rows = [
        element("tr", *_cells(lever, on_path[number], outcome, [
            skeleton.makespan_ns({str(number): factor}) for factor in (0.5, 0.0)
        ]), data_class=number)
        for number, lever in enumerate(levers)
    ]  # fmt: skip
    return element("div", element("table", head, *rows, class_="levers"), class_="wide")


def _cells(lever: Slider, on_path: float, outcome: Outcome, times: list[int]) -> Iterator[Html]:
    note = element("div", lever.note, class_="note") if lever.note else ""
    yield element("td", element("span", shortened(lever.name, _MOST_LETTERS), title=lever.name), note, class_="text")
    share = 100 * on_path / outcome.baseline_ns
    yield element("td", f"{time_text(on_path / 1000)} ({share:.0f} %)", class_="number")
    yield element("td", class_="lever")
    for time in times:
        saved = 100 * (1 - time / outcome.baseline_ns)
        yield element("td", f"{time_text(time / 1000)} ({-saved:+.1f} %)", class_="number alone")


@dataclass(frozen=True)
class Slider:
    """A class of time that a factor multiplies."""

    name: str
    category: str
    """Its category on the critical path; empty where it is a part of others."""
    criteria: dict[str, Any]
    note: str = ""
    """What its time includes; empty where the name says it."""
    is_named: bool = False
    """Whether it is one of the kernels, operators, calls and phases that could gain most."""

    @property
    def option(self) -> tuple[str, str]:
        """The option of ``htagraph what-if`` and what stands before the factor in its value."""
        return "--scale", f"{criteria_text(self.criteria)}:"


@dataclass(frozen=True, eq=False)
class Start:
    """The weights that all factors are applied to."""

    name: str
    option: tuple[str, ...]
    """The words of ``htagraph what-if`` that make them; none for the job as recorded."""
    state: State


def _words(what: str, name: str) -> str:
    """Return the words for a kernel or an operator beside its slider, with a readable name."""
    return f"{what} {readable_name(name)}"


def sliders(graph: DependencyGraph, opportunities: pd.DataFrame) -> list[Slider]:
    """Return the classes with time on the critical path: kinds of work, one rank, and what could gain most."""
    baseline = Baseline(initial(graph))
    chosen: list[Slider] = []
    times: list[tuple[bytes, bytes]] = []
    named = 0
    families = (Slider(name, category, dict(which)) for name, category, which in _FAMILIES)
    targets = (
        Slider(_words(str(row.what), str(row.name)), "", criteria(str(row.target)), str(row.note), is_named=True)
        for row in opportunities.itertuples()
        if row.target and row.what not in {"rank", "straggler"}
    )
    for slider in (*families, *_rank_and_loader(baseline), *targets):
        time = _time_on_path(baseline, slider)
        if time is None or time in times or (slider.is_named and named == _MOST_NAMED):
            continue
        named += slider.is_named
        chosen.append(slider)
        times.append(time)
    return chosen


def starts(graph: DependencyGraph, proposed: Iterable[ProposedChange] = ()) -> Iterator[Start]:
    """Yield the job as recorded, then with each proposed change of which a way is known, then with the usual changes.

    A change that leaves the makespan as it is has no start.

    Args:
        graph: the job.
        proposed: the list of changes, the first thing to do first.
    """
    yield Start("As recorded", (), what_if(graph).state)
    with_way = [row for row in proposed if row.is_known and row.options]
    title_of = {
        row.options: shortened(row.change.title, _MOST_LETTERS) for row in with_way[:_MOST_PROPOSED] if row.change
    }
    for name, option, value in _STARTS:
        title_of.setdefault(_options_of(option, value), name)
    for options, name in title_of.items():
        try:
            scenario = scenario_of(graph, options)
            outcome = scenario.run()
        except HtagraphError:  # the job has nothing that this changes
            continue
        if abs(outcome.saved_ns) > 0.001 * outcome.baseline_ns:  # less is no digit that the panel shows
            yield Start(name, options, scenario.state)


def _options_of(option: str, value: str) -> tuple[str, ...]:
    """Return the words of the command line for an option with a value, or without one."""
    return (f"--{option}", value) if value else (f"--{option}",)


def _rank_and_loader(baseline: Baseline) -> Iterator[Slider]:
    """Yield the data loader, and the rank with most time on the critical path."""
    ranks = []
    for candidate in candidates(baseline):
        if candidate.what == "rank":
            ranks.append(candidate)
        elif candidate.name == "data loading":
            yield Slider("Data loading", "data-loading", dict(candidate.criteria or {}), candidate.note)
    for candidate in sorted(ranks, key=lambda each: -each.bound)[:1]:
        which = target_of(baseline.state, candidate, time_of(baseline.state, candidate))
        if which:
            yield Slider(f"All own work of {candidate.name}", "", which, candidate.note)


def _time_on_path(baseline: Baseline, slider: Slider) -> tuple[bytes, bytes] | None:
    """Return the time of a class by edge and gap, as bytes; None if too little of it is on the critical path."""
    try:
        time = own_time(baseline.state, dict(slider.criteria))
    except SelectionError:  # the job has no such work
        return None
    least = max(1.0, 0.005 * baseline.makespan)  # what has less can gain less than runs of one job differ
    return (time.edges.tobytes(), time.gaps.tobytes()) if baseline.on_path(time) >= least else None
