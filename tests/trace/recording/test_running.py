"""A profiler ends when its block does, whatever ends it, and in its own process only."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from htagraph.trace.recording.running import running
from htagraph.trace.recording.trace_handler import TraceHandler
from tests.trace.recording.torch_python import needs_torch, record


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ends")


class Profiler:
    """Writes a file when it ends, or fails to."""

    def __init__(self, handler: TraceHandler, fault: Exception | None = None) -> None:
        self.handler, self.fault, self.ended = handler, fault, 0

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *error: object) -> None:
        self.ended += 1
        if self.fault:
            raise self.fault
        self.handler(self)

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text("{}")


def leave(profiler: Profiler, error: BaseException | None = None) -> None:
    with running(profiler, profiler.handler):
        if error:
            raise error


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes before Python 3.11")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()])
def test_after_an_error_the_file_is_there_and_the_error_says_so(error: BaseException, tmp_path: Path) -> None:
    with pytest.raises(type(error)) as raised:
        leave(Profiler(TraceHandler(tmp_path, 3)), error)
    file = tmp_path / "rank-3.json.gz"
    assert file.exists()
    notes: Any = vars(raised.value)["__notes__"]
    assert notes == [f"htagraph.profile: {file} has what was recorded until this was raised"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes before Python 3.11")
def test_a_profiler_that_cannot_end_hides_no_error_of_the_job(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        leave(Profiler(TraceHandler(tmp_path, 3), OSError("disk full")), KeyboardInterrupt())
    notes: Any = vars(raised.value)["__notes__"]
    assert notes == ["htagraph.profile: the recording could not be written: disk full"]
    with pytest.raises(OSError, match="disk full"):
        leave(Profiler(TraceHandler(tmp_path, 3), OSError("disk full")))


@pytest.mark.parametrize("error", [None, SystemExit(0)])
def test_a_forked_process_leaves_the_profiler_to_its_parent(
    error: BaseException | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = Profiler(TraceHandler(tmp_path, 3))
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    if error:
        with pytest.raises(SystemExit):
            leave(profiler, error)
    else:
        leave(profiler)
    assert profiler.ended == 0
    assert list(tmp_path.iterdir()) == []


@needs_torch
@pytest.mark.parametrize(
    ("end", "files", "said"),
    [
        ("raises", ["rank-0.json.gz"], "rank-0.json.gz has what was recorded until this was raised"),
        ("raises early", [], ""),
        ("profiler inside", [], "no file was written: another profiler of PyTorch ran while this one recorded"),
        ("profiler around", [], "another profiler of PyTorch is recording in this process"),
        ("forked", ["rank-0.json.gz"], ""),
        ("left the group", ["rank-5.json.gz"], ""),
    ],
)
def test_what_a_real_profiler_leaves_behind(end: str, files: list[str], said: str, recordings: Path) -> None:
    out = record(recordings, "ends") / end
    assert sorted(file.name for file in out.glob("*.gz")) == files
    text = (out / "said.txt").read_text()
    assert said in text
    assert bool(said) == bool(text)
