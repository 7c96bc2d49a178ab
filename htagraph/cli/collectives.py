"""``htagraph collectives``: waiting, transfer and bandwidth of what ranks do together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["collectives", "report"]

_MUCH = 0.5


def collectives(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 20,
    each: Annotated[bool, typer.Option("--each", help="Print every rank's part in every collective.")] = False,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """How long ranks wait for each other in collectives, how long transfers take, and at which bandwidth."""
    graph = read(paths, ranks, steps)
    from htagraph.analyses.collectives import collectives as parts_of

    show(report(graph, parts_of(graph), given(paths, ranks, steps), top=top, each=each), form, output, paths)


def report(
    graph: DependencyGraph, parts: pd.DataFrame, inputs: Sequence[str], *, top: int = 20, each: bool = False
) -> Report:
    """Return the report on the parts of `htagraph.collectives`; `inputs` are the words that choose what is read."""
    from htagraph.output.report import report_on

    table = by_operation(parts).head(top)
    tables = {"collectives": table}
    brief = {"collectives": table.drop(columns="algbw_gb_s")}
    late = _last(parts)
    if len(late):
        tables["last_arrivals"] = brief["last_arrivals"] = late
    if each:
        tables["parts"] = parts
        brief["parts"] = parts[[
            "collective", "op", "group", "rank", "step", "start_us", "duration_us", "wait_us", "transfer_us",
            "excess_us", "busbw_gb_s", "last_rank",
        ]]  # fmt: skip
    return report_on(graph, "collectives", tables, _sentences(parts, inputs), brief=brief)


def by_operation(parts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per operation and process group, that with most time first.

    Returns:
        ``op``, ``group`` (str), ``matched`` (bool: between ranks), ``collectives`` (int64; parts where not matched),
        ``ranks`` (int64: that took part), ``total_us``, ``wait_us``, ``transfer_us``, ``excess_us`` (float64: summed
        over all parts), ``mean_bytes``, ``algbw_gb_s``, ``busbw_gb_s`` (float64: medians of the parts).
    """
    from htagraph.core.naming import collective_op, short_name

    named = parts.assign(
        op=[op or collective_op(name) or short_name(name) for op, name in zip(parts["op"], parts["name"], strict=True)],
        number=parts["collective"].where(parts["matched"], -2 - parts.index.to_numpy()),
    )
    table = named.groupby(["op", "group", "matched"], as_index=False, sort=False).agg(
        collectives=("number", "nunique"), ranks=("rank", "nunique"), total_us=("duration_us", "sum"),
        wait_us=("wait_us", "sum"), transfer_us=("transfer_us", "sum"), excess_us=("excess_us", "sum"),
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


def _sentences(parts: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    if not len(parts):
        return ["No collective was recorded: the ranks do not talk to each other here."]
    total, sums = float(parts["duration_us"].sum()), parts[["wait_us", "transfer_us", "excess_us"]].sum()
    share = {str(word).removesuffix("_us"): float(us) / (total or 1.0) for word, us in sums.items()}
    said = (
        f"All ranks together spend {time_text(total)} in collectives: {100 * share['wait']:.0f} % waiting for the last "
        f"to arrive, {100 * share['transfer']:.0f} % transferring, {100 * share['excess']:.0f} % more than the fastest "
        "transfer of the kind needed."
    )
    return [said, *_next(share, parts, inputs), *_unmatched(parts)]


def _next(share: dict[str, float], parts: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    late = _last(parts)
    if share["wait"] >= _MUCH / 2 and len(late):
        rank, us = int(late.iloc[0]["last_rank"]), float(late.iloc[0]["waited_us"])
        count = plural(int(late.iloc[0]["collectives"]), "collective")
        why = command_line("stragglers", inputs)
        return [f"Rank {rank} came last in {count}, which cost the others {time_text(us)}; why: {why}"]
    if share["transfer"] >= _MUCH:
        line = command_line("what-if", inputs, "--network", "0.5")
        return [f"Transfers prevail; what a network twice as fast gives: {line}"]
    return []


def _unmatched(parts: pd.DataFrame) -> list[str]:
    alone = int((~parts["matched"]).sum())
    if not alone:
        return []
    return [
        f"{plural(alone, 'part')} of {len(parts):,} could not be matched between ranks (the others were not read, or "
        "the trace does not say which belong together): waiting looks like excess there."
    ]
