"""Whether figures are shown where the user asks for it."""

from __future__ import annotations

import pytest
from plotly.graph_objects import Figure

from htagraph.output.plot.hta_shapes.show import show


def test_each_figure_is_shown_by_the_renderer_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str | None] = []
    monkeypatch.setattr(Figure, "show", lambda _, renderer: calls.append(renderer))
    show(Figure(), Figure(), renderer="svg")
    show(Figure(), renderer="")
    assert calls == ["svg", "svg", None]
