"""Events → activities: kinds, lanes, steps and causes, each against the raw events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.trace.readers import read_trace
from tests import damage
from tests.damage import END, kineto_text, written
from tests.oracles import DEVICE, RUNTIME
from tests.strategies import BASE_NS, COMPUTE, Json, kernel, launch, load, op, step, traces, write
from tests.waiting import by_hand

HOST = {"cpu_op", "user_annotation", "python_function"} | RUNTIME


def part(events: list[Json], folder: Path, rank: int = 0, steps: list[int] | None = None) -> RankPart:
    path = write(events, folder / f"rank-{rank}.json", rank)
    return prepare(read_trace(path, lambda *_: rank), DEFAULT_NAMING, steps)


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_every_event_on_a_thread_or_a_stream_is_one_activity(events: list[Json]) -> None:
    job = by_hand(events)
    acts = job.activities
    rows = np.flatnonzero(acts.event >= 0)
    recorded = sorted(
        (event["name"], event["ts"] * 1000 + BASE_NS, event["dur"] * 1000)
        for event in events
        if event.get("cat") in HOST | DEVICE
    )
    times = zip(acts.name[rows], acts.start[rows], acts.duration[rows], strict=True)
    assert sorted((job.names[name], int(start), int(took)) for name, start, took in times) == recorded


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_cause_of_device_work_is_the_call_with_its_correlation(events: list[Json]) -> None:
    acts = by_hand(events).activities
    correlation = acts.arg("correlation")
    calls = {int(correlation[row]): row for row in range(len(acts)) if not acts.on_device[row] and correlation[row] > 0}
    for row in np.flatnonzero(acts.on_device).tolist():
        assert acts.cause[row] == calls.get(int(correlation[row]), -1)


def test_device_work_belongs_to_the_step_that_launched_it() -> None:
    events = [step(5, 0, 20), step(6, 20, 20), launch(18, 1, 1), launch(22, 1, 2)]
    events += [kernel(COMPUTE, 25, 5, 1), kernel(COMPUTE, 31, 5, 2)]
    acts = by_hand(events).activities
    assert acts.step[acts.on_device].tolist() == [5, 6]
    ends = acts.kind == ActivityKind.BOUNDARY
    assert (acts.start[ends] - BASE_NS).tolist() == [30_000, 40_000], "when the last of its work is over"


def test_chosen_steps_keep_their_device_work_and_lose_the_rest(tmp_path: Path) -> None:
    events = [step(5, 0, 20), step(6, 20, 20), op("a", 30, 1), launch(18, 1, 1), launch(22, 1, 2)]
    events += [kernel("first", 25, 5, 1), kernel("second", 31, 5, 2)]
    chosen = part(events, tmp_path, steps=[6])
    acts = chosen.activities
    recorded = {chosen.names[name] for name in acts.name[acts.event >= 0]}
    assert recorded == {"ProfilerStep#6", "a", "cudaLaunchKernel", "second"}
    assert chosen.steps == (5, 6), "all that the file has"
    work = np.flatnonzero(acts.on_device)
    assert acts.start[acts.cause[work]].tolist() == [22_000 + BASE_NS]


def test_impossible_durations_are_cut_and_reported() -> None:
    events = [launch(i, 1, i + 1) for i in range(3)]
    events += [kernel("overflow", 10, 4_000_000, 1), kernel("b", 30, 5, 2), kernel("c", 40, 5, 3)]
    job = by_hand(events)
    overflow = job.names.index("overflow")
    assert job.activities.duration[job.activities.name == overflow].tolist() == [20_000]
    assert ("duration_overflow", 1) in [(issue.what, issue.count) for issue in job.issues]


def test_the_graph_of_a_file_holds_what_was_prepared(tmp_path: Path) -> None:
    events = [op("a", 0, 9), launch(4, 1, 7), kernel(COMPUTE, 6, 5, 7)]
    prepared = part(events, tmp_path).activities
    graph = load(events)
    assert graph.activities.start.tolist() == prepared.start.tolist()
    assert graph.activities.parent.tolist() == prepared.parent.tolist()


def test_events_of_unknown_categories_are_counted_by_category(tmp_path: Path) -> None:
    odd = [damage.op(3, cat=f"mine{number}") for number in range(20)] + [
        damage.op(4, cat="mine0"),
        damage.op(5, cat="\x1b[31m" * 50),
    ]
    bare = {key: value for key, value in damage.op(6).items() if key != "cat"}
    graph = hg.load(
        written(tmp_path / "rank-0.json", kineto_text([damage.op(1), damage.kernel(1), *odd, bare, bare, END]))
    )
    found = {issue.what: issue for issue in graph.issues}
    assert len(graph.activities) == 2
    assert found["category_missing"].count == 2
    assert found["unknown_category"].count == 22
    assert "'mine0' (2), 'mine1' (1)" in found["unknown_category"].detail
    assert found["unknown_category"].detail.endswith(" and 13 more")
    assert found["unknown_category"].detail.isprintable()


@pytest.mark.parametrize("form", ["no category", "other categories", "bare list", "begins and ends"])
def test_events_of_another_program_are_work_on_lanes(form: str, tmp_path: Path) -> None:
    made: list[Any] = []
    for thread in (1, 2):
        for name, start, stop in (("step", 0, 90), ("load", 10, 30), ("compute", 40, 80)):
            where = {"name": name, "pid": 7, "tid": thread, **({"cat": "FEE"} if form == "other categories" else {})}
            if form == "begins and ends":
                made += [{"ph": "B", "ts": start, **where}, {"ph": "E", "ts": stop, **where}]
            else:
                made.append({"ph": "X", "ts": start, "dur": stop - start, **where})
    path = tmp_path / "a.json"
    path.write_text(json.dumps(made if form == "bare list" else {"traceEvents": made}))
    graph = hg.load(path)
    assert [(lane.pid, lane.tid, lane.device) for lane in graph.lanes] == [(7, 1, -1), (7, 2, -1)]
    acts = graph.activities
    parents = [graph.names[acts.name[parent]] if parent >= 0 else "" for parent in acts.parent[:6].tolist()]
    found = zip((graph.names[name] for name in acts.name[:6]), parents, acts.duration[:6].tolist(), strict=True)
    assert sorted(found) == sorted(2 * [("step", "", 90_000), ("load", "step", 20_000), ("compute", "step", 40_000)])
    assert {issue.what: issue.count for issue in graph.issues}["other_program"] == 6
    assert hg.critical_path(graph).makespan_ns == 90_000
