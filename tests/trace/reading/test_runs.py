"""Several recordings of one job in one folder."""

from __future__ import annotations

from pathlib import Path

from htagraph.trace.reading.runs import runs_of


def folder(path: Path, *names: str) -> None:
    path.mkdir(parents=True)
    for name in names:
        (path / name).touch()


def test_folders_of_traces_in_a_folder_without_are_runs(tmp_path: Path) -> None:
    for name in ("b", "a"):
        folder(tmp_path / "runs" / name, "rank-0.json.gz")
    folder(tmp_path / "runs" / "logs", "out.txt")
    assert runs_of(str(tmp_path / "runs")) == [str(tmp_path / "runs" / "a"), str(tmp_path / "runs" / "b")]


def test_everything_else_is_one_recording(tmp_path: Path) -> None:
    folder(tmp_path / "job", "rank-0.json")
    folder(tmp_path / "job" / "old", "rank-0.json")
    folder(tmp_path / "empty")
    names = [tmp_path / "job", tmp_path / "job" / "rank-0.json", tmp_path / "empty", tmp_path / "no", tmp_path / "*"]
    for name in map(str, names):
        assert runs_of(name) == [name]
