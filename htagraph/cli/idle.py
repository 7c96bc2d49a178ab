"""``htagraph idle``: why streams are idle, and their longest idle intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Drawn
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
    form: Form = None,
    output: Drawn = None,
) -> None:
    """Why streams are idle: idle time by cause, and the longest idle intervals with the work before and after."""
    graph = read(paths, ranks, steps)
    show(report(graph, given(paths, ranks, steps), top=top), form, output, paths)


def report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on the idle time of a job's streams; `inputs` are the words that choose what is read."""
    from htagraph.analyses.idle_breakdown import idle_breakdown
    from htagraph.analyses.idle_intervals import idle_intervals
    from htagraph.core.naming import short_name
    from htagraph.findings.interrupted import interruption_note
    from htagraph.findings.verbs import idle as findings
    from htagraph.output.report import Wording, report_on

    streams = idle_breakdown(graph)
    devices = idle_breakdown(graph, by="rank")
    pauses = idle_intervals(graph)
    pauses = pauses[pauses["pause_us"] > 0].sort_values("pause_us", ascending=False, kind="stable")
    longest = pauses.head(top).reset_index(drop=True)
    brief = longest[["rank", "stream", "step", "start_us", "pause_us", "launch_late_us", "cause"]].assign(
        before=longest["before_name"].map(short_name), after=longest["after_name"].map(short_name)
    )
    several = (streams.groupby("rank")["device"].nunique() > 1).any()
    shown = streams[streams["idle_us"] > 0].drop(columns=[] if several else "device")
    tables = {"streams": streams, "pauses": longest}
    conclusions = findings.sentences(streams, devices, inputs, partial(_gain_by_host, graph))
    return report_on(
        graph, "idle", tables, [*conclusions, *interruption_note(graph, inputs)],
        brief={"streams": shown, "pauses": brief},
        wording=Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip


def _gain_by_host(graph: DependencyGraph) -> float:
    """Return how much shorter a job would be with an infinitely fast host, 0 to 1."""
    from htagraph.whatif.scenario import what_if

    outcome = what_if(graph).infinite_host().run()
    return outcome.saved_ns / max(outcome.baseline_ns, 1)
