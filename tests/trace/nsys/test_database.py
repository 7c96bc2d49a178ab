"""What is no export is refused with what to do, and what lies beside traces is left out."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import DamagedTraceError, HtagraphError, NotATraceError, RankError
from htagraph.trace.nsys.database import opened
from tests.damage import healthy, kineto_text
from tests.trace.nsys.made import KERNELS, export, issues_of, names_of, small, traces_of


def test_what_is_no_export_is_refused_with_what_to_do(tmp_path: Path) -> None:
    def refused(path: Path, kind: type[HtagraphError], words: str) -> None:
        with pytest.raises(kind, match=words):
            hg.load(path)

    report = tmp_path / "report.nsys-rep"
    report.write_bytes(b"\0" * 100)
    refused(report, NotATraceError, "nsys export --type sqlite")
    refused(tmp_path, NotATraceError, "nsys export --type sqlite")  # nothing but a report in the folder
    path = small(tmp_path / "a.sqlite")
    whole = path.read_bytes()
    for size in (0, 50, len(whole) // 2):
        path.write_bytes(whole[:size])
        refused(path, DamagedTraceError, "empty|cut short")
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    refused(path, DamagedTraceError, "damaged")
    path.write_text("{}")
    refused(path, NotATraceError, "not an SQLite database")
    refused(export(path, {"users": [{"id": 1, "name": "a"}]}), NotATraceError, "no export of Nsight Systems")
    refused(export(path, {KERNELS: [], "StringTable": []}), NotATraceError, "nvprof")
    version = {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION_MAJOR", "value": "4"}]}
    refused(export(path, {KERNELS: [], **version}), NotATraceError, "with schema 4; schemas up to 3 are known")
    packed = tmp_path / "b.sqlite.gz"
    packed.write_bytes(gzip.compress(whole)[:-20])
    refused(packed, DamagedTraceError, "packed file is cut short")


def test_beside_traces_another_database_is_left_out_and_an_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank-0.json").write_text(kineto_text(healthy(2)))
    export(tmp_path / "other.sqlite", {"users": [{"id": 1, "name": "a"}]})
    graph = hg.load(tmp_path)
    assert [issue.what for issue in graph.issues if issue.file.endswith("sqlite")] == ["other_file"]
    small(tmp_path / "report.sqlite")
    with pytest.raises(RankError, match=r"several formats \(kineto: rank-0.json; nsys: report.sqlite\)"):
        hg.load(tmp_path)


_PAGE_BYTES = 4096


def _leading_to(child: int, times: int) -> bytes:
    """Return an inner page of a table, by SQLite's file format, all of whose pointers lead to one page."""
    cells = [child.to_bytes(4, "big") + bytes([key]) for key in range(1, times + 1)]
    offsets = [_PAGE_BYTES - 5 * (number + 1) for number in range(times)]
    content = min(offsets)
    head = bytes([5, 0, 0]) + times.to_bytes(2, "big") + content.to_bytes(2, "big") + b"\0" + child.to_bytes(4, "big")
    pointers = b"".join(offset.to_bytes(2, "big") for offset in offsets)
    page = (head + pointers).ljust(content, b"\0") + b"".join(reversed(cells))
    assert len(page) == _PAGE_BYTES
    return page


def _with_endless_table(path: Path, table: str, levels: int) -> None:
    """Let the root of a table lead to its first page over and over: 100 times as many rows with each level."""
    with sqlite3.connect(path) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()
        assert database.execute("PRAGMA page_size").fetchone() == (_PAGE_BYTES,)
    database.close()
    raw = bytearray(path.read_bytes())
    at = (root - 1) * _PAGE_BYTES
    child = len(raw) // _PAGE_BYTES + 1
    raw += raw[at : at + _PAGE_BYTES]  # the rows, one page lower
    for _ in range(levels):
        raw += _leading_to(child, 100)
        child += 1
    raw[at : at + _PAGE_BYTES] = _leading_to(child, 100)
    raw[28:32] = (len(raw) // _PAGE_BYTES).to_bytes(4, "big")
    path.write_bytes(raw)


def test_pages_that_lead_to_each_other_cost_no_more_than_the_file_is_large(tmp_path: Path) -> None:
    path = small(tmp_path / "a.sqlite")
    _with_endless_table(path, KERNELS, levels=5)  # 10^12 rows
    with pytest.raises(DamagedTraceError, match="more rows than so few bytes"):
        hg.load(path)


def test_a_number_beyond_all_times_costs_its_row_and_no_other(tmp_path: Path) -> None:
    path = small(tmp_path / "a.sqlite")
    kernels = len(names_of(traces_of(path)[0], "kernel"))
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE {KERNELS} SET start = 1e300 WHERE rowid = 1")
        database.execute(f"UPDATE {KERNELS} SET end = end + 0.0 WHERE rowid = 2")
    database.close()
    traces = traces_of(path)
    assert len(names_of(traces[0], "kernel")) == kernels - 1
    assert "time_missing" in issues_of(traces)


def test_a_table_that_runs_code_of_its_author_is_none(tmp_path: Path) -> None:
    path = small(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA writable_schema = ON")
        words = "CREATE/**/VIRTUAL TABLE CUDNN_EVENTS USING series_of_somebody()"
        database.execute("INSERT INTO sqlite_master VALUES ('table', 'CUDNN_EVENTS', 'CUDNN_EVENTS', 0, ?)", [words])
    database.close()
    with opened(path) as export_of_somebody:
        assert KERNELS in export_of_somebody.columns
        assert "CUDNN_EVENTS" not in export_of_somebody.columns
