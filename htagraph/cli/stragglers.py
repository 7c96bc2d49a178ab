"""``htagraph stragglers``: for which rank the others wait, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, time_text

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["report", "stragglers"]


def stragglers(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Which rank makes the others wait, how much, and what on that rank makes it late."""
    graph = read(paths, ranks, steps)
    from htagraph.analyses.stragglers import stragglers as found_in

    show(report(graph, found_in(graph), given(paths, ranks, steps), top=top), form, output, paths)


def report(graph: DependencyGraph, found: Stragglers, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on the result of `htagraph.stragglers`; `inputs` are the words that choose what is read."""
    from htagraph.output.report import report_on

    table = found.to_frame().sort_values("blamed_us", ascending=False, kind="stable").head(top)
    causes = found.blame.groupby(["charged_rank", "cause"], as_index=False).agg(
        wait_us=("wait_us", "sum"), waits=("wait_us", "size")
    )
    causes = causes.sort_values("wait_us", ascending=False, kind="stable").head(top).reset_index(drop=True)
    tables = {"stragglers": table.reset_index(drop=True), "causes": causes}
    columns = ["rank", "blamed_us", "share_percent", "waits_us", "lateness_us", "late_count", "cause", "cause_name"]
    brief = {"stragglers": tables["stragglers"][columns].rename(columns={"cause_name": "name"}), "causes": causes}
    figures = {"straggler": found.straggler, "total_wait_us": found.total_wait_us}
    return report_on(
        graph, "stragglers", tables, _sentences(graph, found, inputs), figures=figures, brief=brief
    )  # fmt: skip


def _sentences(graph: DependencyGraph, found: Stragglers, inputs: Sequence[str]) -> list[str]:
    if len(graph.ranks) < 2:
        return ["Only one rank was read: give the traces of the others too, to see who waits for whom."]
    if not found.total_wait_us:
        return ["No rank waits for another in what was matched; see htagraph collectives for what was not."]
    total = time_text(found.total_wait_us)
    if found.straggler is None:
        most = found.ranks.iloc[int(found.ranks["blamed_us"].to_numpy().argmax())]
        return [
            f"The ranks wait {total} for each other, but none is slower than its peers by more than chance.",
            f"Most of it, {most['share_percent']:.0f} %, is charged to rank {most['rank']}: {most['evidence']}.",
        ]
    row = found.ranks[found.ranks["rank"] == found.straggler].iloc[0]
    return [
        f"Rank {found.straggler} is the straggler: {row['share_percent']:.0f} % of all waiting ({total} over all "
        "ranks) is charged to it.",
        f"Why: {row['evidence']}.",
        "What it would save if that rank were like the others: "
        + command_line("what-if", inputs, "--fix-straggler", str(found.straggler)),
    ]
