"""What proves a finding: rows of results, a chart, where to look in the timeline, and what to try."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from htagraph.analyses.interruptions import interruptions
from htagraph.analyses.launch_stats import launch_stats
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import GapKind
from htagraph.core.naming import short_name, step_number
from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import claim_name
from htagraph.findings.conclusions.warm_up_sentences import is_start_up
from htagraph.findings.phrases import CATEGORY_WORDS, command_line, plural
from htagraph.findings.verbs.critical_path import NO_OPERATOR
from htagraph.output.html.charts import Bar, Part, bars, stacked
from htagraph.output.html.definitions import definition
from htagraph.output.html.page import NOTHING, Html
from htagraph.output.html.proof import MOST_ROWS, Evidence
from htagraph.output.html.results import Results
from htagraph.output.html.tables import table_of
from htagraph.output.html.waits import blocking, idle, straggler, waiting
from htagraph.queries.change_scope import UNTRACED
from htagraph.queries.path_segments import HOST_CATEGORIES
from htagraph.queries.paths import CATEGORIES, CriticalPath
from htagraph.whatif.opportunities import opportunities
from htagraph.whatif.options import criteria

__all__ = ["evidence_of"]

_LEAST_PERCENT = 0.5
"""Percent of the critical path below which a category is a part of the others in its chart; chosen: less is not seen.
Doubled, parts of a pixel or two have no name."""


def evidence_of(claims: Sequence[Claim], results: Results) -> Evidence:
    """Return what proves claims of one kind, which share a sentence.

    Args:
        claims: at least one.
        results: what the report is made of.
    """
    made = _MAKERS.get(claims[0].says)
    evidence = Evidence() if made is None else made(claims, results)
    rows = [row for claim in claims for row in claim.rows]
    if rows and not evidence.href:
        evidence = replace(evidence, href=results.at(rows[0]), look="one of them")
    return evidence


def _bound(claims: Sequence[Claim], results: Results) -> Evidence:
    claim, path = claims[0], results.path
    shares = claim.facts["shares"]
    named = [category for category, share in shares.items() if share >= _LEAST_PERCENT]
    us = path.makespan_ns / 100_000  # of a percent
    parts = [Part(CATEGORY_WORDS[each], each.replace("_", "-"), shares[each] * us) for each in named]
    parts.append(Part("other", "other", sum(share for each, share in shares.items() if each not in named) * us))
    chart = stacked([("critical path", parts)], title="What the critical path is spent on")
    own = HOST_CATEGORIES if claim.about == "host" else (claim.about,)
    chosen = np.isin(path.segments.category, [CATEGORIES.index(each) for each in own])
    _, href, look = _stretches(results, chosen)
    command = command_line("critical-path", results.inputs)
    return Evidence(
        chart, _largest(results, claim.about), href, look, command, meaning=definition(CriticalPath.summary)
    )


def _largest(results: Results, bound: str) -> Html:
    """Return the kernels, or for all else the operators, with most time on the path, and where each has most."""
    group = "kernel" if bound in ("computation", "memory") else "operator"
    shares = results.path.summary()
    rows = shares[(shares["group"] == group) & (shares["key"] != "none")]
    rows = rows.assign(name=[_operator_words(key) for key in rows["key"]])
    sums = rows.groupby("name", as_index=False, sort=False)[["time_us", "share_percent", "count"]].sum()
    names = sums.nlargest(MOST_ROWS, "time_us").rename(columns={"count": "segments"})
    parts = results.path.to_frame()
    own = parts["operator"].map(_operator_words) if group == "operator" else parts["name"].map(short_name)
    links = []
    for name in names["name"]:
        longest = parts.loc[parts.loc[own == name, "duration_us"].idxmax()] if (own == name).any() else None
        links.append("" if longest is None else _stretch(results, longest))
    return table_of(names, caption=f"The {group}s with most time on the critical path", link=links.__getitem__)


def _operator_words(key: str) -> str:
    return NO_OPERATOR if step_number(key) is not None else key


def _stretch(results: Results, row: pd.Series) -> str:
    """Return the address of a segment of the critical path."""
    return results.between(row["start_us"], row["start_us"] + row["duration_us"], int(row["activity"]))


def _stretches(results: Results, chosen: np.ndarray) -> tuple[Html, str, str]:
    """Return the longest stretches of the path among those chosen, as a table and an address, and what is there."""
    graph, parts = results.graph, results.path.segments
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(-parts.length[rows], kind="stable")][:MOST_ROWS]
    if not len(rows):
        return NOTHING, "", ""
    start = (parts.start[rows] - graph.origin_ns) / 1000
    frame = results.rows(parts.activity[rows]).assign(
        start_us=start, duration_us=parts.length[rows] / 1000, rank=graph.activities.rank[parts.place[rows]]
    )
    frame.insert(4, "gap", [_gap_words(gap) for gap in parts.gap[rows].tolist()])
    frame = frame if frame["gap"].any() else frame.drop(columns="gap")
    links = [
        results.between(begin, begin + lasted, int(place))
        for begin, lasted, place in zip(start, frame["duration_us"], parts.place[rows], strict=True)
    ]
    table = table_of(
        frame, caption="The longest of these on the critical path", link=links.__getitem__,
        headings={"duration_us": "on the path_us", "gap": "pause"},
    )  # fmt: skip
    return table, links[0], "the longest stretch of it"


def _gap_words(gap: int) -> str:
    return "" if gap == GapKind.NONE else GapKind(gap).label.replace("_", " ")


def _pauses(claims: Sequence[Claim], results: Results) -> Evidence:
    frame = pd.DataFrame([
        {
            "what": short_name(claim.about) or "untraced code", "inside": short_name(claim.facts["inside"]),
            "rank": claim.facts["rank"], "count": claim.facts["count"], "total_us": claim.facts["total_us"],
            "longest_us": claim.facts["longest_us"], "share_percent": claim.figure,
        }
        for claim in claims
    ])  # fmt: skip
    links = [results.at(claim.rows[0]) for claim in claims]
    table = table_of(frame, caption="On the critical path, summed", link=links.__getitem__)
    chart = bars(
        [
            Bar(row["what"], row["total_us"], href=link)
            for row, link in zip(frame.to_dict("records"), links, strict=True)
        ],
        title="Time on the critical path", color="host",
    )  # fmt: skip
    command = command_line("critical-path", results.inputs)
    return Evidence(chart, table, links[0], "the longest", command, meaning=definition(CriticalPath.to_frame))


def _interrupted(claims: Sequence[Claim], results: Results) -> Evidence:
    table = results.summary.tables["interruptions"]
    longest = table.nlargest(MOST_ROWS, "interrupted_us")
    links = [
        results.between(row["start_us"], row["start_us"] + row["interrupted_us"], int(row["activity"]))
        for row in longest.to_dict("records")
    ]
    by_rank = table.groupby("rank")["interrupted_us"].sum()
    chart = bars(
        [Bar(f"rank {rank}", float(us)) for rank, us in by_rank.items()],
        title="Interrupted in all", color="host",
    )  # fmt: skip
    shown = longest[["rank", "name", "start_us", "interrupted_us", "usual_us"]]
    shown = shown.assign(name=[short_name(name) or "untraced code" for name in shown["name"]])
    return Evidence(
        chart, table_of(shown, caption="The longest interruptions", link=links.__getitem__),
        results.at(claims[0].rows[0]), "the longest", command_line("what-if", results.inputs, "--no-interruptions"),
        meaning=definition(interruptions),
    )  # fmt: skip


def _gains(claims: Sequence[Claim], results: Results) -> Evidence:
    steps = max(claims[0].facts["steps"], 1)
    links = [_most_critical(results, claim) for claim in claims]
    ends = [claim.interval or (claim.figure, claim.figure) for claim in claims]
    rows = [
        Bar(claim_name(claim), claim.figure / steps, (low / steps, high / steps) if high > low else None, link)
        for claim, (low, high), link in zip(claims, ends, links, strict=True)
    ]
    chart = bars(rows, title=f"How much shorter {'a step' if steps > 1 else 'the job'} would be", color="less")
    frame = pd.DataFrame({
        "what": [claim_name(claim) for claim in claims], "gain_us": [claim.figure for claim in claims],
        "low_us": [low for low, _ in ends], "high_us": [high for _, high in ends],
        "half_us": [float(claim.facts.get("half_us", np.nan)) for claim in claims],
    })  # fmt: skip
    headings = {"low_us": "at least_us", "high_us": "at most_us", "half_us": "with half its time_us"}
    table = table_of(frame, caption="Of the whole recording", headings=headings, link=links.__getitem__)
    targets = (number for number, claim in enumerate(claims) if claim.facts["target"] and not is_start_up(claim))
    first = next(targets, None)
    slow = any(claim.facts["what"] == "straggler" for claim in claims)
    trial = ("--fix-straggler", "auto") if slow else ()
    if first is not None:
        trial = ("--scale", f"{claims[first].facts['target']}:0.5")
    return Evidence(
        chart, table, "" if first is None else links[first],
        "" if first is None else f"{claim_name(claims[first])} on the critical path",
        command_line("what-if", results.inputs, *trial) if trial else "", trial, definition(opportunities),
    )  # fmt: skip


def _most_critical(results: Results, claim: Claim) -> str:
    """Return where what a claim is about is on the critical path longest, empty for nowhere."""
    target = claim.facts["target"]
    if not target:
        return ""
    parts = results.path.segments
    which = criteria(target)
    if which.get("kind") in (UNTRACED, [UNTRACED]):  # no activity, but the pauses between some
        return _stretches(results, parts.gap == GapKind.HOST_UNTRACED)[1]
    try:
        chosen = results.graph.select(**which).activities
    except SelectionError:  # of what no activity is
        return ""
    time = np.bincount(parts.activity, parts.length, len(results.graph.activities))[chosen]
    return results.at(int(chosen[time.argmax()])) if len(chosen) and time.max() > 0 else ""


def _launching(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    ranks = results.summary.tables["launches"].to_dict("records")
    words = ("longer than their work", "launch"), ("not longer", "idle")
    rows = [
        (f"rank {row['rank']}", [
            Part(*word, float(count))
            for word, count in zip(words, (row["short"], row["launches"] - row["short"]), strict=True)
        ])
        for row in ranks
    ]  # fmt: skip
    chart = stacked(rows, title="Launch calls, by whether they take longer than the work they start", text=_calls)
    short = launch_stats(results.graph)
    short = short[short["short"]]
    by_name = short.assign(work=short["work_name"].map(short_name)).groupby("work", as_index=False).agg(
        calls=("launch", "nunique"), mean_launch_us=("launch_us", "mean"), mean_work_us=("work_us", "mean"),
        longest=("launch", lambda rows: rows.loc[short.loc[rows.index, "launch_us"].idxmax()]),
    ).nlargest(MOST_ROWS, "calls")  # fmt: skip
    links = [results.at(int(row)) for row in by_name.pop("longest")]
    table = table_of(by_name, caption="What most of these calls start", link=links.__getitem__)
    return Evidence(
        chart, table, links[0] if links else "", "the longest such call",
        command_line("launches", results.inputs), meaning=definition(launch_stats),
    )  # fmt: skip


def _calls(count: float) -> str:
    return plural(round(count), "call")


def _unexplained(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    unexplained = [gap for gap in GapKind if gap.is_unexplained]
    table, href, look = _stretches(results, np.isin(results.path.segments.gap, unexplained))
    parts = results.path.segments
    times = [(gap, float(parts.length[parts.gap == gap].sum()) / 1000) for gap in unexplained]
    rest = results.path.makespan_ns / 1000 - sum(us for _, us in times)
    pieces = [Part(_gap_words(gap), color, us) for (gap, us), color in zip(times, _cycle(), strict=False)]
    chart = stacked([("critical path", [*pieces, Part("explained", "idle", rest)])], title="What nothing explains")
    command = command_line("critical-path", results.inputs, "--segments")
    return Evidence(chart, table, href, look, command, meaning=definition(CriticalPath.to_frame))


def _cycle() -> Iterator[str]:
    return itertools.cycle(("gap", "other", "waiting", "host", "launch"))


def _partly(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    tables, spans = results.summary.tables, results.summary.inputs.set_index("rank")["span_us"]
    busy = tables["temporal_breakdown"]
    busy = busy[busy["executor"] == "device"]
    rows = [
        (f"rank {rank}", [
            Part("first to last device work", "computation", us), Part("host only", "idle", max(spans[rank] - us, 0.0))
        ])
        for rank, us in zip(busy["rank"].tolist(), busy["window_us"].tolist(), strict=True)
    ]  # fmt: skip
    return Evidence(stacked(rows, title="Recorded time of each rank") if rows else NOTHING)


def _clocks(claims: Sequence[Claim], results: Results) -> Evidence:
    del claims
    return Evidence(table=table_of(results.summary.tables["clocks"].head(MOST_ROWS), caption="Clocks of the ranks"))


def _unmatched(claims: Sequence[Claim], results: Results) -> Evidence:
    return Evidence(table=_of_rows(claims, results, "Some of them"), command=command_line("validate", results.inputs))


def _start_up(claims: Sequence[Claim], results: Results) -> Evidence:
    return Evidence(table=_of_rows(claims, results, "First calls on the critical path"))


def _of_rows(claims: Sequence[Claim], results: Results, caption: str) -> Html:
    rows = np.array(claims[0].rows, np.int64)
    links = [results.at(row) for row in claims[0].rows]
    return table_of(results.rows(rows), caption=caption, link=links.__getitem__)


_MAKERS: dict[Says, Callable[[Sequence[Claim], Results], Evidence]] = {
    Says.BOUND: _bound, Says.HOST_PAUSE: _pauses, Says.INTERRUPTED: _interrupted, Says.GAIN: _gains,
    Says.BLOCKING: blocking, Says.STRAGGLER: straggler, Says.SLOW_STAGE: waiting, Says.WAITING: waiting,
    Says.DEVICE_IDLE: idle, Says.SHORT_LAUNCHES: _launching, Says.UNEXPLAINED: _unexplained,
    Says.PARTLY_DEVICE: _partly, Says.UNKNOWN_CLOCKS: _clocks, Says.UNMATCHED: _unmatched,
    Says.START_UP: _start_up,
}  # fmt: skip
