"""Begins and ends make the durations that a stack per thread makes; what stays out is counted."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.issues import IssueLog
from htagraph.trace.reading.pairs import PhaseEvent, paired, report_phases
from tests.damage import END, Json, issues, kernel, kineto_text, loaded, names, op, written

SPAN = {"cat": "cpu_op", "pid": 77, "tid": 77}


def event(position: int, phase: str, name: str = "", time: str = "", tid: int = 7) -> PhaseEvent:
    return PhaseEvent(position, phase, name, "cpu_op" if phase == "B" else None, 7, tid, time or str(position), {})


def pairs_of(*events: PhaseEvent) -> tuple[list[tuple[object, str, str]], dict[str, int]]:
    log = IssueLog("a.json")
    found = [(pair.begin.name, pair.begin.time, pair.duration) for pair in paired(events, log)]
    return found, {issue.what: issue.count for issue in log.issues()}


def test_an_end_closes_the_latest_begin() -> None:
    events = event(0, "B", "a"), event(1, "B", "b"), event(2, "E"), event(5, "E")
    assert pairs_of(*events) == ([("a", "0", "5"), ("b", "1", "1")], {})


def test_an_end_with_a_name_closes_the_latest_begin_of_that_name() -> None:
    events = event(0, "B", "a"), event(1, "B", "a"), event(2, "B", "b"), event(3, "E", "a"), event(5, "E", "c")
    assert pairs_of(*events) == ([("a", "1", "2")], {"begin_unpaired": 2, "end_unpaired": 1})


def test_threads_have_pairs_of_their_own() -> None:
    events = event(0, "B", "a"), event(1, "B", "b", tid=8), event(2, "E"), event(3, "E", tid=8)
    assert pairs_of(*events) == ([("a", "0", "2"), ("b", "1", "2")], {})


def test_times_decide_and_not_the_order_in_the_file() -> None:
    events = event(0, "E", "", "9.5"), event(1, "B", "a", "1711900000000012.005"), event(2, "B", "b", "3.25")
    assert pairs_of(*events, event(3, "E", "", "1711900000000012.006")) == (
        [("a", "1711900000000012.005", "0.001"), ("b", "3.25", "6.25")],
        {},
    )


@pytest.mark.parametrize("time", ["x", "nan", "inf", "--1", "", "²", "٣", "1e300", "-9300000000000000"])
def test_what_has_no_time_is_counted(time: str) -> None:
    odd = event(0, "B", "a")._replace(time=time)
    assert pairs_of(odd, event(1, "E")) == ([], {"end_unpaired": 1, "pair_untimed": 1})


def test_a_duration_longer_than_times_can_be_is_counted() -> None:
    ends = event(0, "B", "a", "-9e15"), event(1, "E", "", "9e15")
    assert pairs_of(*ends) == ([], {"pair_untimed": 2})


@given(st.lists(st.tuples(st.sampled_from("BE"), st.sampled_from(["", "a", "b"]), st.integers(0, 1)), max_size=30))
def test_pairs_are_those_of_a_stack(made: list[tuple[str, str, int]]) -> None:
    events = [event(i, phase, name, tid=tid) for i, (phase, name, tid) in enumerate(made)]
    stacks: dict[int, list[PhaseEvent]] = {0: [], 1: []}
    expected: list[tuple[object, str, str]] = []
    left = 0
    for each in events:
        stack = stacks[int(str(each.tid))]
        fitting = [begin for begin in stack if not each.name or begin.name == each.name]
        if each.phase == "B":
            stack.append(each)
        elif fitting:
            stack.remove(fitting[-1])
            duration = Decimal(each.time) - Decimal(fitting[-1].time)
            expected.append((fitting[-1].name, fitting[-1].time, str(duration)))
        else:
            left += 1
    found, counted = pairs_of(*events)
    assert sorted(found, key=lambda pair: int(pair[1])) == sorted(expected, key=lambda pair: int(pair[1]))
    assert counted == +Counter(end_unpaired=left, begin_unpaired=len(stacks[0]) + len(stacks[1]))


def test_ends_of_another_name_cost_no_search() -> None:
    asked = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal asked
            asked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    begins = [event(i, "B", Name("a")) for i in range(200)]
    assert pairs_of(*begins, *(event(200 + i, "E", Name("b")) for i in range(200)))[1]["end_unpaired"] == 200
    assert asked < 2000


def test_phases_that_have_no_place_in_columns_are_counted() -> None:
    log = IssueLog("a.json")
    report_phases(
        {"X": 5, "M": 1, "s": 1, "f": 1, "t": 1, "": 2, "b": 3, "\x1b" * 500: 1, **dict.fromkeys("nNODPR", 1)}, log
    )
    found = log.issues()
    assert sum(issue.count for issue in found) == 12
    assert (found[0].what, found[0].count) == ("phase_missing", 2)
    assert all(len(issue.detail) < 150 and issue.detail.isprintable() for issue in found)


@pytest.mark.parametrize("unit", [100, 1711900000000100])
def test_pairs_of_a_file_are_activities(unit: int, tmp_path: Path) -> None:
    events: list[Json] = [
        {"ph": "B", "name": "outer", "ts": unit + 0.5, **SPAN, "args": {"External id": 9}},
        op(1, ts=unit + 20, dur=5.5),
        {"ph": "B", "name": "inner", "ts": unit + 10, **SPAN},
        {"ph": "E", "ts": unit + 30.5, "pid": 77, "tid": 77},
        kernel(1, ts=unit + 60),
        {"ph": "E", "ts": unit + 40.5, "pid": "77", "tid": "77", "name": "outer"},
        {"ph": "b", "name": "async", "ts": unit, "pid": 7, "tid": 7, "id": 1},
        {"name": "no phase"},
        {"ph": "X", "name": "no category", "ts": unit, "dur": 1, "pid": 77, "tid": 77},
        END,
    ]
    graph = hg.load(written(tmp_path / "rank-0.json", kineto_text(events)))
    spans = {name: graph.select(name=name) for name in ("outer", "inner", "aten::mm")}
    acts = graph.activities
    [outer], [inner], [inside] = (list(spans[name]) for name in spans)
    assert int(acts.duration[outer]) == 40_000
    assert int(acts.duration[inner]) == 20_500
    assert (acts.parent[inner], acts.parent[inside]) == (outer, inner)
    assert graph.event(outer).name == "outer"
    counted = {issue.what: issue.count for issue in graph.issues}
    assert (counted["phase_unknown"], counted["phase_missing"], counted["category_missing"]) == (1, 1, 1)


def test_pairs_come_after_the_complete_events(tmp_path: Path) -> None:
    begin, end = {"ph": "B", "name": "a", "ts": 1, **SPAN}, {"ph": "E", "ts": 3, "pid": 77, "tid": 77}
    trace = loaded(tmp_path, kineto_text([begin, op(1), end, {"ph": "E", "ts": 4, "pid": 77, "tid": 77}, END]))
    assert names(trace) == ["aten::mm", "a"]
    assert trace.events.index.tolist() == [1, 0]
    assert issues(trace) == {"end_unpaired": 1}
