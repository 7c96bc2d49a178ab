"""``htagraph report``: one HTML file to look at and to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from htagraph.cli.options import Paths, Ranks, Steps, chosen, given, read, refuse_input
from htagraph.cli.targets import Page

__all__ = ["report"]


def report(
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Two jobs, before and after: what changed, and why.")
    ] = False,
    output: Page = Path("report.html"),
) -> None:
    """One HTML file: what limits the job, an interactive timeline, and where the time goes.

    Example: htagraph report traces/ -o report.html
    """
    refuse_input(output, paths, "--output")
    if compare:
        written = _compared(paths, chosen(ranks, "--ranks"), chosen(steps, "--steps"), output)
    else:
        graph = read(paths, ranks, steps)
        from htagraph.output.html.report import report as write

        written = write(graph, output, inputs=given(paths, ranks, steps))
    typer.echo(f"{written}: {written.stat().st_size / 1e6:.2f} MB. Open it in a browser.", err=True)


def _compared(paths: list[str], ranks: list[int] | None, steps: list[int] | None, output: Path) -> Path:
    """Write the page about the difference of two jobs."""
    if len(paths) != 2:
        msg = f"it takes two jobs, before and after; {len(paths)} given"
        raise typer.BadParameter(msg, param_hint="--compare")
    graphs = [read([path], None, None) for path in paths]
    from htagraph.analyses.differences import diff
    from htagraph.output.html.report import report as write

    return write(diff(graphs[0], graphs[1], steps=steps, ranks=ranks), output, inputs=paths)
