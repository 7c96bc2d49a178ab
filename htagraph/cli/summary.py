"""``htagraph summary``: the main job."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from htagraph.cli.options import (
    Form,
    Paths,
    Ranks,
    Scheduler,
    Steps,
    Top,
    given,
    read,
    read_on,
    show,
    write,
)  # fmt: skip
from htagraph.cli.targets import Drawn

__all__ = ["summary"]


def summary(  # noqa: PLR0913, PLR0917 - one argument per option
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 5,
    form: Form = None,
    output: Drawn = None,
    scheduler: Scheduler = None,
    full: Annotated[bool, typer.Option("--full", help="Show all tables and the whole verdict.")] = False,  # noqa: FBT002 - typer
) -> None:
    """Where did the time go, what bounds this job, and what to try first?"""
    if scheduler is not None:
        from htagraph.output.job_report import job_report

        show(job_report(read_on(scheduler, paths, ranks, steps), top=top), form, output, paths)
        return
    graph = read(paths, ranks, steps)
    from htagraph.output.render import render_summary
    from htagraph.output.summary import summarize

    result = summarize(graph, top=top)
    shown = partial(render_summary, result, full=full, inputs=given(paths, ranks, steps))
    write(result, shown, form, output, paths)
