"""Writing files so that others see them whole or not at all, and how their names end for the programs they are for."""

from __future__ import annotations

import html
import importlib
import importlib.util
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from htagraph.core.errors import HtagraphError, TraceError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
    from typing_extensions import Self

    from htagraph.trace.remote import TracePath

__all__ = [
    "FIGURES", "PAGES", "PERFETTO", "PICTURES", "OutputFile", "check_ending", "is_native", "opened_whole",
    "write_figure", "write_whole",
]  # fmt: skip

FIGURES = (".html", ".png", ".svg")
"""Figures of results by plotly."""
PAGES = (".html", ".htm")
"""Reports that a browser opens."""
_NATIVE = (".pftrace", ".pftrace.gz")
PERFETTO = (".json", ".json.gz", *_NATIVE)
"""Traces for Perfetto, as JSON or in its native format; they are gzipped if the name says so."""
PICTURES = (".svg", ".pdf", ".png", ".dot", ".gv")
"""Pictures by Graphviz, and their sources."""
_BUFFER_BYTES = 1 << 20
"""Bytes that are written together; chosen. Doubled, half as many writes."""
_GZIP_LEVEL = 2
"""Of isal's levels 0 to 3, or of zlib's 1 to 9. Chosen: level 3 writes files a few percent smaller."""


def write_whole(target: Path, data: bytes) -> None:
    """Write a file as `opened_whole` does."""
    with opened_whole(target) as file:
        file.write(data)


@contextmanager
def opened_whole(target: Path) -> Iterator[BinaryIO]:
    """Open a file under another name, which is renamed in the end; until then, what was there stays as it was.

    A device or a pipe, which no file may replace, is written itself. Of a link, the file that it means is replaced.
    """
    import tempfile  # seldom needed, and slow to import

    try:
        place = target.resolve()
        if place.exists() and not place.is_file():
            with place.open("wb", buffering=_BUFFER_BYTES) as file:
                yield file
            return
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb", buffering=_BUFFER_BYTES) as file:
                yield file
            part.chmod(mode)  # temporary files are for their owner only
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except RuntimeError as error:  # a link that leads to itself, before Python 3.13
        raise OSError(0, "a link that leads to itself", str(target)) from error
    except OSError as error:  # which may name the temporary file, or no file if it comes as late as on closing
        raise OSError(error.errno, error.strerror, str(target)) from error


class OutputFile:
    """Writes a file of events, whole or not at all: the base of writers, which say what stands at its end."""

    def __init__(self, target: str | Path, *, sources: Iterable[TracePath] = ()) -> None:
        self.target = Path(target)
        for source in sources:
            if isinstance(source, Path) and self.target.exists() and source.exists() and self.target.samefile(source):
                msg = f"{target}: is the trace itself; write to another file"
                raise TraceError(msg)
        self._stack = ExitStack()
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            if self.target.is_dir():
                raise IsADirectoryError(0, "it is a folder")
            self._file = self._stack.enter_context(opened_whole(self.target))
        except OSError as error:
            raise self._unwritable(error) from error
        if self.target.suffix == ".gz":
            self._file = self._stack.enter_context(_gzipped(self._file))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self._stack.__exit__(kind, error, trace)
                return
            with self._stack:
                self._finish()
        except OSError as why:
            raise self._unwritable(why) from why

    def _finish(self) -> None:
        """Write what stands behind the events."""

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> TraceError:
        return TraceError(f"{self.target}: cannot be written ({error.strerror or error})")


def check_ending(target: str | Path, endings: tuple[str, ...], what: str) -> None:
    """Raise an error unless a file's name ends as that of its kind does.

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


def _gzipped(file: BinaryIO) -> BinaryIO:
    """Return a file that is gzipped, without a name or a time in it: the same events give the same bytes."""
    try:
        writer: Any = importlib.import_module("isal.igzip").IGzipFile
    except ImportError:  # no wheel for this machine: the standard library does the same, slower
        writer = importlib.import_module("gzip").GzipFile
    return cast("BinaryIO", writer(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{margin:8px;font-family:sans-serif}}
.figure{{height:calc(100vh - 16px);min-height:{least}px}}.figure>div{{height:100%}}</style></head>
<body><div class="figure">{figure}</div></body>
</html>
"""


def write_figure(figure: Figure, path: str | Path, *, width: int = 1000) -> Path:
    """Write a figure to a file, whole or not at all, and return its path.

    ``.html`` is one page with all that it needs, as large as its window; ``.png`` and ``.svg`` are pictures of a width
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
        least = figure.layout.height or 0  # rows are no narrower than drawn; on a larger page they are wider
        whole = _in_page(figure, config)
        text = _PAGE.format(title=html.escape(" ".join(title.split())), figure=whole, least=least)
        data = text.encode("utf-8", "replace")
    else:
        data = _picture(figure, suffix[1:], width)
    write_whole(target, data)
    return target


def _in_page(figure: Figure, config: dict[str, bool]) -> str:
    """Return a figure as HTML that is as high as the element around it; the figure itself stays as it is."""
    height = figure.layout.height
    autosize = figure.layout.autosize
    figure.update_layout(height=None, autosize=True)  # to copy a figure warns of old kinds of maps in old versions
    try:
        return str(figure.to_html(include_plotlyjs=True, full_html=False, config=config, default_height="100%"))
    finally:
        figure.update_layout(height=height, autosize=autosize)


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
