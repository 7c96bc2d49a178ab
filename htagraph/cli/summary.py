"""``htagraph summary``: the main job."""

from __future__ import annotations

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, emit, read, wants_color, width_of

__all__ = ["summary"]


def summary(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 5,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Where did the time go, and what bounds this job?"""
    graph = read(paths, ranks, steps)
    from htagraph.output.render import render_summary
    from htagraph.output.summary import summarize

    result = summarize(graph, top=top)
    emit(render_summary(result, form.value, width=width_of(output), color=wants_color(output)), output, paths)
