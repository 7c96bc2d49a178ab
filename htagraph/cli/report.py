"""``htagraph report``: one HTML file to look at and to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from htagraph.cli.options import Paths, Ranks, Steps, given, read, refuse_input

__all__ = ["report"]


def report(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
) -> None:
    """One HTML file: what limits the job, an interactive timeline, and where the time goes.

    Example: htagraph report traces/ -o report.html
    """
    refuse_input(output, paths, "--output")
    graph = read(paths, ranks, steps)
    from htagraph.output.html.report import report as write

    written = write(graph, output, inputs=given(paths, ranks, steps))
    typer.echo(f"{written}: {written.stat().st_size / 1e6:.2f} MB. Open it in a browser.", err=True)
