"""``htagraph idle``: why streams are idle, and their longest idle intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.output.wording import idle as wording

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["idle", "report"]


def idle(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Why streams are idle: idle time by cause, and the longest idle intervals with the work before and after."""
    graph = read(paths, ranks, steps)
    show(report(graph, given(paths, ranks, steps), top=top), form, output, paths)


def report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on the idle time of a job's streams; `inputs` are the words that choose what is read."""
    from htagraph.analyses.idle_breakdown import idle_breakdown
    from htagraph.analyses.idle_intervals import idle_intervals
    from htagraph.core.naming import short_name
    from htagraph.output.report import Wording, report_on

    streams = idle_breakdown(graph)
    pauses = idle_intervals(graph)
    pauses = pauses[pauses["pause_us"] > 0].sort_values("pause_us", ascending=False, kind="stable")
    longest = pauses.head(top).reset_index(drop=True)
    brief = longest[["rank", "stream", "step", "start_us", "pause_us", "launch_late_us", "cause"]].assign(
        before=longest["before_name"].map(short_name), after=longest["after_name"].map(short_name)
    )
    several = (streams.groupby("rank")["device"].nunique() > 1).any()
    shown = streams[streams["idle_us"] > 0].drop(columns=[] if several else "device")
    tables = {"streams": streams, "pauses": longest}
    return report_on(
        graph, "idle", tables, wording.sentences(streams, inputs), brief={"streams": shown, "pauses": brief},
        wording=Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip
