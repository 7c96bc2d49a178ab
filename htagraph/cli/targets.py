"""Options that name a file to write: refused at once, before traces are read, if it cannot be what is asked for.

Folders of files are never made: a misspelt one would hide the results. Options that name a folder make it, and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from htagraph.cli.writing import Folder, form_of, is_figure, target
from htagraph.core.errors import HtagraphError

__all__ = ["Comment", "Counters", "Drawn", "Figure", "Output", "Page", "Perfetto", "Picture", "need_perfetto"]


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
            from htagraph.output import whole_files as endings

            endings.check_ending(file, getattr(endings, name), what)
        return _in_folder(file)

    return checked


def _of_known_form(context: typer.Context, file: Path | None) -> Path | None:
    """Return the file for a result: its folder is there, and its name says a format unless ``--format`` does."""
    form_of(context.params.get("form"), file)
    return _in_folder(file)


def _of_known_form_or_figure(context: typer.Context, file: Path | None) -> Path | None:
    """Return the file for a result or its figure."""
    form = context.params.get("form")
    if file is not None and not is_figure(form, file):
        from htagraph.output.whole_files import FIGURES

        form_of(form, file, FIGURES)
    return _in_folder(file)


_OUTPUT = "Write to this file (.json, .csv, .md, .txt, .parquet) instead of stdout; to DIR/, a file per table."
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", callback=_of_known_form, parser=target, metavar="FILE|DIR/", help=_OUTPUT,
    ),
]  # fmt: skip
Drawn = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", callback=_of_known_form_or_figure, parser=target, metavar="FILE|DIR/",
        help=f"{_OUTPUT} Ending in .html, .svg or .png: the figure.",
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
        help="Write the traces with this on top to a file for ui.perfetto.dev: .pftrace keeps ranks in order, .json is "
        "text; .gz behind either compresses it.",
    ),
]  # fmt: skip
Counters = Annotated[
    bool, typer.Option("--counters", help="With --perfetto: queue lengths, copy bandwidths and memory, too.")
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--graphviz", callback=_ending("PICTURES", "pictures"),
        help="Draw the path on a time axis as .svg, .pdf or .png, or write its source as .dot.",
    ),
]  # fmt: skip


def need_perfetto(perfetto: Path | None, *, counters: bool) -> None:
    """Refuse counters without a file to draw them into."""
    if counters and perfetto is None:
        msg = "counters are drawn into a file: give --perfetto too"
        raise typer.BadParameter(msg, param_hint="--counters")
