"""``htagraph summary``: the main job."""

from __future__ import annotations

from htagraph.cli.options import (
    Form,
    Format,
    Paths,
    Ranks,
    Scheduler,
    Steps,
    Top,
    emit,
    read,
    read_on,
    show,
    wants_color,
    width_of,
)  # fmt: skip
from htagraph.cli.targets import Output

__all__ = ["summary"]


def summary(  # noqa: PLR0913, PLR0917 - one argument per option
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 5,
    form: Form = Format.TABLE,
    output: Output = None,
    scheduler: Scheduler = None,
) -> None:
    """Where did the time go, and what bounds this job?"""
    if scheduler is not None:
        from htagraph.output.job_report import job_report

        show(job_report(read_on(scheduler, paths, ranks, steps), top=top), form, output, paths)
        return
    graph = read(paths, ranks, steps)
    from htagraph.output.render import render_summary
    from htagraph.output.summary import summarize

    result = summarize(graph, top=top)
    emit(render_summary(result, form.value, width=width_of(output), color=wants_color(output)), output, paths)
