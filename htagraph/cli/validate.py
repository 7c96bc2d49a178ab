"""``htagraph validate``: what is wrong with traces."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from htagraph.cli.options import Form, Paths, progress, write
from htagraph.cli.targets import Output

__all__ = ["validate"]


def validate(
    paths: Paths,
    *,
    arguments: Annotated[bool, typer.Option("--arguments", help="Also check every argument of every event.")] = False,
    form: Form = None,
    output: Output = None,
) -> None:
    """What is wrong with these traces, and what can they answer? Exit code 1 if a file is unusable.

    Always reads the files, never what is cached of them.
    """
    with progress("reading") as advance:
        from htagraph.output.validation import validate as validated

        report = validated(paths, arguments=arguments, progress=advance)
    from htagraph.output.render import render_validation

    write(report, partial(render_validation, report), form, output, paths)
    if not report.usable:
        raise typer.Exit(1)
