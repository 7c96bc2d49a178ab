from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from plotly.graph_objects import Figure

import htagraph as hg
from htagraph.core.errors import HtagraphError
from htagraph.output.plot.files import write_figure
from htagraph.output.plot.style import drawn
from tests.output.plot.jobs import HOSTILE
from tests.reach import DATA, graph_of


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
