"""``htagraph collectives``: waiting, transfer and bandwidth of what ranks do together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Drawn
from htagraph.output.wording import collectives as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["collectives", "report"]


def collectives(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 20,
    each: Annotated[bool, typer.Option("--each", help="Print every rank's part in every collective.")] = False,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """How long ranks wait for each other in collectives, how long transfers take, and at which bandwidth."""
    graph = read(paths, ranks, steps)
    from htagraph.analyses.collectives import collectives as parts_of

    parts = parts_of(graph)
    show(report(graph, parts, given(paths, ranks, steps), top=top, each=each), form, output, paths, lambda: parts)


def report(
    graph: DependencyGraph, parts: pd.DataFrame, inputs: Sequence[str], *, top: int = 20, each: bool = False
) -> Report:
    """Return the report on the parts of `htagraph.collectives`; `inputs` are the words that choose what is read."""
    from htagraph.findings.interrupted import interruption_note
    from htagraph.findings.verbs import collectives as findings
    from htagraph.output.report import Wording, report_on

    table = by_operation(parts).head(top)
    tables = {"collectives": table}
    empty = [part for part in ("beside_us", "wait_or_transfer_us") if not table[part].any()]
    brief = {"collectives": _readable(table.drop(columns=["algbw_gb_s", *empty]))}
    late = _last(parts)
    if len(late):
        tables["last_arrivals"] = brief["last_arrivals"] = late
    if each:
        tables["parts"] = parts
        brief["parts"] = _readable(parts)[[
            "collective", "op", "group", "rank", "step", "start_us", "duration_us", "beside_us", "wait_us",
            "transfer_us", "excess_us", "wait_or_transfer_us", "busbw_gb_s", "last_rank",
        ]].drop(columns=empty)  # fmt: skip
    conclusions = [*findings.sentences(parts, late, inputs), *interruption_note(graph, inputs)]
    return report_on(
        graph, "collectives", tables, conclusions, brief=brief,
        wording=Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with short names of process groups, unless some would be alike."""
    from htagraph.findings.verbs import collectives as findings

    short = table["group"].map(findings.group_text)
    return table.assign(group=short) if short.nunique() == table["group"].nunique() else table


def by_operation(parts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per operation and process group, that with most time first.

    Returns:
        ``op``, ``group`` (str), ``matched`` (bool: between ranks), ``collectives`` (int64; parts where not matched),
        ``ranks`` (int64: that took part), ``total_us``, ``beside_us``, ``wait_us``, ``transfer_us``, ``excess_us``,
        ``wait_or_transfer_us`` (float64: summed over all parts), ``mean_bytes``, ``algbw_gb_s``, ``busbw_gb_s``
        (float64: medians of the parts).
    """
    from htagraph.core.naming import collective_op, short_name

    named = parts.assign(
        op=[op or collective_op(name) or short_name(name) for op, name in zip(parts["op"], parts["name"], strict=True)],
        number=parts["collective"].where(parts["matched"], -2 - parts.index.to_numpy()),
    )
    table = named.groupby(["op", "group", "matched"], as_index=False, sort=False).agg(
        collectives=("number", "nunique"), ranks=("rank", "nunique"), total_us=("duration_us", "sum"),
        beside_us=("beside_us", "sum"), wait_us=("wait_us", "sum"), transfer_us=("transfer_us", "sum"),
        excess_us=("excess_us", "sum"), wait_or_transfer_us=("wait_or_transfer_us", "sum"),
        mean_bytes=("bytes", "mean"), algbw_gb_s=("algbw_gb_s", "median"), busbw_gb_s=("busbw_gb_s", "median"),
    )  # fmt: skip
    return table.sort_values("total_us", ascending=False, kind="stable").reset_index(drop=True)


def _last(parts: pd.DataFrame) -> pd.DataFrame:
    """Return how often each rank came last, and how long the others then waited."""
    met = parts[parts["matched"] & (parts["rank"] != parts["last_rank"])]
    late = met.groupby("last_rank", as_index=False).agg(
        collectives=("collective", "nunique"), waited_us=("wait_us", "sum")
    )
    return late.sort_values("waited_us", ascending=False, kind="stable").reset_index(drop=True)
