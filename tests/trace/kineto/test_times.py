"""Nanoseconds survive every form in which timestamps were ever written."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import IssueLog, TraceError
from htagraph.trace.columns import Trace
from htagraph.trace.kineto.read import columns
from htagraph.trace.kineto.times import (
    EXACT_FLOAT_US,
    NO_TIME,
    FractionStyle,
    PhaseEvent,
    numbers_to_ns,
    paired,
    report_phases,
    text_to_ns,
)
from tests.damage import BASE_NS, END, Json, healthy, issues, kernel, kineto_text, loaded, names, op, written
from tests.trace.kineto.same_columns import assert_same_columns
from tests.trace.kineto.test_decode import read_in_pieces

EPOCH_NS = 1_711_000_000_000_000_000
QUARTER_NS = 7_889_238 * 10**9

Write = Callable[[int], str]


def padded(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}"


def unpadded(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000}"


def exponent(ns: int) -> str:
    return f"{Decimal(ns) / 1000:e}"


def shortest(ns: int) -> str:
    return repr(ns / 1000)


def mixed(ns: int) -> str:
    """Write whole µs as integers and others as decimals, as a script that rewrites a trace may do."""
    return str(ns // 1000) if ns % 1000 == 0 else padded(ns)


ERAS: dict[str, tuple[Write, bool, int]] = {
    # how a time is written, whether it is absolute, its resolution in ns
    "2020 whole µs": (lambda ns: str(ns // 1000), True, 1000),
    "2024-03 unpadded": (unpadded, True, 1),
    "2024-04 padded": (padded, True, 1),
    "2024-05 relative": (padded, False, 1),
    "relative whole µs": (lambda ns: str(ns // 1000), False, 1000),
    "relative shortest floats": (shortest, False, 1),
    "text": (lambda ns: f'"{padded(ns)}"', True, 1),
    "text, relative": (lambda ns: f'"{padded(ns)}"', False, 1),
    "text of whole µs": (lambda ns: f'"{ns // 1000}"', True, 1000),
    "exponents": (exponent, True, 1),
    "integers and decimals": (mixed, True, 1),
    "integers and decimals, relative": (mixed, False, 1),
}


def trace_text(write: Write, starts: list[int], durations: list[int], *, absolute: bool) -> str:
    marks = [op(i, ts=f"TS{i}", dur=f"DUR{i}") for i in range(len(starts))]
    keys: Json = {} if not absolute else {"baseTimeNanoseconds": 0}
    text = kineto_text(marks, **keys)
    for i, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        text = text.replace(f'"TS{i}"', write(start)).replace(f'"DUR{i}"', write(duration))
    return text


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("era", ERAS)
def test_every_era_is_exact_to_the_nanosecond(era: str, data: st.DataObject, tmp_path: Path) -> None:
    write, absolute, resolution = ERAS[era]
    first = EPOCH_NS if absolute else data.draw(st.integers(0, QUARTER_NS))
    ns = st.integers(0, 10**9).map(lambda t: t // resolution * resolution)
    starts = [first // resolution * resolution + t for t in data.draw(st.lists(ns, min_size=1, max_size=60))]
    durations = [data.draw(ns) for _ in starts]
    if write is unpadded:  # what tells this era, as a trace has thousands of them: fractions over all ns
        spread = range(7, 1000, 3)
        starts, durations = [*starts, *(first + ns for ns in spread[::-1])], [*durations, *spread]
    trace = loaded(tmp_path, trace_text(write, starts, durations, absolute=absolute))
    assert (trace.events.start - (0 if absolute else BASE_NS)).tolist() == starts
    assert trace.events.duration.tolist() == durations
    assert set(issues(trace)) == ({"unpadded_fractions"} if write is unpadded else set())


def test_an_outlier_with_a_fraction_does_not_cost_others_their_nanoseconds() -> None:
    assert numbers_to_ns([1_711_900_000_000_013, 0.5]).tolist() == [1_711_900_000_000_013_000, 500]


@given(st.integers(0, int(EXACT_FLOAT_US) * 1000 - 1))
def test_floats_below_the_limit_are_exact(ns: int) -> None:
    assert numbers_to_ns([ns / 1000, -ns / 1000]).tolist() == [ns, -ns]


@pytest.mark.parametrize(
    "ns", [4_399_000_000_000_123, 4_503_000_000_000_999, 8_700_000_000_000_001, 8_796_093_022_207_999]
)
def test_the_largest_exact_floats_are_exact(ns: int) -> None:
    around = np.arange(ns - 500, ns + 500 if ns < 8_796_093_022_200_000 else ns)
    assert numbers_to_ns((around / 1000).tolist()).tolist() == around.tolist()


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1))
def test_text_is_exact(times: list[int]) -> None:
    texts = [f"{'-' if ns < 0 else ''}{padded(abs(ns))}" for ns in times]
    assert text_to_ns(texts, FractionStyle())[0].tolist() == times


CORRUPT = (
    "18446744073709551.615", "18446744073709551615", "NaN", "nan", '"NaN"', '"soon"', "[1]", "{}", "true", "1e300",
    "9.3e15", "99999999999999999999", '""', "-99999999999999999999.5", "9200000000000000", "3.2e15",
)  # fmt: skip
LOST = {"time_corrupt", "time_outlier", "event_unreadable"}


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["ts", "dur", "both"]), st.sampled_from(CORRUPT)), max_size=4
    ),
    st.booleans(), st.booleans(), st.sampled_from([64, 1 << 22]),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
def test_a_trace_with_corrupt_events_is_the_trace_without_them(
    tmp_path: Path,
    bad: list[tuple[int, str, str]],
    packed: bool,  # noqa: FBT001
    whole: bool,  # noqa: FBT001
    block: int,
) -> None:
    events: list[Json] = [each if whole else {**each, "ts": each["ts"] + 0.25} for each in healthy(4)]
    events = [{**each, **{key: int(each[key]) for key in ("ts", "dur") if key in each and whole}} for each in events]
    sound = read_bytes(tmp_path / "sound.json", kineto_text(events), packed=packed, block=block)
    for place, keys, value in bad:
        made = op(7, name="wrong", **{key: "BAD" for key in ("ts", "dur") if keys in (key, "both")})
        events.insert(place, json.dumps(made).replace('"BAD"', value))  # type: ignore[arg-type]
    found = read_bytes(tmp_path / "trace.json", kineto_text(events), packed=packed, block=block)
    places = [i for i, event in enumerate(events) if isinstance(event, dict)]
    kept = replace(
        found, counts=sound.counts, issues=sound.issues,
        events=replace(found.events, index=sound.events.index),
        instants=replace(found.instants, index=sound.instants.index),
    )  # fmt: skip
    assert [places[i] for i in sound.events.index] == found.events.index.tolist()
    assert_same_columns(kept, sound)
    assert sum(issue.count for issue in found.issues if issue.what in LOST) == len(bad)
    assert "wrong" not in [found.names[i] for i in found.events.name]


def read_bytes(path: Path, text: str, *, packed: bool, block: int) -> Trace:
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return read_in_pieces(path, 64, block)


@pytest.mark.parametrize("value", [*CORRUPT, "-5", "-0.001"])
def test_a_corrupt_duration_is_said_alike_by_both_readers(value: str, tmp_path: Path) -> None:
    text = kineto_text([op(1), op(2, dur="BAD"), op(3, dur="BAD"), END]).replace('"BAD"', value)
    quick, slow = (columns(written(tmp_path / "a.json", text), lambda *_: 0, compiled=each) for each in (True, False))
    assert_same_columns(quick, slow)
    assert sum(count for what, count in issues(quick).items() if what in LOST) == 2 == len(quick.events) + 1


def test_a_file_without_any_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.json: no event has a time that can be read.*'soon'"):
        loaded(tmp_path, kineto_text([op(1, ts="soon"), op(2, ts="soon"), END]))


def float64(ns: int) -> str:
    """Write µs as a script does that reads a trace as JSON and writes it again."""
    return repr(float(Decimal(ns) / 1000))


def rounded_to(digits: int) -> Write:
    return lambda ns: repr(round(float(Decimal(ns) / 1000), digits))


def fixed(digits: int) -> Write:
    return lambda ns: f"{Decimal(ns) / 1000:.{digits}f}"


REWRITERS: dict[str, tuple[Write, int]] = {
    # how a program writes absolute times of which it knows multiples of so many ns
    "float64": (float64, 1), "float64 of halves": (float64, 500), "one digit": (rounded_to(1), 1),
    "two digits": (rounded_to(2), 1), "fixed, three": (fixed(3), 1), "fixed, one": (fixed(1), 1),
    "fixed, three, quarters": (fixed(3), 250), "shortest": (lambda ns: f"{(Decimal(ns) / 1000).normalize():f}", 1),
    "shortest, eighths": (lambda ns: f"{(Decimal(ns) / 1000).normalize():f}", 125), "exponents": (exponent, 1),
    "integers and decimals": (mixed, 1), "whole": (lambda ns: str(ns // 1000), 1),
}  # fmt: skip
CLOCK_GRAINS_NS = (1, 5, 25, 32, 100)
ODD_TIMES = ("1e300", "12.05", "7.120", "1735200000000014.120", "1735200000000014.012", "1.5e0", "9.3e15", '"soon"')
"""Single times that another writer, or damage, could have left."""


@given(
    st.sampled_from([*REWRITERS]), st.integers(60, 300), st.randoms(use_true_random=False), st.sampled_from(ODD_TIMES)
)
def test_fractions_that_another_writer_explains_are_read_as_written(
    name: str, count: int, random: Any, odd: str
) -> None:
    write, grain = REWRITERS[name]
    times = [EPOCH_NS + random.randrange(0, 10**9, grain) for _ in range(count)]
    for texts in ([*map(write, times)], [*map(write, times), odd]):
        style = FractionStyle()
        read, _ = text_to_ns(texts, style)
        assert not style.unpadded
        assert read[:count].tolist() == [round(Decimal(text) * 1000) for text in texts[:count]]


@given(
    st.sampled_from(CLOCK_GRAINS_NS),
    st.integers(60, 300),
    st.randoms(use_true_random=False),
    st.sampled_from(ODD_TIMES),
)
def test_fractions_without_leading_zeros_are_told_on_every_clock(grain: int, count: int, random: Any, odd: str) -> None:
    times = [EPOCH_NS + random.randrange(0, 10**9, grain) for _ in range(count)]
    for texts in ([*map(unpadded, times)], [*map(unpadded, times), odd]):
        style = FractionStyle()
        _, read = text_to_ns(texts, style)
        assert style.unpadded == (style.short > 0)  # grains of 100 ns and more read alike both ways
        assert read[:count].tolist() == times


def test_a_trace_rewritten_as_floats_keeps_its_durations(tmp_path: Path) -> None:
    events = [kernel(i, ts=EPOCH_NS / 1000 + 14.25 * i, dur=1 + i % 7 / 4) for i in range(300)]
    trace = loaded(tmp_path, json.dumps({"traceEvents": [*events, END]}))
    assert trace.events.duration.sum() == sum(1000 + i % 7 * 250 for i in range(300))
    assert issues(trace)["rounded_times"] == 1


NO_TEXTS = (
    "", "abc", "1.2.3", "1e999999", "nan", "inf", "-Infinity", "9" * 30, "9" * 30 + ".5", "²", "[1]", "--5.1", "-",
    "-.", "5.--1", "9" * 5000, "9" * 5000 + ".5", "1" * 20 + ".5", "5.²", "²³.5", "٣.5", "5.1.2",
)  # fmt: skip
NO_NUMBERS = (2**60, -(2**60), 2**70, -(2**70), 1e300, float("inf"), float("nan"))


def test_what_is_no_time_has_none() -> None:
    assert text_to_ns(NO_TEXTS, FractionStyle())[0].tolist() == [NO_TIME] * len(NO_TEXTS)
    assert numbers_to_ns([1, *NO_NUMBERS]).tolist() == [1000, *[NO_TIME] * len(NO_NUMBERS)]


@given(st.text(st.sampled_from("0123456789.-+eE²٣ _nai"), max_size=30))
def test_any_text_is_the_nearest_ns_or_refused(text: str) -> None:
    found, _ = text_to_ns([text], FractionStyle())
    assert found[0] == NO_TIME or found[0] == round(Decimal(text) * 1000)


SPAN = {"cat": "cpu_op", "pid": 77, "tid": 77}


def event(position: int, phase: str, name: str = "", time: str = "", tid: int = 7) -> PhaseEvent:
    return PhaseEvent(position, phase, name, "cpu_op" if phase == "B" else None, 7, tid, time or str(position), {})


def pairs_of(*events: PhaseEvent) -> tuple[list[tuple[object, str, str]], dict[str, int]]:
    log = IssueLog("a.json")
    found = [(pair.begin.name, pair.begin.time, pair.duration) for pair in paired(events, log)]
    return found, {issue.what: issue.count for issue in log.issues()}


@pytest.mark.parametrize(
    ("events", "pairs", "counted"),
    [
        (
            (event(0, "B", "a"), event(1, "B", "b"), event(2, "E"), event(5, "E")),
            [("a", "0", "5"), ("b", "1", "1")],
            {},
        ),
        (
            (event(0, "B", "a"), event(1, "B", "a"), event(2, "B", "b"), event(3, "E", "a"), event(5, "E", "c")),
            [("a", "1", "2")],
            {"begin_unpaired": 2, "end_unpaired": 1},
        ),
        (
            (event(0, "B", "a"), event(1, "B", "b", tid=8), event(2, "E"), event(3, "E", tid=8)),
            [("a", "0", "2"), ("b", "1", "2")],
            {},
        ),
        (
            (
                event(0, "E", "", "9.5"), event(1, "B", "a", "1711900000000012.005"), event(2, "B", "b", "3.25"),
                event(3, "E", "", "1711900000000012.006"),
            ),
            [("a", "1711900000000012.005", "0.001"), ("b", "3.25", "6.25")],
            {},
        ),
        ((event(0, "B", "a", "-9e15"), event(1, "E", "", "9e15")), [], {"pair_untimed": 2}),
    ],
    ids=["the latest begin", "the latest of a name", "threads apart", "times decide, not the file", "too long"],
)  # fmt: skip
def test_an_end_closes_a_begin(events: tuple[PhaseEvent, ...], pairs: Any, counted: dict[str, int]) -> None:
    assert pairs_of(*events) == (pairs, counted)


@pytest.mark.parametrize("time", ["x", "nan", "inf", "--1", "", "²", "٣", "1e300", "-9300000000000000"])
def test_what_has_no_time_is_counted(time: str) -> None:
    odd = event(0, "B", "a")._replace(time=time)
    assert pairs_of(odd, event(1, "E")) == ([], {"end_unpaired": 1, "pair_untimed": 1})


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
