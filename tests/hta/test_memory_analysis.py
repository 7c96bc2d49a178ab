"""HTA's interface to memory timelines: what it shows and what it writes.

Its numbers: tests/trace/profiler_files/test_memory_timeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htagraph.memory_analysis import MemoryAnalysis

EVENTS = [[-1, 1, 1024**3, 0], [5_000_000, 2, 2 * 1024**3, 4], [7_000_000, 4, -(1024**3), 4]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "memory.raw.json"
    made.write_text(json.dumps(EVENTS), encoding="utf-8")
    return made


def test_the_timeline_is_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda self, **_: shown.append(self))
    MemoryAnalysis(path).plot_memory_timeline()
    assert [figure.layout.title.text for figure in shown] == ["Memory timeline"]


def test_the_timeline_is_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written: list[Path] = []
    monkeypatch.setattr("plotly.graph_objects.Figure.write_image", lambda _, file: written.append(file))
    MemoryAnalysis(str(path)).plot_memory_timeline(save_graph=True)
    assert written == [Path("images/memory_plot.png")]


def test_where_no_image_can_be_made_it_is_written_as_html(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        msg = "no kaleido"
        raise ValueError(msg)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plotly.graph_objects.Figure.write_image", refuse)
    with pytest.warns(UserWarning, match=r"wrote images/memory_plot\.html.*no kaleido"):
        MemoryAnalysis(path).plot_memory_timeline(save_graph=True)
    assert (tmp_path / "images" / "memory_plot.html").stat().st_size > 1000
