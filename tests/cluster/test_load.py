"""What is read by workers, and what is said of ranks that are not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.cluster.on_worker import ReadOptions, digest_of, release
from tests.reach import DATA


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (DATA / "demo").glob("rank-*.json.gz"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_files_that_cannot_be_read_are_missing_and_the_rest_is_answered(
    folder: Path, workers: ThreadPoolExecutor
) -> None:
    (folder / "rank-1.json.gz").write_bytes(b"\x1f\x8b no gzip")
    (folder / "rank-3.json.gz").unlink()
    job = hg.load(folder, engine=workers)
    assert job.ranks == (0, 2)
    assert [(each.rank, Path(each.file).name) for each in job.missing] == [(1, "rank-1.json.gz"), (3, "")]
    assert {issue.rank for issue in job.issues if issue.what == "rank_missing"} == {1, 3}


def test_only_the_ranks_asked_for_are_read(folder: Path, workers: ThreadPoolExecutor) -> None:
    job = hg.load(folder, ranks=[0, 9], engine=workers)
    assert job.ranks == (0,)
    assert [(each.rank, each.why) for each in job.missing] == [(9, "no file of it was given")]


def test_only_the_steps_asked_for_are_read(folder: Path, workers: ThreadPoolExecutor) -> None:
    job = hg.load(folder, steps=[6], engine=workers)
    assert set(hg.step_times(job)["step"]) == {6}
    assert set(hg.step_times(job.load([0]))["step"]) == {6}


def test_nothing_to_read_is_an_error(folder: Path, workers: ThreadPoolExecutor) -> None:
    for path in folder.glob("*"):
        path.write_bytes(b"\x1f\x8b no gzip")
    with pytest.raises(hg.TraceError, match="no file could be read: rank 0: "):
        hg.load(folder, engine=workers)


def test_a_path_that_is_not_there_is_named_without_a_rank(tmp_path: Path, workers: ThreadPoolExecutor) -> None:
    with pytest.raises(hg.TraceError, match="no such file") as told:
        hg.load(tmp_path / "nothere", engine=workers)
    assert "rank" not in str(told.value).replace(str(tmp_path), "")


def test_workers_with_another_release_are_refused(
    folder: Path, workers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htagraph.cluster.load.release", lambda: "0.0.1")
    with pytest.raises(hg.TraceError, match="install the same release"):
        hg.load(folder, engine=workers)


def test_what_is_no_digest_is_a_missing_rank(
    folder: Path, workers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hostile(file: Any, reading: ReadOptions) -> Any:
        del reading
        return b"no digest" if file.rank == 2 else digest_of(file, ReadOptions(release=release()))

    monkeypatch.setattr("htagraph.cluster.load.digest_of", hostile)
    job = hg.load(folder, engine=workers)
    assert [each.rank for each in job.missing] == [2]
