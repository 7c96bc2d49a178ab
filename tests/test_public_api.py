"""The names of `htagraph`: the new ones are listed and light, the old ones keep working and name the new one."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from tests.reach import DATA, REPOSITORY, graph_of
from tests.strategies import load, op
from tests.trace.profiler_files.made import allocation

_RENAMED: dict[str, Any] = vars(hg)["_RENAMED"]

RELEASED = """
ActivityKind Clock CriticalPath DEFAULT_NAMING DamagedTraceError DependencyGraph Diff EdgeKind GapKind GraphError
HtagraphError Matches MemoryAnalysis MemorySnapshot Naming NotATraceError Outcome Provenance RankError Replay Scenario
Selection SelectionError Stragglers Summary TraceError Validation annotated_kernels annotation_breakdown arguments
call_stack call_tree check_arguments collectives compare compiled_regions critical_path cupti_counters diff
graph_launches idle_breakdown idle_intervals kernel_breakdown kernel_distribution kernel_patterns kernel_types
late_starts launch_stats link_execution_trace load memory_at_peak memory_bandwidth memory_bandwidth_summary memory_peaks
memory_timeline module_breakdown operator_breakdown operator_kernels opportunities overlap phases queue_length
queue_summary rank_idle read_events read_execution_trace read_memory_snapshot read_memory_timeline replay roofline slack
step_times stragglers summarize temporal_breakdown to_graphviz validate what_if
""".split()  # noqa: SIM905 - as many names as on one page
"""Every name that release 0.1.0 exported."""


def old(name: str) -> Any:
    """Return what an old name gives, having asserted that it warns and names what to write instead."""
    with pytest.warns(DeprecationWarning, match=rf"htagraph\.{name} is now htagraph\.") as warned:
        value = getattr(hg, name)
    assert warned[0].filename == __file__
    return value


@pytest.mark.parametrize("name", RELEASED)
def test_every_released_name_is_there(name: str) -> None:
    if name in _RENAMED:
        assert name not in dir(hg)
        assert callable(old(name))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert name in dir(hg)
            getattr(hg, name)


@pytest.mark.parametrize("name", _RENAMED)
def test_a_renamed_name_was_released_and_its_new_one_exists(name: str) -> None:
    assert name in RELEASED
    value: Any = hg
    for part in _RENAMED[name].use.partition("(")[0].removeprefix("htagraph.").split("."):
        value = getattr(value, part)
    assert callable(value)


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("MemorySnapshot", lambda: hg.memory.Snapshot), ("link_execution_trace", lambda: hg.execution_trace.link),
        ("read_execution_trace", lambda: hg.execution_trace.read),
        ("memory_at_peak", lambda: hg.memory.at_peak), ("memory_peaks", lambda: hg.memory.peaks),
        ("memory_timeline", lambda: hg.memory.timeline), ("read_memory_snapshot", lambda: hg.memory.read_snapshot),
        ("read_memory_timeline", lambda: hg.memory.read_timeline),
    ],
)  # fmt: skip
def test_a_name_that_moved_is_the_same_object(name: str, new: Any) -> None:
    assert old(name) is new()


def test_htas_class_of_memory_timelines_is_in_htas_place() -> None:
    from htagraph.memory_analysis import MemoryAnalysis

    assert old("MemoryAnalysis") is MemoryAnalysis


def test_rank_idle_is_the_idle_breakdown_by_rank() -> None:
    graph = graph_of(DATA / "demo")
    table = old("rank_idle")(graph, kernel_pause_us=5)
    assert list(table.columns) == ["rank", "cause", "idle_us", "count", "share_percent"]
    pd.testing.assert_frame_equal(table, hg.idle_breakdown(graph, by="rank", kernel_pause_us=5))


def test_queue_summary_is_the_queue_length_by_stream() -> None:
    graph = graph_of(DATA / "demo")
    table = old("queue_summary")(graph, full=1)
    assert list(table.columns) == [
        "rank", "device", "stream", "count", "mean", "std", "min", "p25", "median", "p75", "max", "mean_over_time",
        "full_us", "full_percent",
    ]  # fmt: skip
    pd.testing.assert_frame_equal(table, hg.queue_length(graph, by="stream", full=1))


def test_memory_bandwidth_summary_keeps_its_columns() -> None:
    graph = graph_of(DATA / "demo")
    table = old("memory_bandwidth_summary")(graph)
    assert list(table.columns) == [
        "rank", "copy", "count", "mean", "std", "min", "p25", "median", "p75", "max", "busy_us", "gb",
        "mean_over_time_gb_s",
    ]  # fmt: skip
    new = hg.memory_bandwidth(graph, by="copy")
    assert len(new) > 0
    assert table["median"].tolist() == new["median_gb_s"].tolist()
    assert table["gb"].tolist() == new["copied_gb"].tolist()


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(AttributeError, match="idle_brekdown"):
        hg.idle_brekdown  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", ["memory", "execution_trace", "plot"])
def test_a_namespace_can_be_imported_and_lists_what_it_has(name: str) -> None:
    namespace = getattr(hg, name)
    assert name in dir(hg)
    assert [each for each in namespace.__all__ if not hasattr(namespace, each)] == []
    code = f"from htagraph import {name}; print(*{name}.__all__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.split() == namespace.__all__


def test_memory_is_reached_through_its_namespace() -> None:
    graph = load([op("a", 0, 9), allocation(1, 8), allocation(2, -8)])
    assert len(hg.memory.timeline(graph)) == 2
    assert hg.memory.peaks(graph)["peak_bytes"].tolist() == hg.memory.at_peak(graph)["bytes"].tolist()


def test_a_path_is_written_by_the_function_as_by_the_method(tmp_path: Path) -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    by_function, by_method = tmp_path / "function.json", tmp_path / "method.json"
    hg.to_perfetto(path, by_function)
    path.to_perfetto(by_method)
    assert by_function.read_bytes() == by_method.read_bytes()
