"""What a profiler calls with a finished recording."""

from __future__ import annotations

import gzip
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
