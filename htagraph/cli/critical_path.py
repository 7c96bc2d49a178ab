"""``htagraph critical-path``: what determined when the job ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Top, chosen, given, read, refuse_input, show
from htagraph.cli.targets import Counters, Drawn, Perfetto, Picture, need_perfetto
from htagraph.output.wording import critical_path as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.output.report import Report
    from htagraph.queries.paths import CriticalPath

__all__ = ["critical_path", "report"]


def critical_path(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            "--step",
            metavar="STEPS",
            help="From the start to the end of these ProfilerSteps, such as 4 or 4-6.",
        ),
    ] = None,
    top: Top = 10,
    segments: Annotated[bool, typer.Option("--segments", help="Print every segment of the path.")] = False,
    perfetto: Perfetto = None,
    counters: Counters = False,
    graphviz: Picture = None,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """What decided when the job, or a step, ended: the chain of work and waits across ranks."""
    numbers = chosen(steps, "--steps")
    need_perfetto(perfetto, counters=counters)
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, None)  # what came before a step may reach into it
    from htagraph.analyses.critical_path import critical_path as path_of

    path = path_of(graph, steps=numbers)
    files = _written(path, perfetto, graphviz, counters=counters)
    show(report(path, given(paths, ranks), top=top, segments=segments), form, output, paths, lambda: path)
    for line in files:
        typer.echo(line, err=True)


def _written(path: CriticalPath, perfetto: Path | None, graphviz: Path | None, *, counters: bool) -> list[str]:
    """Write the files asked for and return a line about each."""
    lines = []
    if perfetto is not None:
        lines.append(str(path.to_perfetto(perfetto, counters=counters)))
    if graphviz is not None:
        from htagraph.output.export.graphviz import draw

        lines.append(_drawn(graphviz, draw(path, graphviz)))
    return lines


def _drawn(asked: Path, drawn: Path) -> str:
    """Return what is said of a picture: where it is, or how to get it from its source."""
    if drawn.suffix == asked.suffix:
        return f"{drawn}: a picture of the path"
    return (
        f"{drawn}: the source of the picture. {asked} was not drawn, because Graphviz's dot is not installed "
        f"(apt install graphviz, brew install graphviz). Where it is, draw it by dot -T{asked.suffix[1:]} {drawn} "
        f"-o {asked}"
    )


def report(path: CriticalPath, inputs: Sequence[str], *, top: int = 10, segments: bool = False) -> Report:
    """Return the report on a path; `inputs` are the words that choose what is read."""
    from htagraph.findings.conclusions.claims import path_claims
    from htagraph.findings.verbs import critical_path as findings
    from htagraph.output.report import Wording, report_on
    from htagraph.queries.host_time import host_pauses

    whole = path.summary()
    claims = path_claims(path)
    shares = whole.groupby("group", sort=False).head(top).reset_index(drop=True)
    tables = {"shares": shares, "host": host_pauses(path, top), "hops": path.hops(), "near": path.near(top)}
    if segments:
        tables["segments"] = path.to_frame()
    figures = {"makespan_us": path.makespan_ns / 1000, "segments_count": len(path.segments)}
    return report_on(
        path.graph, "critical-path", tables, findings.sentences(path, claims, tables["hops"], inputs),
        figures=figures, brief=_brief(path, tables, top), wording=Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip


def _brief(path: CriticalPath, tables: dict[str, pd.DataFrame], top: int) -> dict[str, pd.DataFrame]:
    """Return one table per group of shares, hops by pair of ranks, near paths without activity numbers."""
    whole = path.summary()
    brief = {}
    for group in ("category", "rank", "operator", "kernel"):
        rows = _steps_as_one(whole) if group == "operator" else whole
        rows = rows[rows["group"] == group].drop(columns="group").head(top)
        rows = rows.rename(columns={"key": group, "count": "segments"})
        if group != "rank" or len(path.graph.ranks) > 1:
            brief[f"path_{group}"] = rows[rows[group] != "none"]
    if len(tables["host"]):
        brief["path_host"] = _host(tables["host"])
    hops = tables["hops"]
    if len(hops):
        pairs = hops.groupby(["from_rank", "to_rank"], as_index=False)
        brief["hops"] = pairs.agg(hops=("at_us", "size"), waited_us=("waited_us", "sum")).nlargest(top, "hops")
    near = tables["near"]
    brief["near"] = near[["slack_us", "work_us", "rank", "main"]]
    if "segments" in tables:
        columns = ["start_us", "duration_us", "rank", "category", "name", "operator", "edge", "gap"]
        brief["segments"] = tables["segments"][columns].replace("", "-")
    return brief


def _host(table: pd.DataFrame) -> pd.DataFrame:
    """Return what the host did on a path with one column that says what ran, or what untraced code came before."""
    from htagraph.findings.verbs import critical_path as findings

    what = table["what"].where(table["what"] != "", findings.untraced_before(table["before"]))
    return table.drop(columns=["before", "after", "activity"]).assign(what=what).replace("", "-")


def _steps_as_one(shares: pd.DataFrame) -> pd.DataFrame:
    """Return shares of a path with one row for the time in steps but in no operator, in place of one per step."""
    from htagraph.core.naming import step_number
    from htagraph.findings.verbs import critical_path as findings

    in_step = (shares["group"] == "operator") & shares["key"].map(step_number).notna()
    named = shares.assign(key=shares["key"].mask(in_step, findings.NO_OPERATOR))
    sums = named.groupby(["group", "key"], as_index=False, sort=False).sum()
    return sums.sort_values("time_us", ascending=False, kind="stable")
