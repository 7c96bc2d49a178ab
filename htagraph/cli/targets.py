"""Options that name a file to write: refused at once, before traces are read, if it cannot be what is asked for.

Folders of files are never made: a misspelt one would hide the results. Options that name a folder make it, and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from htagraph.cli.writing import Folder, target
from htagraph.core.errors import HtagraphError

__all__ = ["Comment", "Figure", "Output", "Page", "Perfetto", "Picture"]


def _in_folder(file: Path | None) -> Path | None:
    """Return the file, whose folder is there.

    Raises:
        HtagraphError: it is not, or a file has the name of the folder that is to be written to.
    """
    if file is None:
        return None
    if not file.parent.is_dir():
        msg = f"{file}: No such file or directory: make its folder first"
        raise HtagraphError(msg)
    if isinstance(file, Folder) and file.exists() and not file.is_dir():
        msg = f"{file}/: is a file, not a folder: leave the slash away to write it anew, or name another folder"
        raise HtagraphError(msg)
    return file


def _ending(name: str, what: str) -> Callable[[Path | None], Path | None]:
    """Return what checks a file's folder and the ending of its name, one of those of a kind of files."""

    def checked(file: Path | None) -> Path | None:
        if file is not None:
            from htagraph.output.export import endings

            endings.check_ending(file, getattr(endings, name), what)
        return _in_folder(file)

    return checked


Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", callback=_in_folder, parser=target, metavar="FILE|DIR/",
        help="Write to this file (.json, .csv, .md, .txt, .parquet) instead of stdout; to DIR/, a file per table.",
    ),
]  # fmt: skip
Figure = Annotated[
    Path,
    typer.Option(
        "--output", "-o", callback=_ending("FIGURES", "figures"), metavar="FILE",
        help="The file: .html, or .png or .svg, which need htagraph\\[image] and Chrome.",
    ),
]  # fmt: skip
Comment = Annotated[
    Path | None,
    typer.Option("--comment", callback=_in_folder, metavar="FILE.md", help="Write a comment for a pull request."),
]
Page = Annotated[
    Path,
    typer.Option(
        "--output", "-o", callback=_ending("PAGES", "reports"), metavar="FILE", help="The file to write: .html."
    ),
]
Perfetto = Annotated[
    Path | None,
    typer.Option(
        "--perfetto", callback=_ending("PERFETTO", "traces for Perfetto"),
        help="Write the traces with this on top to a file, .json or .json.gz, for ui.perfetto.dev.",
    ),
]  # fmt: skip
Picture = Annotated[
    Path | None,
    typer.Option(
        "--graphviz", callback=_ending("PICTURES", "pictures"),
        help="Draw the path on a time axis as .svg, .pdf or .png, or write its source as .dot.",
    ),
]  # fmt: skip
