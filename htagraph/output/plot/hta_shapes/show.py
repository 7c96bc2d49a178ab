"""Showing figures where the user looks: a notebook or a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["show"]


def show(*figures: Figure, renderer: str | None = None) -> None:
    """Show figures.

    Args:
        figures: what to show.
        renderer: plotly's name of what shows them; its own choice if not given.
    """
    for figure in figures:
        figure.show(renderer=renderer or None)
