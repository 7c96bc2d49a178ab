"""``htagraph idle``: why streams stand still, and their longest pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["idle", "report"]

_MEANING = {
    "host_wait": "the host enqueued the next work too late",
    "kernel_wait": "the device's own pause between two kernels",
    "other": "work that was enqueued waited for another stream, another rank or a resource",
}


def idle(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Why streams stand still: idle time by cause, and the longest pauses with the work before and behind."""
    graph = read(paths, ranks, steps)
    show(report(graph, given(paths, ranks, steps), top=top), form, output, paths)


def report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on the pauses of a job's streams; `inputs` are the words that choose what is read."""
    from htagraph.analyses.idle_breakdown import idle_breakdown
    from htagraph.analyses.idle_intervals import idle_intervals
    from htagraph.core.naming import short_name
    from htagraph.output.report import report_on

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
        graph, "idle", tables, _sentences(streams, inputs), brief={"streams": shown, "pauses": brief}
    )  # fmt: skip


def _sentences(streams: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    by_cause = streams.groupby("cause")["idle_us"].sum().sort_values(ascending=False)
    total = float(by_cause.sum())
    if not total:
        return ["No stream stands still between its first and its last work."]
    cause = str(by_cause.index[0])
    count = len(streams[["rank", "device", "stream"]].drop_duplicates())
    whose = f"{count:,} streams stand still, their times added up," if count > 1 else "The stream stands still"
    said = [
        f"{whose} for {time_text(total)} between {'their' if count > 1 else 'its'} first and last work; "
        f"{100 * by_cause.iloc[0] / total:.0f} % of it is {cause}: {_MEANING[cause]}."
    ]
    if cause == "host_wait":
        said.append(f"What a faster host would give: {command_line('what-if', inputs, '--infinite-host')}")
    if cause == "other":
        said.append(f"Who waits for whom between ranks: {command_line('collectives', inputs)}")
    return said
