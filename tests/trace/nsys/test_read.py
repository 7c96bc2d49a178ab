"""Exports of Nsight Systems: sums, steps and device work, damage, and parts of a job."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import TraceError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.trace.nsys.rows import SOURCES
from tests.reach import SHARED
from tests.trace.nsys.made import (
    BASE_NS,
    CALLS,
    GRAPHS,
    KERNELS,
    RANGES,
    SESSION,
    SYNCS,
    Strings,
    export,
    issues_of,
    kernel,
    names_of,
    small,
    sums,
    traces_of,
)

REAL = sorted((SHARED.parent / "nsys").glob("*.sqlite.gz"))
_SUMS = {
    KERNELS: ("kernel",), "CUPTI_ACTIVITY_KIND_MEMCPY": ("gpu_memcpy",), "CUPTI_ACTIVITY_KIND_MEMSET": ("gpu_memset",),
    GRAPHS: ("cuda_graph",), CALLS: ("cuda_runtime", "cuda_driver"), SYNCS: ("cuda_sync",),
    RANGES: ("cpu_op", "user_annotation"),
}  # fmt: skip


@pytest.mark.parametrize("packed", REAL, ids=lambda path: path.name)
def test_sums_equal_those_of_sql_and_a_replay_gives_every_recorded_time(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / packed.name.removesuffix(".gz")
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    database, traces = sqlite3.connect(path), traces_of(path)
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    for table, categories in _SUMS.items():
        query = f"SELECT coalesce(sum(end - start), 0), count(*) FROM {table}"
        assert sums(traces, *categories) == (database.execute(query).fetchone() if table in tables else (0, 0)), table
    total = sum(
        database.execute(f"SELECT count(*) FROM {each.table}").fetchone()[0] for each in SOURCES if each.table in tables
    )
    reported = issues_of(traces).get("other_process", 0)
    assert sum(sum(trace.counts.values()) for trace in traces) + reported == total
    database.close()
    graph = hg.load(packed)  # packed, it is the same
    graph.check()
    outcome = hg.what_if(graph).run()
    assert np.array_equal(outcome.time, graph.time)
    assert graph.ranks == tuple(range(len(traces)))


def test_a_small_export_becomes_steps_operators_launches_and_device_work(tmp_path: Path) -> None:
    graph = hg.load(small(tmp_path / "report.sqlite"))
    assert graph.steps == (5, 6)
    acts = graph.activities
    launched = acts.cause[acts.kind == ActivityKind.COMPUTATION]
    assert {graph.names[name] for name in acts.name[launched].tolist()} == {"cudaLaunchKernel"}
    assert {graph.names[name] for name in acts.name[acts.parent[launched]].tolist()} == {"aten::mm"}
    assert acts.start.min() == BASE_NS
    assert (graph.edges.kind == EdgeKind.HOST_SYNC).sum() == 2
    row = int(np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)[0])
    event = graph.event(row).args.model_dump(by_alias=True, exclude_none=True)
    said = {key: event[key] for key in ("grid", "block", "registers per thread", "shared memory", "stream")}
    assert said == {
        "grid": [8, 2, 1],
        "block": [128, 1, 1],
        "registers per thread": 40,
        "shared memory": 48,
        "stream": 7,
    }
    assert hg.arguments(graph, ["grid", "Input Dims"], [row]).iloc[0].tolist() == [[8, 2, 1], None]
    operator = int(acts.parent[launched][0])
    assert hg.arguments(graph, ["Input Dims"], [operator])["Input Dims"].iloc[0] == [[2, 3], [3, 4]]
    copies = graph.select(category="gpu_memcpy").activities
    assert graph.names[acts.name[copies[0]]] == "Memcpy HtoD (Pinned -> Device)"
    assert acts.arg("bandwidth_gb_s")[copies[0]] == 10.0
    assert hg.roofline(graph, peak_tflop_s=1.0, peak_gb_s=1.0)["flop"].sum() == 2 * 2 * 2 * 3 * 4


def test_an_old_export_of_few_columns_is_read(tmp_path: Path) -> None:
    kernels = [{"start": 0, "end": 10, "shortName": 1}, {"start": 20, "end": 25, "shortName": 2}]
    tables: dict[str, Any] = {KERNELS: kernels, "StringIds": [{"id": 1, "value": "gemm"}]}
    (trace,) = traces_of(export(tmp_path / "a.sqlite", tables))
    assert names_of(trace, "kernel") == ["gemm", "(no name)"]
    assert issues_of([trace]) == {"name_missing": 1, "no_base_time": 1}
    hg.load(tmp_path).check()


def test_rows_that_cannot_be_are_reported_and_dropped(tmp_path: Path) -> None:
    strings = Strings()
    good = [kernel(10 * at, 10 * at + 5, strings("gemm"), at) for at in range(5)]
    bad = [
        {**good[0], "end": None},
        {**good[0], "start": "soon"},
        {**good[0], "start": 99},
        {**good[0], "end": 2**62 + 1},
    ]
    odd = {"GPU_METRICS": [{"timestamp": 1, "value": 2}]}
    (trace,) = traces_of(export(tmp_path / "a.sqlite", {KERNELS: good + bad, **SESSION, **odd}, strings))
    assert sums([trace], "kernel") == (25, 5)
    assert issues_of([trace]) == {"time_missing": 2, "time_corrupt": 2, "table_not_read": 1}


def test_a_part_of_the_steps_or_of_the_time_is_that_of_the_whole(tmp_path: Path) -> None:
    path = small(tmp_path / "report.sqlite", pids=(10, 20))
    whole, some, window = hg.load(path), hg.load(path, steps=[6]), hg.load(path, time=(0, 950))
    assert some.steps == (6,)
    assert len(some.activities) < len(whole.activities)
    assert window.steps == (5,)
    assert window.ranks == (0, 1)


cells = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    damage=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), cells), max_size=6),
    dropped=st.sets(st.integers(0, 60), max_size=3),
)
def test_damaged_cells_and_missing_columns_lose_no_row_silently(
    damage: list[tuple[int, int, Any]], dropped: set[int], tmp_path: Path
) -> None:
    """Rows that are read, that name something and that are reported are all rows of the file."""
    path = small(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master") if name != "StringIds"]
        places = [(table, row[1]) for table in tables for row in database.execute(f"PRAGMA table_info({table})")]
        for row, column, value in damage:
            table, name = places[column % len(places)]
            database.execute(f'UPDATE {table} SET "{name}" = ? WHERE rowid = ?', (value, row % 8 + 1))
        for number in dropped:
            table, name = places[number % len(places)]
            left = [each for of, each in places if of == table]
            if len(left) > 1:
                database.execute(f'ALTER TABLE {table} DROP COLUMN "{name}"')
                places.remove((table, name))
        total = sum(
            database.execute(f"SELECT count(*) FROM {each.table}").fetchone()[0]
            for each in SOURCES
            if each.table in tables
        )
    database.close()
    try:
        traces = traces_of(path)
    except TraceError as error:
        assert str(path) in str(error)
        return
    counts = issues_of(traces)
    lost = sum(
        counts.get(what, 0)
        for what in ("time_missing", "time_corrupt", "time_outlier", "other_process", "table_not_read")
    )
    assert sum(sum(trace.counts.values()) for trace in traces) - counts.get("time_outlier", 0) + lost == total
    for trace in traces:
        assert (trace.events.duration >= 0).all()
    hg.load(path).check()
