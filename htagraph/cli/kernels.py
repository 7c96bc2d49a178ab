"""``htagraph kernels``: device time by kernel, operator, input shape, module, annotation or rank."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, glob_of, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["By", "kernels", "report"]

_UNEVEN = 1.1
_OUTSIDE = "outside all of them"
_UNKNOWN = "launch not recorded"


class By(str, Enum):
    """What device time is summed up by."""

    NAME = "name"
    RANK = "rank"
    OPERATOR = "operator"
    SHAPE = "shape"
    MODULE = "module"
    ANNOTATION = "annotation"


def kernels(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    by: Annotated[
        By, typer.Option("--by", help="Sum up by kernel, by kernel and rank, or by what launched the kernels.")
    ] = By.NAME,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 20,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Where device time goes: by kernel, across ranks, or by the operator, shape, module or annotation behind it."""
    graph = read(paths, ranks, steps)
    show(report(graph, given(paths, ranks, steps), by=by, top=top), form, output, paths)


def report(graph: DependencyGraph, inputs: Sequence[str], *, by: By = By.NAME, top: int = 20) -> Report:
    """Return the report on a job's device time; `inputs` are the words that choose what is read."""
    from htagraph.core.naming import short_name
    from htagraph.output.report import report_on
    from htagraph.queries.over_ranks import by_class, over_ranks

    table = _table(graph, by)
    if by == By.RANK:
        found, sentences = _most(table, top), _uneven(graph, table, inputs)
        brief = found.drop(columns=["min_us", "max_us", "std_us", "share_percent", "slowest_rank"])
    else:
        brief = found = over_ranks(table).head(top)
        sentences = _sentences(by_class(table) if by == By.MODULE else found, by, inputs)
    outside, unlinked = _outside(graph, found)
    brief = brief.assign(name=brief["name"].map(short_name).replace("", outside))
    shown = {"device_time": brief}
    tables = {"device_time": found} | ({} if by == By.RANK else {"device_time_by_rank": table})
    if by == By.MODULE and (table["kind"] == "module").any():
        tables["module_classes"] = by_class(table)
        shown = {"module_classes": tables["module_classes"].head(top).replace({"name": {"": outside}}), **shown}
    return report_on(graph, "kernels", tables, [*sentences, *unlinked], figures={"by": by.value}, brief=shown)


def _outside(graph: DependencyGraph, found: pd.DataFrame) -> tuple[str, list[str]]:
    """Return (the name of what has no owner, a sentence on device work whose launch is not in the traces)."""
    acts = graph.activities
    lost = acts.on_device & (acts.cause < 0)
    nobodys = found[found["name"] == ""]
    if not len(nobodys) or not lost.any():
        return _OUTSIDE, []
    counts = "device_count" if "device_count" in found else "count"
    count, all_of_them = int(lost.sum()), int(nobodys[counts].sum())
    share = 100 * acts.duration[lost].sum() / acts.duration[acts.on_device].sum()
    said = (
        f"The launch of {count:,} of the works on the device is not in the traces ({share:.0f} % of device time): what "
        "they belong to is unknown. Record longer before the part of interest to have it."
    )
    return (_UNKNOWN if count >= all_of_them else f"{_OUTSIDE}, or {_UNKNOWN}"), [said]


def _table(graph: DependencyGraph, by: By) -> pd.DataFrame:
    from htagraph import analyses

    if by == By.NAME:
        return analyses.kernel_breakdown(graph)
    if by == By.RANK:
        return analyses.kernel_distribution(graph)
    if by == By.MODULE:
        return analyses.module_breakdown(graph)
    if by == By.ANNOTATION:
        return analyses.annotated_kernels(graph, by="annotation").rename(columns={"annotation": "name"})
    return analyses.operator_breakdown(graph, by_shape=by == By.SHAPE)


def _most(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the rows of the kernels with most time, of all ranks."""
    names = table[["kind", "name"]].drop_duplicates().head(top)
    return names.merge(table, on=["kind", "name"])


def _uneven(graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    from htagraph.core.naming import short_name

    work = table[table["kind"] != "communication"]
    slow = work.groupby("rank")["excess_us"].sum().sort_values(ascending=False)
    worst = work[work["rank"] == slow.index[0]].sort_values("excess_us", ascending=False) if len(slow) else work
    if len(graph.ranks) < 2 or not len(worst) or not worst["relative"].iloc[0] >= _UNEVEN:
        return ["No rank is slower than the others in its kernels (communication aside)."]
    row = worst.iloc[0]
    return [
        f"Rank {row['rank']} is the slowest in its kernels: {time_text(float(slow.iloc[0]))} more than the median of "
        f"the ranks, most in {short_name(row['name'])} ({row['relative']:.2f} times the median).",
        f"Whether the others wait for it: {command_line('stragglers', inputs)}",
    ]


def _sentences(found: pd.DataFrame, by: By, inputs: Sequence[str]) -> list[str]:
    from htagraph.core.naming import short_name

    spent = "device_us" if "device_us" in found else "total_us"
    if not len(found) or not found[spent].any():
        return ["There is no device work to sum up."]
    owned = found[found["name"] != ""]
    row = (owned if len(owned) and owned[spent].any() else found).iloc[0]
    what = short_name(row["name"]) or f"work {_OUTSIDE}"
    most = "Of what has an owner, most" if len(owned) < len(found) else "Most"
    spent_text, share = time_text(float(row[spent])), row["share_percent"]
    said = f"{most} device time goes to {what}: {spent_text} over all ranks, {share:.0f} %."
    return [said, *_hints(found, by, inputs)]


def _hints(found: pd.DataFrame, by: By, inputs: Sequence[str]) -> list[str]:
    from htagraph.core.naming import short_name

    if by == By.NAME:
        half = f"name={glob_of(short_name(found['name'].iloc[0]))}:0.5"
        return [f"What half of that would give: {command_line('what-if', inputs, '--scale', half)}"]
    if by == By.OPERATOR:
        return [f"By input shapes: {command_line('kernels', inputs, '--by', 'shape')}"]
    if by == By.SHAPE and not (found["input_dims"] != "").any():
        return ["The traces have no input shapes: record them with record_shapes=True."]
    if by == By.MODULE and not (found["kind"] == "module").any():
        return ["The traces have no frames of modules, annotations stand for them: record them with with_stack=True."]
    if by == By.MODULE:
        return [f"Which operators take it: {command_line('kernels', inputs, '--by', 'operator')}"]
    return []
