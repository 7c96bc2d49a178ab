"""What a server may read: nothing outside, wherever links and dots lead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from htagraph.cli.service.folders import Folders
from htagraph.core.errors import HtagraphError
from tests.reach import REPOSITORY

DEMO = REPOSITORY / "data" / "demo"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder with the traces of one job, beside a folder that may not be read."""
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    for name, folder in (("rank-0.json.gz", "runs/a"), ("rank-1.json.gz", "secret")):
        shutil.copy(DEMO / name, tmp_path / folder / name)
    return tmp_path / "runs"


def test_jobs_are_the_folders_that_hold_traces(runs: Path) -> None:
    table = Folders.of([str(runs)]).jobs()
    assert table[["path", "files"]].values.tolist() == [[str(runs.resolve() / "a"), 1]]


def test_a_job_is_found_by_its_whole_path_by_a_part_of_it_and_by_nothing_if_it_is_the_only_one(runs: Path) -> None:
    folders = Folders.of([str(runs)])
    found = {folders.resolved(text) for text in (str(runs / "a"), "a", "")}
    assert found == {((runs / "a").resolve(), ((runs / "a" / "rank-0.json.gz").resolve(),))}


@pytest.mark.parametrize(
    "text",
    ["../secret", "a/../../secret/rank-1.json.gz", "/etc", "/etc/passwd", "~", "s3://bucket/run", "a/*", "*", "a\0b",
     "x" * 5_000, "nothing"],
)  # fmt: skip
def test_everything_else_is_refused_in_the_same_words(runs: Path, text: str) -> None:
    with pytest.raises(HtagraphError, match="is not in the folders that may be read"):
        Folders.of([str(runs)]).resolved(text)


def test_links_that_lead_outside_are_refused_and_not_listed(runs: Path) -> None:
    secret = runs.parent / "secret"
    (runs / "b").mkdir()
    (runs / "b" / "rank-1.json.gz").symlink_to(secret / "rank-1.json.gz")
    (runs / "c").symlink_to(secret)
    folders = Folders.of([str(runs)])
    assert folders.jobs()["path"].tolist() == [str(runs.resolve() / "a")]
    with pytest.raises(HtagraphError, match=r"rank-1.json.gz: leads out of the folders"):
        folders.resolved("b")
    with pytest.raises(HtagraphError, match="is not in the folders"):
        folders.resolved("c")


def test_a_folder_of_the_command_line_may_be_a_link_itself(runs: Path) -> None:
    (runs.parent / "link").symlink_to(runs)
    assert Folders.of([str(runs.parent / "link")]).resolved("a")[0] == (runs / "a").resolve()


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match="no such file or folder"):
        Folders.of([str(tmp_path / "nothing")])


def test_several_jobs_need_a_path(runs: Path) -> None:
    shutil.copytree(runs / "a", runs / "b")
    with pytest.raises(HtagraphError, match="there are 2 jobs"):
        Folders.of([str(runs)]).resolved("")


def test_paths_in_a_text_begin_at_their_folder() -> None:
    folders = Folders((Path("/data/runs"), Path("/data/runs/old"), Path("/")))
    said = "/data/runs/old/a/x.json: as /data/runs/b.json, /data/runs: empty; /data/runs2/c.json"
    assert folders.relative(said) == "a/x.json: as b.json, runs: empty; /data/runs2/c.json"
