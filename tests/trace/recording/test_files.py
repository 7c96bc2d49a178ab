"""The files of a recording: where, whose, and whole or not at all."""

from __future__ import annotations

import gzip
import os
import time
import types
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import HtagraphError
from htagraph.trace.discover import SUFFIXES
from htagraph.trace.recording.files import folder_of, rank_of_process, whole, write_packed

VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.gz", "a.pickle"])
def test_a_folder_named_like_a_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match="give a folder"):
        folder_of(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert folder_of(tmp_path / "a" / "b").is_dir()
    assert folder_of(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"


def test_what_is_no_folder_to_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").touch()
    for out, words in (
        ("", "give a folder"),
        (tmp_path / "notes", "is a file; give"),
        (tmp_path / "notes" / "a", "give"),
        (tmp_path / ("a" * 300), "give a folder"),
        ("a\nb", "line break"),
        ("a\0b", "not shown"),
    ):
        with pytest.raises(HtagraphError, match=words):
            folder_of(out)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(HtagraphError, match="may not write there"):
        folder_of(tmp_path)


@pytest.mark.parametrize(
    ("environment", "rank"),
    [({}, 0), ({"RANK": "3", "SLURM_PROCID": "1"}, 3), ({"SLURM_PROCID": "5"}, 5), ({"RANK": "", "PMI_RANK": "2"}, 2),
     ({"RANK": "-1"}, 0), ({"RANK": "²"}, 0)],
)  # fmt: skip
def test_the_rank_is_that_of_the_environment(
    environment: dict[str, str], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert rank_of_process() == rank


def test_until_a_file_is_whole_the_folder_has_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "rank-0.json.gz"
    target.write_bytes(b"old")

    def export(path: str) -> None:
        Path(path).write_text("{}")
        traces = [file.name for file in tmp_path.iterdir() if file.name.endswith((*SUFFIXES, ".tmp"))]
        assert traces == ["rank-0.json.gz"]
        assert target.read_bytes() == b"old"

    write_packed(target, export)
    assert gzip.decompress(target.read_bytes()) == b"{}"
    assert list(tmp_path.iterdir()) == [target]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "rank-0.json.gz"
    target.write_bytes(b"old")

    def export(path: str) -> None:
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_packed(target, export)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_was_not_written_replaces_nothing(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with whole(target):
        pass
    assert target.read_bytes() == b"old"


def test_the_same_text_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_packed(tmp_path / name, lambda path: Path(path).write_text("text"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


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
