"""What ranks do together, and what decides the job's end: collectives, stragglers, critical path, changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from htagraph.core.naming import collective_op, short_name, step_number
from htagraph.core.tables import Col, Table
from htagraph.findings.finding import JUDGES, MEASURES, PREDICTS
from htagraph.findings.limits import MIN_SHARE
from htagraph.findings.phrases import NO_OPERATOR, Suggestion, command_line, group_words, share_text, untraced_before
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import gain_steps, usual_step_ns
from htagraph.output.report import Report, drawn, gives, report_on, top_rows
from htagraph.output.reports.listed_changes import listed_changes
from htagraph.queries.on_workers import UPPER_BOUND
from htagraph.queries.paths import CriticalPath

if TYPE_CHECKING:
    from htagraph.findings.changes import ProposedChanges
    from htagraph.findings.plan import BestChanges

__all__ = [
    "collectives_report",
    "critical_path_report",
    "opportunity_titles",
    "path_titles",
    "plan_report",
    "stragglers_report",
    "with_steps",
]  # fmt: skip

BY_OPERATION = Table(
    "Collectives, times summed over all ranks",
    Col("op group", "str"),
    Col("matched", "bool", "whether the collectives are matched between ranks"),
    Col("collectives", "int64", "number of collectives; of their parts, where not matched"),
    Col("ranks", "int64", "number of ranks that took part"),
    Col("total_us beside_us wait_us transfer_us excess_us wait_or_transfer_us", doc="summed over all parts"),
    Col("total_bytes", doc="bytes of all parts whose size is known"),
    Col("mean_bytes", doc="mean of the parts"),
    Col("algbw_gb_s busbw_gb_s", doc="medians of the parts"),
    rank_by="total_us",
)
_LAST = Table("Last arrivals by rank", Col("last_rank collectives", "int64"), Col("waited_us"), rank_by="waited_us")
_CAUSES = Table(
    "Wait time by cause", Col("charged_rank", "int64"), Col("cause", "str"), Col("wait_us"), Col("waits", "int64"),
    rank_by="wait_us",
)  # fmt: skip


_UNKNOWN_SIZES = {"transfer_us": "sure_transfer_us", "excess_us": "not_known_us"}
"""What readers see above columns of collectives whose sizes were not recorded."""


@gives(
    "collectives",
    {"collectives": BY_OPERATION, "last_arrivals": _LAST, "parts": "analyses.collectives.TABLE"},
    maybe=("last_arrivals", "parts"),
    rests_on=MEASURES,
)  # fmt: skip
def collectives_report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 20, each: bool = False) -> Report:
    """Return the report on a job's collectives; `inputs` are the words that choose what is read."""
    from htagraph.analyses.collectives import collectives
    from htagraph.findings.verbs import ranks as findings
    from htagraph.queries.blame import blame_of, chains_of
    from htagraph.queries.device_record import collective_calls
    from htagraph.queries.straggler import charged_to_nobody
    from htagraph.whatif.scenario import what_if

    parts = collectives(graph)
    table = BY_OPERATION.ranked(summed_by_operation(parts).drop(columns="parts")).head(top)
    tables = {"collectives": table}
    empty = [part for part in ("beside_us", "wait_or_transfer_us") if not table[part].any()]
    renamed = _UNKNOWN_SIZES if findings.are_sizes_unknown(parts) else {}
    brief = {"collectives": _readable(table.drop(columns=["algbw_gb_s", *empty])).rename(columns=renamed)}
    # how often each rank came last, and how long the others then waited
    met = parts[parts["matched"] & (parts["rank"] != parts["last_rank"])].groupby("last_rank", as_index=False)
    late = _LAST.ranked(met.agg(collectives=("collective", "nunique"), waited_us=("wait_us", "sum")))
    if len(late):
        tables["last_arrivals"], brief["last_arrivals"] = late, top_rows(late, top)
    if each:
        tables["parts"] = parts
        brief["parts"] = _readable(parts)[[
            "collective", "op", "group", "rank", "step", "start_us", "duration_us", "beside_us", "wait_us",
            "transfer_us", "excess_us", "wait_or_transfer_us", "busbw_gb_s", "last_rank",
        ]].drop(columns=empty).rename(columns=renamed)  # fmt: skip
    nobody_us = sum(charged_to_nobody(blame_of(graph, chains_of(graph))).values()) if len(late) else 0.0
    conclusions = findings.collectives_sentences(
        parts,
        late,
        inputs,
        nobody_us,
        lambda: what_if(graph).scale_network(factor=0.5).run(),
        {} if len(parts) else collective_calls(graph),
    )
    return report_on(graph, "collectives", tables, conclusions, brief=brief, plot=lambda: drawn("collectives", parts))


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with short names of process groups, unless some would be alike."""
    short = table["group"].map(group_words).str.removeprefix("process group ")
    return table.assign(group=short) if short.nunique() == table["group"].nunique() else table


def _known_sum(sizes: pd.Series) -> float:
    """Return the sum of the known sizes; NaN where none is known."""
    return float(sizes.sum(min_count=1))


def summed_by_operation(parts: pd.DataFrame, *, sort: bool = False) -> pd.DataFrame:
    """Return one row per operation and process group of the result of `htagraph.collectives`, with the number of parts.

    Rows are in the order of the parts, or of the names.
    """
    named = parts.assign(
        op=[op or collective_op(name) or short_name(name) for op, name in zip(parts["op"], parts["name"], strict=True)],
        number=parts["collective"].where(parts["matched"], -2 - parts.index.to_numpy()),
    )
    return named.groupby(["op", "group", "matched"], as_index=False, sort=sort).agg(
        parts=("rank", "size"), collectives=("number", "nunique"), ranks=("rank", "nunique"),
        total_us=("duration_us", "sum"), beside_us=("beside_us", "sum"), wait_us=("wait_us", "sum"),
        transfer_us=("transfer_us", "sum"), excess_us=("excess_us", "sum"),
        wait_or_transfer_us=("wait_or_transfer_us", "sum"),
        total_bytes=("bytes", _known_sum), mean_bytes=("bytes", "mean"),
        algbw_gb_s=("algbw_gb_s", "median"), busbw_gb_s=("busbw_gb_s", "median"),
    )  # fmt: skip


@gives(
    "stragglers",
    {"stragglers": "analyses.stragglers.TABLE", "causes": _CAUSES},
    figures=(Col("straggler", "int64?"), Col("total_wait_us")),
    rests_on=MEASURES, concludes=("stragglers", "causes", "straggler", "total_wait_us"),
)  # fmt: skip
def stragglers_report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on a job's stragglers; `inputs` are the words that choose what is read."""
    from htagraph.analyses.stragglers import TABLE, stragglers
    from htagraph.findings.interrupted import INTERRUPTED
    from htagraph.findings.ranks_missing import RANKS_MISSING
    from htagraph.findings.results import Results
    from htagraph.findings.slow_stage import SLOW_STAGE
    from htagraph.findings.verbs import ranks as findings
    from htagraph.findings.verdict import claims_of, sentences

    result = stragglers(graph)
    table = TABLE.ranked(result.to_frame())
    blame = result.blame.groupby(["charged_rank", "cause"], as_index=False)
    causes = _CAUSES.ranked(blame.agg(wait_us=("wait_us", "sum"), waits=("wait_us", "size")))
    tables = {"stragglers": table, "causes": causes}
    columns = ["rank", "blamed_us", "share_percent", "waits_us", "lateness_us", "late_count", "cause", "cause_name"]
    shown = table[columns].rename(columns={"cause_name": "name"})
    brief = {"stragglers": top_rows(shown, top), "causes": top_rows(causes, top)}
    results = Results(graph, slow=result)
    stages = claims_of(results, [SLOW_STAGE])
    others = claims_of(results, [RANKS_MISSING, INTERRUPTED]) if len(graph.ranks) > 1 else []
    conclusions = [
        *findings.stragglers_sentences(result, len(graph.ranks), inputs),
        *(findings.causes_in_words(result) if len(graph.ranks) > 1 else []),
        *sentences(stages),
        *findings.shares_command(stages, inputs),
        *sentences(others),
    ]
    figures = {"straggler": result.straggler, "total_wait_us": result.total_wait_us}
    return report_on(
        graph, "stragglers", tables, conclusions, figures=figures, brief=brief if len(graph.ranks) > 1 else {},
        plot=result.plot,
    )  # fmt: skip


@gives(
    "critical-path",
    {
        "shares": "queries.paths.SHARES", "host": "queries.host_time.PAUSES", "hops": "queries.paths.HOPS",
        "near": "queries.paths.NEAR", "segments": "queries.paths.SEGMENTS",
    },
    maybe=("segments",),
    figures=(Col("makespan_us"), Col("segments_count", "int64")),
    titles={
        "path_category": "Critical path by category", "path_rank": "Critical path by rank",
        "path_operator": "Critical path by operator", "path_kernel": "Critical path by kernel",
        "path_host": "The host's part of the critical path, by what ran and where (own time)",
    },
    rests_on=JUDGES,
)  # fmt: skip
def critical_path_report(
    path: CriticalPath,
    inputs: Sequence[str],
    *,
    top: int = 10,
    segments: bool = False,
    full: bool = True,
) -> Report:
    """Return the report on a path; `inputs` are the words that choose what is read.

    Readers see all tables in full, else as many as fit a screen.
    """
    from htagraph.findings.changes import changes_of
    from htagraph.findings.results import Results
    from htagraph.findings.verbs import gains as findings
    from htagraph.findings.verdict import claims_of
    from htagraph.queries.host_time import host_pauses

    whole, results = path.summary(), Results(path.graph, path=path)
    claims = claims_of(results, findings.OF_PATH)
    shares = whole.groupby("group", sort=False).head(top).reset_index(drop=True)
    tables = {"shares": shares, "host": host_pauses(path, top), "hops": path.hops(), "near": path.near(top)}
    if segments:
        tables["segments"] = path.to_frame()
    figures = {"makespan_us": path.makespan_ns / 1000, "segments_count": len(path.segments)}
    first = changes_of(results).first if results.is_whole else None
    said = findings.path_sentences(path, claims, first, tables["hops"], inputs, is_whole=results.is_whole)
    brief = _brief_path(path, whole, tables, top)
    more = ""
    if not full:
        brief = {name: top_rows(table, max(1, top // 2)) for name, table in brief.items() if name in _ON_A_SCREEN}
        more = Suggestion("All tables", command_line("critical-path", inputs, "--full"))
    return report_on(
        path.graph, "critical-path", tables, said,
        figures=figures, brief=brief, plot=path.plot, titles=path_titles(path), more=more,
    )  # fmt: skip


_ON_A_SCREEN = frozenset({"path_category", "path_rank", "path_operator", "path_kernel", "segments"})
"""Tables of a path that readers see unless they ask for all, half as many rows of each."""


def path_titles(path: CriticalPath) -> dict[str, str]:
    """Return the titles of a path's shares that name the scope of the shares; none where steps are nearly all of it."""
    scope = time_before_steps(path.graph, path.window)
    if not scope:
        return {}
    groups = ("category", "rank", "operator", "kernel")
    return {f"path_{group}": f"Critical path by {group} ({scope})" for group in groups}


def time_before_steps(graph: DependencyGraph, window: tuple[int, int]) -> str:
    """Return which share of a window lies before the first step, in words; empty where little does.

    Args:
        graph: the job.
        window: first and last moment, ns on the common clock.

    Returns:
        The scope of percentages of the window; empty below 5 % and without steps.
    """
    if not len(graph.step_spans):
        return ""
    first_ns, last_ns = window
    first_step_ns = int(graph.time[graph.step_spans.start].min())
    before_ns = min(first_step_ns, last_ns) - first_ns
    if before_ns <= MIN_SHARE * (last_ns - first_ns):
        return ""
    return f"of the whole recording, {share_text(100 * before_ns / (last_ns - first_ns))} of it before the first step"


def _brief_path(
    path: CriticalPath, whole: pd.DataFrame, tables: dict[str, pd.DataFrame], top: int
) -> dict[str, pd.DataFrame]:
    """Return one table per group of all shares, hops by pair of ranks, near paths without activity numbers.

    Categories have the words that sentences use.
    """
    from htagraph.findings.verbs.gains import category_words

    brief = {}
    for group in ("category", "rank", "operator", "kernel"):
        rows = _steps_as_one(whole) if group == "operator" else whole
        rows = rows[rows["group"] == group].drop(columns="group").head(top)
        rows = rows.rename(columns={"key": group, "count": "segments"})
        if group != "rank" or len(path.graph.ranks) > 1:
            brief[f"path_{group}"] = rows[rows[group] != "none"]
    words = category_words(path)
    brief["path_category"] = brief["path_category"].assign(category=brief["path_category"]["category"].map(words))
    host = tables["host"]
    if len(host):  # one column says what ran, or what untraced code came before
        what = host["what"].where(host["what"] != "", untraced_before(host["before"]))
        brief["path_host"] = host.drop(columns=["before", "after", "activity"]).assign(what=what).replace("", "-")
    hops = tables["hops"]
    if len(hops):
        pairs = hops.groupby(["from_rank", "to_rank"], as_index=False)
        brief["hops"] = pairs.agg(hops=("at_us", "size"), waited_us=("waited_us", "sum")).nlargest(top, "hops")
    brief["near"] = tables["near"][["slack_us", "work_us", "rank", "main"]]
    if "segments" in tables:
        columns = ["start_us", "duration_us", "rank", "category", "name", "operator", "edge", "gap"]
        brief["segments"] = tables["segments"][columns].replace("", "-")
    return brief


def _steps_as_one(shares: pd.DataFrame) -> pd.DataFrame:
    """Return shares of a path with one row for the time in steps but in no operator, in place of one per step."""
    in_step = (shares["group"] == "operator") & shares["key"].map(step_number).notna()
    named = shares.assign(key=shares["key"].mask(in_step, NO_OPERATOR))
    sums = named.groupby(["group", "key"], as_index=False, sort=False).sum()
    return sums.sort_values("time_us", ascending=False, kind="stable")


_TOP = 10
"""Opportunities that all findings look at. Chosen: about as many as a person reads. Doubled, each list takes longer."""


@gives(
    "plan",
    {
        "proposed": "findings.changes.TABLE", "opportunities": "whatif.opportunities.TABLE",
        "plan": "findings.plan.TABLE", "curve": "findings.plan.CURVE",
    },
    maybe=("opportunities",),
    figures=(
        Col("first", "any", maybe=True),
        Col("changes", "list"),
        Col("saved_us"),
        Col("low_us high_us"),
        Col("per_step", "bool"),
        Col("how", "str"),
        Col("among", "int64"),
    ),
    rests_on=PREDICTS,
    concludes=("changes", "proposed", "opportunities", "plan", "curve", "saved_us", "low_us", "high_us"),
)  # fmt: skip
def plan_report(
    graph: DependencyGraph, inputs: Sequence[str], *, top: int = _TOP, budget: int | None = None, full: bool = False
) -> Report:
    """Return the report on what to change.

    Args:
        graph: the job.
        inputs: the words that choose what is read.
        top: rows of a table that are shown.
        budget: how many changes the best set has at most; without a number, the list of all changes comes with the
            best three.
        full: whether readers are shown all tables and sentences.
    """
    if budget is not None:
        return _set_report(graph, inputs, top, budget)
    return _list_report(graph, inputs, top, full=full)


def _set_report(graph: DependencyGraph, inputs: Sequence[str], top: int, budget: int) -> Report:
    """Return the report on the changes that save most together."""
    from htagraph.findings.changes import ProposedChanges
    from htagraph.findings.plan import plan

    result = plan(graph, budget=budget)
    proposed = ProposedChanges(result.proposed)
    tables = {"proposed": proposed.to_frame(), "plan": result.changes, "curve": result.curve}
    figures = {"changes": _for_programs(proposed), **_figures_of(result)}
    return report_on(
        graph, "plan", tables, result.sentences(inputs), figures=figures, brief=_brief_plan(result, top),
        plot=lambda: drawn("plan", result), titles=result.titles,
    )  # fmt: skip


def _list_report(graph: DependencyGraph, inputs: Sequence[str], top: int, *, full: bool) -> Report:
    """Return the report on all changes, on what is worth improving, and on the best set of changes."""
    from htagraph.findings.changes import changes_of
    from htagraph.findings.plan import plan_of
    from htagraph.findings.results import Results
    from htagraph.findings.verbs import gains as findings
    from htagraph.findings.verdict import claims_of
    from htagraph.whatif.opportunities import opportunities

    results = Results(graph)
    if top > _TOP:
        results.opportunities = opportunities(results.warm_graph, top=results.wide * top)
    table = results.opportunities.head(top)
    found = changes_of(results, exact=True)
    best = plan_of(results)
    conclusions = claims_of(results, findings.CONCLUSIONS)
    most_percent = float(table["gain_percent"].max()) if len(table) else 0.0
    said = findings.plan_sentences(conclusions, found, best, inputs, most_percent)
    listed = listed_changes(found, results.warm_graph)
    brief = {"proposed": listed.frame}
    if full:
        brief |= {"opportunities": with_steps(table, results.warm_graph), **_brief_plan(best, top)}
    more = Suggestion("All tables, and what bounds the job", command_line("plan", inputs, "--full"))
    return report_on(
        graph,
        "plan",
        {"proposed": found.to_frame(), "opportunities": table, "plan": best.changes, "curve": best.curve},
        said.sentences,
        figures={
            "first": found.first.to_dict() if found.first else None,
            "changes": _for_programs(found),
            **_figures_of(best),
        },
        brief=brief,
        plot=lambda: drawn("plan", best) if len(best.changes) else drawn("opportunities", table),
        titles=opportunity_titles(graph) | best.titles | {"proposed": listed.title},
        details=frozenset() if full else said.details,
        second=said.second,
        more="" if full else more,
    )


def _for_programs(changes: ProposedChanges) -> list[dict[str, Any]]:
    """Return proposed changes as JSON has them: ``change``, ``gain_us``, ``scope`` and ``text``."""
    return [change.to_dict() for change in changes]


def _figures_of(best: BestChanges) -> dict[str, Any]:
    """Return the single results of a set of changes."""
    low, high = best.interval_us
    return {
        "saved_us": best.saved_us, "low_us": low, "high_us": high, "per_step": best.per_step, "how": best.how,
        "among": best.among,
    }  # fmt: skip


def _brief_plan(best: BestChanges, top: int) -> dict[str, pd.DataFrame]:
    """Return the tables of a set of changes that a reader is shown."""
    return {"plan": top_rows(best.changes.drop(columns="options"), top), "curve": best.curve.drop(columns="which")}


def opportunity_titles(graph: DependencyGraph) -> dict[str, str]:
    """Return the title of opportunities that names the scope of gains and times, where start-up or earlier work is."""
    scope = time_before_steps(graph, (int(graph.time.min()), int(graph.time.max()))) if len(graph.time) else ""
    if len(graph.start_up):
        scope = "of the time without start-up"
    return {"opportunities": f"Opportunities, by the largest possible gain ({scope})"} if scope else {}


def with_steps(table: pd.DataFrame, graph: DependencyGraph | None) -> pd.DataFrame:
    """Return what a reader wants to see of opportunities: of the whole recording, and what a usual step gains."""
    pairs = zip(table["what"], table["name"], strict=True)
    names = [group_words(name).replace(" (", ", ").rstrip(")") if what == "group" else name for what, name in pairs]
    shown = table[["what", "name", "time_us", "critical_us", "gain_us", "gain_at_50_us", "gain_percent"]].copy()
    if UPPER_BOUND.names in table:
        shown[UPPER_BOUND.names] = table[UPPER_BOUND.names]
    if len(set(names)) == len(set(table["name"])):
        shown["name"] = names
    if graph is not None and gain_steps(graph) > 1:
        shown["gain_per_step_us"] = table["gain_per_step_us"]
        shown["gain_per_step_percent"] = 100_000 * table["gain_per_step_us"] / usual_step_ns(graph, graph.time)
    return shown.rename(columns={"gain_at_50_us": "gain_if_halved_us"})
