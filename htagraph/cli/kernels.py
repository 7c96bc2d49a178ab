"""``htagraph kernels``: device time by kernel, operator, input shape, module, annotation or rank."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Drawn
from htagraph.output.wording import kernels as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["By", "kernels", "report"]


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
        By,
        typer.Option(
            "--by", metavar="BY", help="Sum up by name, rank, operator, shape, module or annotation that launched it."
        ),
    ] = By.NAME,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 20,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """Where device time goes: by kernel, by rank, or by the operator, shape, module or annotation that launched it."""
    graph = read(paths, ranks, steps)
    show(report(graph, given(paths, ranks, steps), by=by, top=top), form, output, paths, lambda: _table(graph, by))


def report(graph: DependencyGraph, inputs: Sequence[str], *, by: By = By.NAME, top: int = 20) -> Report:
    """Return the report on a job's device time; `inputs` are the words that choose what is read."""
    from htagraph.findings.verbs import kernels as findings
    from htagraph.output.report import Wording, report_on
    from htagraph.queries.on_workers import by_class, over_ranks

    table = _table(graph, by)
    if by == By.RANK:
        rows, sentences = _top_kernels(table, top), findings.slowest_rank(table, len(graph.ranks), inputs)
        brief = rows.drop(columns=["min_us", "max_us", "std_us", "share_percent", "slowest_rank"])
    else:
        brief = rows = over_ranks(table).head(top)
        sentences = findings.top_entry(by_class(table) if by == By.MODULE else rows, by.value, inputs)
    outside, unlinked = _outside(graph, rows, by)
    brief = brief.assign(name=brief["name"].replace("", outside))
    shown = {"device_time": brief}
    tables = {"device_time": rows} | ({} if by == By.RANK else {"device_time_by_rank": table})
    if by == By.MODULE and (table["kind"] == "module").any():
        tables["module_classes"] = by_class(table)
        shown = {"module_classes": tables["module_classes"].head(top).replace({"name": {"": outside}}), **shown}
    return report_on(
        graph, "kernels", tables, [*sentences, *unlinked], figures={"by": by.value}, brief=shown,
        wording=Wording(wording.TITLES),
    )  # fmt: skip


def _outside(graph: DependencyGraph, rows: pd.DataFrame, by: By) -> tuple[str, list[str]]:
    """Return (the name of what has no owner, a sentence on device work whose launch is not in the traces)."""
    from htagraph.findings.verbs import kernels as findings

    acts = graph.activities
    lost = acts.on_device & (acts.cause < 0)
    outside = findings.OUTSIDE.get(by.value, "")
    without_owner = rows[rows["name"] == ""]
    if not len(without_owner) or not lost.any():
        return outside, []
    counts = "device_count" if "device_count" in rows else "count"
    count, all_of_them = int(lost.sum()), int(without_owner[counts].sum())
    whole = float(acts.duration[acts.on_device].sum())
    share = 100 * float(acts.duration[lost].sum()) / whole if whole else float("nan")
    name = findings.UNKNOWN if count >= all_of_them else f"{outside}, or {findings.UNKNOWN}"
    return name, [findings.launch_not_recorded(count, share)]


def _table(graph: DependencyGraph, by: By) -> pd.DataFrame:
    import htagraph as hg

    if by == By.NAME:
        return hg.kernel_breakdown(graph)
    if by == By.RANK:
        return hg.kernel_distribution(graph)
    if by == By.MODULE:
        return hg.module_breakdown(graph)
    if by == By.ANNOTATION:
        return hg.annotated_kernels(graph, by="annotation").rename(columns={"annotation": "name"})
    return hg.operator_breakdown(graph, by_shape=by == By.SHAPE)


def _top_kernels(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the rows of the kernels with most time, of all ranks."""
    names = table[["kind", "name"]].drop_duplicates().head(top)
    return names.merge(table, on=["kind", "name"])
