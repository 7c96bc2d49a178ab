"""Writing a file so that others see it whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from htagraph.core.errors import HtagraphError

__all__ = ["FIGURES", "PAGES", "PERFETTO", "PICTURES", "check_ending", "is_native", "write_whole"]


def write_whole(target: Path, data: bytes) -> None:
    """Write a file under another name and rename it; until then, what was there stays as it was.

    A device or a pipe, which no file may replace, is written itself. Of a link, the file that it means is replaced.

    Args:
        target: the file to write; its folder is not made.
        data: its content.

    Raises:
        OSError: it cannot be written; its ``filename`` is `target`.
    """
    import tempfile  # seldom needed, and slow to import

    try:
        place = target.resolve()
        if place.exists() and not place.is_file():
            place.write_bytes(data)
            return
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            part.chmod(mode)  # temporary files are for their owner only
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except RuntimeError as error:  # a link that leads to itself, before Python 3.13
        raise OSError(0, "a link that leads to itself", str(target)) from error
    except OSError as error:  # which may name the temporary file, or no file if it comes as late as on closing
        raise OSError(error.errno, error.strerror, str(target)) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
