"""What a profiler calls with a finished recording."""

from __future__ import annotations

import gzip
import os
import time
import types
from pathlib import Path

import pytest

import htagraph as hg


class Recorded:
    """All that a handler needs of a profiler."""

    def __init__(self, text: str) -> None:
        self.text = text

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text(self.text)


def test_each_rank_has_its_file(tmp_path: Path) -> None:
    for rank in (0, 3):
        hg.trace_handler(tmp_path, rank=rank)(Recorded(f"{rank}"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rank-0.json.gz", "rank-3.json.gz"]
    assert gzip.decompress((tmp_path / "rank-3.json.gz").read_bytes()) == b"3"


def test_the_rank_is_asked_for_when_a_recording_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = hg.trace_handler(tmp_path)
    monkeypatch.setenv("RANK", "5")
    handler(Recorded(""))
    assert [file.name for file in tmp_path.iterdir()] == ["rank-5.json.gz"]


def test_a_second_recording_is_another_folder_and_not_part_of_the_job(tmp_path: Path) -> None:
    handler = hg.trace_handler(tmp_path, rank=1)
    for text in ("a", "b", "c"):
        handler(Recorded(text))
    found = {str(file.relative_to(tmp_path)): gzip.decompress(file.read_bytes()) for file in tmp_path.rglob("*.gz")}
    assert found == {
        "rank-1.json.gz": b"a", "recording-2/rank-1.json.gz": b"b", "recording-3/rank-1.json.gz": b"c",
    }  # fmt: skip


def test_a_recording_that_was_lost_is_said_and_not_written(tmp_path: Path) -> None:
    lost = Recorded("")
    lost.profiler = types.SimpleNamespace(kineto_results=types.SimpleNamespace(trace_start_ns=lambda: 0))  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="no file was written: another profiler"):
        hg.trace_handler(tmp_path, rank=1)(lost)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_of_one_rank_are_said(tmp_path: Path) -> None:
    first, second = hg.trace_handler(tmp_path, rank=1), hg.trace_handler(tmp_path, rank=1)
    first(Recorded("a"))
    later = time.time() + 1
    os.utime(tmp_path / "rank-1.json.gz", (later, later))
    with pytest.warns(UserWarning, match=r"rank-1\.json\.gz was just written by another process and is replaced"):
        second(Recorded("b"))
    assert gzip.decompress((tmp_path / "rank-1.json.gz").read_bytes()) == b"b"
