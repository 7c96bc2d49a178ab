"""What is no export is refused with what to do, and what lies beside traces is left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import DamagedTraceError, HtagraphError, NotATraceError, RankError
from tests.damage import healthy, kineto_text
from tests.trace.nsys.made import KERNELS, export, small


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
