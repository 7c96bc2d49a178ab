"""Several devices of one process are several: a table by device has the rows of a recording with this device alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from tests.reach import SHARED
from tests.strategies import COMMUNICATE, COMPUTE, COPY, Json, kernel, launch, load, op, step

DEVICES = (0, 1)

_NAMES = st.sampled_from([COMPUTE, COMMUNICATE, COPY])
_WORKS = st.lists(
    st.tuples(st.sampled_from(DEVICES), st.sampled_from([7, 20]), _NAMES, st.integers(0, 90), st.integers(1, 30)),
    min_size=2,
    max_size=12,
)


def job(works: list[tuple[int, int, str, int, int]]) -> list[Json]:
    """Return a process that launches work on two devices; each device has work."""
    events: list[Json] = [step(1, 0, 200), op("aten::mm", 1, 150)]
    first = [(device, 7, COMPUTE, 5, 3) for device in DEVICES]
    for number, (device, stream, name, start, duration) in enumerate([*first, *works], 1):
        work = kernel(name, 20 + start, duration, number, stream)
        events += [launch(number, 1, number), work | {"pid": device, "args": work["args"] | {"device": device}}]
    return events


def alone(events: list[Json], device: int) -> list[Json]:
    """Return a recording without the rows of other devices."""
    return [event for event in events if event["args"].get("device", device) == device]


def rows(table: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(table[list(columns)].itertuples(index=False, name=None))


def of_device(table: pd.DataFrame, device: int) -> pd.DataFrame:
    column = "device" if "device" in table else "executor"
    wanted = [device] if column == "device" else [f"device {device}", "device"]
    return table[table[column].isin(wanted)]


TABLES: dict[str, tuple[Callable[[DependencyGraph], pd.DataFrame], tuple[str, ...]]] = {
    "overlap": (hg.overlap, ("communication_us", "computation_us", "hidden_us")),
    "kernel_types": (hg.kernel_types, ("kinds", "total_us", "share_percent")),
    "temporal_breakdown": (  # windows, and so idle time, are those of the rank
        hg.temporal_breakdown,
        ("computation_us", "exposed_communication_us", "exposed_memory_us", "other_us"),
    ),
    "idle_intervals": (hg.idle_intervals, ("stream", "pause_us")),
    "queue_length": (lambda graph: hg.queue_length(graph, by="stream"), ("stream", "count", "mean_over_time", "max")),
}


@pytest.mark.parametrize("name", TABLES)
@given(works=_WORKS)
@settings(max_examples=25)
def test_a_table_by_device_is_that_of_the_device_alone(name: str, works: list[tuple[int, int, str, int, int]]) -> None:
    analysis, columns = TABLES[name]
    events = job(works)
    both = analysis(load(events))
    for device in DEVICES:
        single = analysis(load(alone(events, device)))
        assert rows(of_device(both, device), *columns) == rows(of_device(single, device), *columns)


@given(works=_WORKS)
@settings(max_examples=25)
def test_a_phase_is_as_busy_as_its_devices_are_on_average(works: list[tuple[int, int, str, int, int]]) -> None:
    events = job(works)
    (both,) = hg.phases(load(events))["busy_us"]
    each = [float(hg.phases(load(alone(events, device)))["busy_us"].iloc[0]) for device in DEVICES]
    assert both == pytest.approx(sum(each) / len(each))


@given(works=_WORKS)
@settings(max_examples=25)
def test_by_rank_work_of_any_device_counts_once(works: list[tuple[int, int, str, int, int]]) -> None:
    graph = load(job(works))
    (whole,) = hg.overlap(graph, by="rank").to_dict("records")
    assert whole["executor"] == "device"
    assert whole["computation_us"] <= hg.overlap(graph)["computation_us"].sum()
    busy = hg.kernel_types(graph, by="rank")["total_us"].sum()
    (rank,) = hg.temporal_breakdown(graph, by="rank").to_dict("records")
    assert busy == pytest.approx(rank["window_us"] - rank["idle_us"])


def test_devices_that_work_in_turns_are_busy_half_of_the_time() -> None:
    """The process of DataParallel whose two devices are busy 48 % each, which were said to be busy 97 %."""
    works = [(at // 100 % 2, 7, COMPUTE, at, 100) for at in range(0, 4000, 100)]
    events = job(works)
    assert hg.overlap(load(events))["computation_us"].tolist() == [2000, 2003]
    assert hg.kernel_types(load(events))["share_percent"].tolist() == [100, 100]
    assert hg.phases(load(events))["idle_percent"].tolist() == pytest.approx([100 * (1 - 2003 / 4020)], abs=1.0)


K15 = SHARED.parent / "cases" / "K15_two_devices_of_one_process"


@pytest.mark.skipif(not K15.is_dir(), reason="needs the shared cases")
def test_two_devices_busy_48_percent_each_are_said_to_be() -> None:
    graph = hg.load(K15)
    table = hg.temporal_breakdown(graph)
    assert table["executor"].tolist() == ["device 0", "device 1"]
    assert table["computation_percent"].round().tolist() == [48, 48]
    assert hg.phases(graph)["idle_percent"].round().tolist() == [52]
    assert hg.kernel_types(graph)["total_us"].tolist() == [4000, 4000]
