"""``htagraph critical-path``: what determined when the job ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Top, chosen, given, read, refuse_input, show
from htagraph.cli.words import and_list, category_words, command_line, glob_of, plural, time_text
from htagraph.whatif.change_options import CHANGES, criteria_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.output.report import Report
    from htagraph.queries.paths import CriticalPath

__all__ = ["critical_path", "report"]

_FEW = 5.0  # percent: what is less is not worth a sentence
_HALVED = ("communication", "computation", "memory")
_REMEDY = {
    "host": ("--infinite-host",), "launch": ("--no-launch-overhead",), "data_loading": ("--free-dataloader",),
    "sync": ("--remove-sync", "kind=sync"),
}  # fmt: skip
"""What predicts the job without a category."""


def critical_path(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", "--step", help="From the begin to the end of these ProfilerSteps, such as 4 or 4-6."),
    ] = None,
    top: Top = 10,
    segments: Annotated[bool, typer.Option("--segments", help="Print every segment of the path.")] = False,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            "--perfetto", help="Write the traces with the path over them for ui.perfetto.dev (.json or .json.gz)."
        ),
    ] = None,
    graphviz: Annotated[
        Path | None,
        typer.Option("--graphviz", help="Draw the path (.svg, .pdf, .png, or its source as .dot)."),
    ] = None,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """What determined when the job, or a step, ended: the chain to which every wait leads back."""
    numbers = chosen(steps, "--steps")
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, None)  # what came before a step may reach into it
    from htagraph.analyses.critical_path import critical_path as path_of

    path = path_of(graph, steps=numbers)
    files = _written(path, perfetto, graphviz)
    show(report(path, given(paths, ranks), top=top, segments=segments), form, output, paths)
    for line in files:
        typer.echo(line, err=True)


def _written(path: CriticalPath, perfetto: Path | None, graphviz: Path | None) -> list[str]:
    """Write the files asked for and return what to say of each."""
    said = []
    if perfetto is not None:
        said.append(str(path.to_perfetto(perfetto)))
    if graphviz is not None:
        from htagraph.output.export.graphviz import draw

        said.append(f"{draw(path, graphviz)}: a picture of the path")
    return said


def report(path: CriticalPath, inputs: Sequence[str], *, top: int = 10, segments: bool = False) -> Report:
    """Return the report on a path; `inputs` are the words that choose what is read."""
    from htagraph.output.report import report_on

    whole = path.summary()
    shares = whole.groupby("group", sort=False).head(top).reset_index(drop=True)
    tables = {"shares": shares, "hops": path.hops(), "near": path.near(top)}
    if segments:
        tables["segments"] = path.to_frame()
    figures = {"makespan_us": path.makespan_ns / 1000, "segments_count": len(path.segments)}
    return report_on(
        path.graph, "critical-path", tables, _sentences(path, whole, tables, inputs),
        figures=figures, brief=_brief(path, tables, top),
    )  # fmt: skip


def _brief(path: CriticalPath, tables: dict[str, pd.DataFrame], top: int) -> dict[str, pd.DataFrame]:
    """Return one table per group of shares, hops by pair of ranks, ways without the numbers of activities."""
    shares = tables["shares"]
    brief = {}
    for group in ("category", "rank", "operator", "kernel"):
        mine = shares[shares["group"] == group].drop(columns="group").rename(columns={"key": group})
        if group != "rank" or len(path.graph.ranks) > 1:
            brief[f"path_{group}"] = mine[mine[group] != "none"]
    hops = tables["hops"]
    if len(hops):
        pairs = hops.groupby(["from_rank", "to_rank"], as_index=False)
        brief["hops"] = pairs.agg(count=("at_us", "size"), waited_us=("waited_us", "sum")).nlargest(top, "count")
    near = tables["near"]
    brief["near"] = near[["slack_us", "work_us", "rank", "main"]]
    if "segments" in tables:
        columns = ["start_us", "duration_us", "rank", "category", "name", "operator", "edge", "gap"]
        brief["segments"] = tables["segments"][columns]
    return brief


def _sentences(
    path: CriticalPath, whole: pd.DataFrame, tables: dict[str, pd.DataFrame], inputs: Sequence[str]
) -> list[str]:
    if not path.makespan_ns:
        return ["Nothing was recorded: there is no path."]
    by_category = whole[whole["group"] == "category"]
    parts = [
        f"{category_words(key)} {share:.0f} %"
        for key, share in zip(by_category["key"], by_category["share_percent"], strict=True)
        if share >= _FEW
    ]
    total = time_text(path.makespan_ns / 1000)
    return [
        f"The path is {total} long: {and_list(parts)}." if parts else f"The path is {total} long, of many small parts.",
        *_where(path, whole, tables["hops"], inputs),
        *_saving(path, whole, inputs),
    ]


def _where(path: CriticalPath, whole: pd.DataFrame, hops: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Say on which rank the path lies, and whether others are waited for."""
    if len(path.graph.ranks) < 2:
        return []
    first = whole[whole["group"] == "rank"].iloc[0]
    said = f"It lies on rank {first['key']} for {first['share_percent']:.0f} %"
    if not len(hops):
        return [f"{said}: it waits for no other rank."]
    why = command_line("stragglers", inputs)
    return [f"{said} and changes rank {plural(len(hops), 'time')}, wherever one rank waited for another; why: {why}"]


def _saving(path: CriticalPath, whole: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Say what the largest part could save at most, and how to predict what it really would."""
    first = whole[whole["group"] == "category"].iloc[0]
    category, time = str(first["key"]), float(first["time_us"])
    what = category_words(category)
    if category in _HALVED:
        name, time = (what, time) if category == "communication" else _longest(path, category)
        options = ["--network", "0.5"] if name == what else ["--scale", f"{criteria_text({'name': glob_of(name)})}:0.5"]
        percent = 50 * time / (path.makespan_ns / 1000)
        said = f"Halving {name} would save at most {time_text(time / 2)} ({percent:.0f} %); simulated, the whole job"
    elif category in _REMEDY:  # these take away more than their category: what is at most saved is not known
        said, options = f"Without {what} the whole job, simulated,", list(_REMEDY[category])
    else:
        return [f"Most of it is {what}: nothing to speed up by itself; see what precedes it with --segments."]
    line = command_line("what-if", inputs, *options)
    return [f"{said} {_predicted(path, options)}.", f"To try it together with other changes: {line}"]


def _predicted(path: CriticalPath, options: list[str]) -> str:
    """Return in words what a change would really save: less than its time where something else is in the way then."""
    from htagraph.core.errors import SelectionError
    from htagraph.whatif.what_if import what_if

    option, *value = options
    try:
        outcome = CHANGES[option.removeprefix("--")].read("".join(value)).apply(what_if(path.graph)).run()
    except SelectionError as error:
        return f"cannot be told: {error}"
    if outcome.saved_ns <= 0:
        return "would not be shorter, for something else is in the way then"
    percent = 100 * outcome.saved_ns / outcome.baseline_ns
    return f"would be shorter by {time_text(outcome.saved_ns / 1000)} ({percent:.0f} %)"


def _longest(path: CriticalPath, category: str) -> tuple[str, float]:
    """Return (short name, µs) of the work of a category that has most of the path."""
    from htagraph.core.naming import short_name

    table = path.to_frame()
    mine = table[table["category"] == category].groupby("name")["duration_us"].sum()
    by_name = mine.groupby([short_name(str(name)) for name in mine.index]).sum()
    return str(by_name.idxmax()), float(by_name.max())
