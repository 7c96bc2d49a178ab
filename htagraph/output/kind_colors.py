"""One colour per kind of activity and category of time, in figures and pictures alike."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["COLORS", "KIND_COLORS", "tint"]

COLORS = {
    "blue": "#0072B2", "orange": "#E69F00", "green": "#009E73", "vermillion": "#D55E00", "sky": "#56B4E9",
    "purple": "#CC79A7", "yellow": "#F0E442", "brown": "#8C6D31", "grey": "#999999", "light": "#C4C4C4",
}  # fmt: skip
"""Okabe and Ito's colours, which readers of all kinds of colour vision tell apart; a brown and two greys as well."""
KIND_COLORS: Mapping[str, str] = {
    "computation": COLORS["blue"], "communication": COLORS["vermillion"], "memory": COLORS["purple"],
    "host": COLORS["orange"], "launch": COLORS["yellow"], "sync": COLORS["green"], "waiting": COLORS["sky"],
    "data_loading": COLORS["brown"], "gap": COLORS["grey"], "head": COLORS["light"], "idle": COLORS["light"],
    "op": COLORS["orange"], "host_communication": COLORS["vermillion"], "device_other": COLORS["sky"],
    "module": COLORS["sky"], "annotation": COLORS["green"], "step": COLORS["brown"], "": COLORS["grey"],
}  # fmt: skip
"""Kinds of activity and categories of time: each has one colour in all figures."""


def tint(color: str, share: float = 0.45) -> str:
    """Return a colour mixed with white, light enough for black letters.

    Args:
        color: as ``#RRGGBB``.
        share: how much of the colour is left, from 0 (white) to 1.

    Example:
        >>> tint("#0072B2", 1.0), tint("#0072B2", 0.5), tint("#0072B2", 0.0)
        ('#0072b2', '#80b8d8', '#ffffff')
    """
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in parts)
