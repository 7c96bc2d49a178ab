"""Figures as files: pages that open from the disk, and pictures."""

from __future__ import annotations

import html
import importlib.util
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from htagraph.core.errors import HtagraphError
from htagraph.output.whole_files import FIGURES, check_ending, write_whole

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["write_figure"]

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{margin:8px;font-family:sans-serif}}</style></head>
<body>{figure}</body>
</html>
"""


def write_figure(figure: Figure, path: str | Path, *, width: int = 1000) -> Path:
    """Write a figure to a file, whole or not at all, and return its path.

    ``.html`` is one page with all that it needs, as wide as its window; ``.png`` and ``.svg`` are pictures of a width
    in pixels, for which ``htagraph[image]`` and Chrome or Chromium are needed.

    Raises:
        HtagraphError: the name ends in none of these, or what makes pictures is missing, or fails.
    """
    target = Path(path)
    check_ending(target, FIGURES, "figures")
    suffix = target.suffix.lower()
    if suffix == ".html":
        title = html.unescape(re.sub(r"<span.*|<[^>]*>", " ", figure.layout.title.text or "htagraph"))
        config = {"displaylogo": False, "responsive": True}
        whole = figure.to_html(include_plotlyjs=True, full_html=False, config=config)
        data = _PAGE.format(title=html.escape(" ".join(title.split())), figure=whole).encode("utf-8", "replace")
    else:
        data = _picture(figure, suffix[1:], width)
    write_whole(target, data)
    return target


def _picture(figure: Figure, kind: str, width: int) -> bytes:
    if importlib.util.find_spec("kaleido") is None:
        msg = f'a .{kind} needs kaleido: pip install "htagraph[image]", or write .html'
        raise HtagraphError(msg)
    logging.getLogger("choreographer").setLevel(logging.CRITICAL)  # it logs what it ignores; what fails is raised
    try:
        return figure.to_image(kind, width=width, scale=2 if kind == "png" else 1)  # screens have two pixels for one
    except Exception as error:  # what a browser raises has no common class
        reason = " ".join(str(error).split())[:200]
        msg = f"the .{kind} could not be made with Chrome or Chromium ({reason}); install one, or write .html"
        raise HtagraphError(msg) from error
