"""Nanoseconds survive every form in which timestamps were ever written."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htagraph.core.errors import TraceError
from htagraph.trace.reading.times import EXACT_FLOAT_US, FractionStyle, numbers_to_ns, text_to_ns
from tests.damage import BASE_NS, Json, issues, kineto_text, loaded, op

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
    if write is unpadded:  # what tells this era: fractions that no writer of decimals would leave
        starts, durations = [*starts, first + 120], [*durations, 7]
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


@pytest.mark.parametrize(
    "text", ["", "abc", "1.2.3", "1e999999", "nan", "inf", "-Infinity", "9" * 30, "9" * 30 + ".5", "²", "[1]"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(TraceError, match="is not a time in µs"):
        text_to_ns([text], FractionStyle())


@pytest.mark.parametrize("value", [2**60, -(2**60), 2**70, 1e300, float("inf"), float("nan")])
def test_numbers_beyond_time_are_refused(value: float) -> None:
    with pytest.raises(TraceError, match="is not a time in µs"):
        numbers_to_ns([1, value])


@pytest.mark.parametrize("ts", ['"soon"', "[1]", "1e300", "99999999999999999999", '""'])
def test_a_file_with_no_time_for_an_event_is_refused_by_name(ts: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.json.*is not a time in µs"):
        loaded(tmp_path, kineto_text([op(1), op(2, ts="TS")]).replace('"TS"', ts))


def test_fractions_of_decimals_are_not_taken_for_unpadded() -> None:
    style = FractionStyle()
    text_to_ns(["12.5"] * 60 + ["12.05"], style)
    assert not style.unpadded


def test_durations_without_leading_zeros_show_the_era() -> None:
    style = FractionStyle()
    text_to_ns(["12.5"] * 60, style)
    assert style.unpadded


@pytest.mark.parametrize(
    "text",
    [
        "--5.1",
        "-",
        "-.",
        "5.--1",
        "",
        "9" * 5000,
        "9" * 5000 + ".5",
        "1" * 20 + ".5",
        "²",
        "5.²",
        "²³.5",
        "٣.5",
        "nan",
        "5.1.2",
    ],
)
def test_what_is_no_time_is_refused_in_a_short_sentence(text: str) -> None:
    with pytest.raises(TraceError, match="is not a time in µs") as error:
        text_to_ns([text], FractionStyle())
    assert len(str(error.value)) < 100


@pytest.mark.parametrize("number", [2**70, -(2**70), 10**4000, 1e300, float("inf")], ids=range(5))
def test_a_number_out_of_range_is_refused_in_a_short_sentence(number: float) -> None:
    with pytest.raises(TraceError, match="is not a time in µs") as error:
        numbers_to_ns([1, number])
    assert len(str(error.value)) < 100


@given(st.text(st.sampled_from("0123456789.-+eE²٣ _nai"), max_size=30))
def test_any_text_is_the_nearest_ns_or_refused(text: str) -> None:
    try:
        found, _ = text_to_ns([text], FractionStyle())
    except TraceError:
        return
    assert found[0] == round(Decimal(text) * 1000)
