"""The names of `htagraph` are listed and light, and stay."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import htagraph as hg
from tests.reach import DATA, REPOSITORY, graph_of
from tests.strategies import load, op
from tests.trace.profiler_files.made import allocation

NAMES = """
ActivityKind Clock CriticalPath DEFAULT_NAMING DamagedTraceError DependencyGraph Diff EdgeKind GapKind GraphError
HtagraphError Matches Naming NotATraceError Outcome Provenance RankError Replay Scenario Selection SelectionError
Stragglers Summary TraceError Validation annotated_kernels annotation_breakdown arguments call_stack call_tree
check_arguments collectives compare compiled_regions critical_path cupti_counters diff execution_trace graph_launches
idle_breakdown idle_intervals kernel_breakdown kernel_distribution kernel_patterns kernel_types late_starts launch_stats
load memory memory_bandwidth module_breakdown operator_breakdown operator_kernels opportunities overlap phases
queue_length read_events replay roofline slack step_times stragglers summarize temporal_breakdown to_graphviz validate
what_if
""".split()  # noqa: SIM905 - as many names as on one page
"""Names that users' programs import."""


@pytest.mark.parametrize("name", NAMES)
def test_every_name_stays(name: str) -> None:
    assert name in dir(hg)
    getattr(hg, name)


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(AttributeError, match="idle_brekdown"):
        hg.idle_brekdown  # type: ignore[attr-defined]  # noqa: B018


def test_an_unknown_name_is_an_error_that_says_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean 'idle_breakdown'"):
        hg.idle_brekdown  # type: ignore[attr-defined]  # noqa: B018


def test_the_package_says_its_release_and_lists_what_users_need() -> None:
    assert hg.__version__ == version("htagraph")
    assert dir(hg) == sorted({*hg.__all__, "__version__"})  # type: ignore[attr-defined]
    assert [name for name in dir(hg) if name.startswith("_")] == ["__version__"]


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
