"""How names of written files end, so that the programs they are for take them."""

from __future__ import annotations

from pathlib import Path

from htagraph.core.errors import HtagraphError

__all__ = ["FIGURES", "PAGES", "PERFETTO", "PICTURES", "check_ending", "is_native"]

FIGURES = (".html", ".png", ".svg")
"""Figures of results by plotly."""
PAGES = (".html", ".htm")
"""Reports that a browser opens."""
_NATIVE = (".pftrace", ".pftrace.gz")
PERFETTO = (".json", ".json.gz", *_NATIVE)
"""Traces for Perfetto, as JSON or in its native format; they are gzipped if the name says so."""
PICTURES = (".svg", ".pdf", ".png", ".dot", ".gv")
"""Pictures by Graphviz, and their sources."""


def check_ending(target: str | Path, endings: tuple[str, ...], what: str) -> None:
    """Raise an error unless a file's name ends as that of its kind does.

    Raises:
        HtagraphError: it does not; the message lists the endings.

    Example:
        >>> check_ending("o.txt", PERFETTO, "traces for Perfetto")
        Traceback (most recent call last):
        ...
        htagraph.core.errors.HtagraphError: o.txt: traces for Perfetto end in .json, .json.gz, .pftrace or .pftrace.gz
    """
    if not Path(target).name.lower().endswith(endings):
        *others, last = endings
        msg = f"{target}: {what} end in {', '.join(others)} or {last}"
        raise HtagraphError(msg)


def is_native(target: str | Path) -> bool:
    """Return whether the name of a trace for Perfetto asks for its native format.

    Example:
        >>> is_native("o.pftrace"), is_native("o.json.gz")
        (True, False)
    """
    return Path(target).name.lower().endswith(_NATIVE)
