"""A file is there as a whole, or as it was before."""

from __future__ import annotations

import gzip
import importlib.util
import os
import stat
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from plotly.graph_objects import Figure

import htagraph as hg
from htagraph.core.errors import HtagraphError, TraceError
from htagraph.output.plot.style import drawn
from htagraph.output.whole_files import (
    PERFETTO,
    PICTURES,
    OutputFile,
    check_ending,
    is_native,
    write_figure,
    write_whole,
)
from tests.output.plot.jobs import HOSTILE
from tests.reach import DATA, graph_of


def test_a_file_has_its_content_and_what_rights_others_have(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"a")
    write_whole(tmp_path / "new", b"\x00\xff")
    assert (tmp_path / "new").read_bytes() == b"\x00\xff"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    target.chmod(0o640)
    write_whole(target, b"new")
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"new", 0o640)


@pytest.mark.parametrize("failing", ["os.fdopen", "pathlib.Path.replace", "pathlib.Path.chmod"])
def test_what_fails_leaves_the_file_that_was_there_and_nothing_else(failing: str, tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    error = OSError(28, "No space left on device", "/elsewhere")
    with patch(failing, side_effect=error), pytest.raises(OSError, match="No space left") as raised:
        write_whole(target, b"new")
    assert raised.value.filename == str(target)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"old")]


def test_leaving_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    with patch("os.fdopen", side_effect=SystemExit(143)), pytest.raises(SystemExit):
        write_whole(tmp_path / "a", b"new")
    assert not list(tmp_path.iterdir())


def test_of_a_link_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to("a")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(OSError, match=r"link|symbolic") as raised:
        write_whole(tmp_path / "a", b"new")
    assert raised.value.filename == str(tmp_path / "a")


def test_a_pipe_is_written_itself(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_whole(tmp_path / "pipe", b"new")
    reader.join()
    assert read == [b"new"]


@pytest.mark.parametrize("name", ["o.json", "o.json.gz", "O.JSON", "a.pt.trace.json.gz", "o.pftrace", "o.pftrace.gz"])
def test_names_of_traces_are_taken(name: str) -> None:
    check_ending(Path("folder") / name, PERFETTO, "traces")
    assert is_native(name) == ("pftrace" in name)


@pytest.mark.parametrize("name", ["o.txt", "o", "o.gz", "o.json.bz2", "json"])
def test_other_names_are_refused_and_the_endings_listed(name: str) -> None:
    with pytest.raises(HtagraphError, match=rf"{name}: traces end in \.json, \.json\.gz, \.pftrace or \.pftrace\.gz"):
        check_ending(name, PERFETTO, "traces")
    with pytest.raises(HtagraphError, match=r"pictures end in \.svg, \.pdf, \.png, \.dot or \.gv"):
        check_ending(name, PICTURES, "pictures")


class Text(OutputFile):
    def __enter__(self) -> Text:
        self._write(b"begin ")
        return self

    def _finish(self) -> None:
        self._write(b"end")


def test_the_ending_of_the_name_says_whether_it_is_gzipped(tmp_path: Path) -> None:
    for name in ("a.x", "new/a.x.gz"):
        with Text(tmp_path / name):
            assert not (tmp_path / name).exists()
    assert (tmp_path / "a.x").read_bytes() == b"begin end"
    assert gzip.decompress((tmp_path / "new" / "a.x.gz").read_bytes()) == b"begin end"


def test_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Text(tmp_path / "a"):
        raise ZeroDivisionError
    with pytest.raises(TraceError, match="it is a folder"):
        Text(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_page_holds_all_that_it_needs(tmp_path: Path) -> None:
    path = write_figure(hg.plot.timeline(graph_of(DATA / "demo")), tmp_path / "a.html")
    text = path.read_text(encoding="utf-8")
    assert "<title>The 8 streams of 4 ranks are busy" in text
    assert "<script src=" not in text
    assert len(text) > 1_000_000
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_closes_no_script_and_no_title(tmp_path: Path) -> None:
    text = write_figure(drawn([], HOSTILE, HOSTILE), tmp_path / "a.html").read_text(encoding="utf-8")
    head, _, body = text.partition("</head>")
    assert "<img src=x" not in body
    assert "<img" not in head
    assert head.count("</title>") == 1


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.html.gz"])
def test_other_files_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match=r"end in \.html, \.png or \.svg"):
        write_figure(Figure(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_kaleido_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(HtagraphError, match=r'pip install "htagraph\[image\]", or write \.html'):
        write_figure(Figure(), tmp_path / "a.png")


def test_a_browser_that_fails_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> bytes:
        msg = "no\nchrome"
        raise RuntimeError(msg)

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(Figure, "to_image", fail)
    with pytest.raises(HtagraphError, match=r"with Chrome or Chromium \(no chrome\); install one, or write \.html"):
        write_figure(Figure(), tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())
