"""``htagraph demo``: a small simulated job and its summary, for those who have no traces yet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from htagraph.cli.summary import summary

__all__ = ["demo"]


def demo(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the traces: a new or empty one. Else a temporary folder."),
    ] = None,
) -> None:
    """Write the traces of a small simulated job, one slow rank of four, and show its summary.

    Example: htagraph demo -o demo
    """
    from htagraph.core.errors import HtagraphError
    from htagraph.simulate import demo_job, simulate

    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        msg = f"--output {output}: is not an empty folder, and what is in it would count as part of the job"
        raise HtagraphError(msg)
    folder = output or Path(tempfile.mkdtemp(prefix="htagraph-demo-"))
    files = simulate(demo_job()).write(folder)
    typer.echo(f"{len(files)} traces of a simulated job, one file per rank, in {folder}", err=True)
    summary([str(folder)])
