"""Where the time of devices goes: the reports of idle, kernels, phases and roofline."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.analyses.idle_intervals import TABLE as INTERVALS
from htagraph.core.arrays import Array, occurring
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.naming import is_compiled_region, names_that, short_name
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.core.tables import Col, Table
from htagraph.findings.change import scenario_of
from htagraph.findings.finding import ATTRIBUTES, JUDGES, MEASURES
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.limits import LARGE_SHARE, MAX_LISTED, MIN_PERCENT
from htagraph.findings.phrases import Suggestion, command_line, share_text, untraced_before
from htagraph.findings.results import Results
from htagraph.findings.verbs import device_time as findings
from htagraph.findings.verbs import phases as findings_of_phases
from htagraph.findings.verbs import roofline as findings_of_roofs
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.output.report import Report, drawn, gives, report_on, top_rows
from htagraph.queries.arguments import records_shapes
from htagraph.queries.device_record import device_record
from htagraph.queries.inputs import window_us
from htagraph.queries.on_workers import by_class, over_ranks
from htagraph.queries.phase_regions import phase_regions
from htagraph.queries.waited_for import HOST, LOADER, OUTSIDE, OWN_REASONS
from htagraph.trace.readers import recorder_of
from htagraph.whatif.options import criteria

__all__ = [
    "idle_report",
    "kernels_report",
    "phases_report",
    "roofline_report",
]


class _ReadySource(NamedTuple):
    """A source of data that is always ready."""

    option: str
    """The change, as an option of ``htagraph what-if``."""
    words: str


_SOURCES: Final = {
    LOADER: _ReadySource("--free-dataloader", "a data loader that is never late"),
    OUTSIDE: _ReadySource("--free-outside", "an answer that is always ready"),
}
"""The source without which a device does not wait, by the cause of waits."""
_RUNTIME_CALLS: Final = (
    ActivityKind.LAUNCH,
    ActivityKind.SYNC,
    ActivityKind.RECORD,
    ActivityKind.WAIT,
    ActivityKind.RUNTIME,
)
"""Kinds of calls of a device's runtime."""
_LONG: Final = 1.5
"""Times the median of the other regions of a rank from which a region is named. Chosen: less is the spread of steps.
Doubled, a region of three times the usual length is named first."""
_COMMUNICATING: Final = "record_param_comms"
"""The operator by which PyTorch records every collective."""
_OF_DEVICES: Final = ["busy_us", "idle_percent"]
"""Columns on the device work of a phase."""
_PHASES_FOR_PROGRAMS = ["host_us", "mean_wall_us", "idle_us"]
"""Columns that follow from other columns, or matter less than whole names."""
_ROOFLINE_FOR_PROGRAMS = ["element_bytes", "flop", "bytes", "peak_tflop_s", "peak_gb_s", "tf32", "at_most"]
_FIGURES = {
    **dict.fromkeys(("name", "family"), "kernel_breakdown"), "rank": "kernel_distribution",
    **dict.fromkeys(("operator", "shape", "module"), "module_breakdown"),
}  # fmt: skip
"""Figures of `kernels` by what device time is summed up by."""
_NAME = (Col("kind", "str", maybe=True), Col("name", "str"))
_DURATIONS = (Col("count", "int64", maybe=True), Col("total_us mean_us min_us max_us", maybe=True))
_OWNED = (
    Col("host_us host_self_us", maybe=True),
    Col("device_count", "int64", maybe=True),
    Col("device_us device_total_us", maybe=True),
    Col("input_dims", "str", maybe=True),
)
_UNEVEN = (
    Col("rank", "int64", maybe=True),
    Col("std_us relative spread", maybe=True),
    Col("slowest_rank", "int64", maybe=True),
    Col("excess_us", maybe=True),
)
_RANKS, _SHARE, _MAYBE_SHARE = Col("ranks", "int64", maybe=True), Col("share_percent"), Col("share_percent", maybe=True)
_PAUSES = Table(
    INTERVALS.title,
    *INTERVALS.cols,
    Col("waited_for", "str", "what most of the pause was spent on, such as ``host: cudaMalloc``"),
    rank_by="pause_us",
)


@gives(
    "idle",
    {"waits": "queries.waited_for.TABLE", "streams": "analyses.idle_breakdown.TABLE", "pauses": _PAUSES},
    titles={
        "waits": "What devices waited for while idle, summed over devices; share of the time from first to last work"
    },
    rests_on=JUDGES,
)
def idle_report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on why devices waited; `inputs` are the words that choose the job."""
    from htagraph.findings.verbs import idle as findings
    from htagraph.queries.waited_for import TABLE, waited_for

    streams = hg.idle_breakdown(graph)
    devices = hg.idle_breakdown(graph, by="rank")
    waits = waited_for(graph)
    longest = _longest_pauses(graph, top)
    then = partial(_after_idle, graph, inputs)
    conclusions = findings.idle_sentences(waits, devices, inputs, then, device_record(graph), graph.ranks)
    return report_on(
        graph,
        "idle",
        {"waits": TABLE.ranked(waits), "streams": streams, "pauses": longest},
        conclusions,
        brief={"waits": top_rows(_over_devices(waits), top), "pauses": _device_pauses(graph, top)},
        titles={"pauses": "Longest waits of devices (none of their streams runs anything)"},
        plot=lambda: drawn("idle_breakdown", _by_reason(waits)),
    )


def _device_pauses(graph: DependencyGraph, top: int) -> pd.DataFrame:
    """Return the longest pauses of whole devices, with the main reason of each and the work that ended it."""
    from htagraph.queries.waited_for import reason_of_each

    pauses = graph.device_pauses
    rows = np.argsort(-pauses.length, kind="stable")[:top]
    rows = rows[pauses.length[rows] > 0]
    places = pauses.places[pauses.place[rows]]
    table = pd.DataFrame(
        {
            "rank": places[:, 0],
            "device": places[:, 1],
            "start_us": (pauses.begin[rows] - graph.origin_ns) / 1000,
            "idle_us": pauses.length[rows] / 1000,
            "waited_for": reason_of_each(graph, pauses, rows),
            "next": [short_name(graph.names[name]) for name in graph.activities.name[pauses.after[rows]].tolist()],
        }
    )
    return table if _has_several_devices(pauses.places) else table.drop(columns="device")


def _has_several_devices(places: Array) -> bool:
    """Return whether a rank has several devices; a place begins with the rank and the device."""
    return len(np.unique(places[:, :2], axis=0)) > len(np.unique(places[:, 0]))


def _by_reason(waits: pd.DataFrame) -> pd.DataFrame:
    """Return idle times by rank and reason as `htagraph.plot.idle_breakdown` reads them; late ranks are one reason."""
    is_own = waits["waited_for"].isin(OWN_REASONS)
    reasons = waits.assign(cause=waits["waited_for"].where(is_own, "other ranks"))
    return reasons.groupby(["rank", "cause"], as_index=False).agg(idle_us=("total_us", "sum"))


def _longest_pauses(graph: DependencyGraph, top: int) -> pd.DataFrame:
    """Return the longest pauses of streams with the main reason of each."""
    from htagraph.queries.waited_for import reason_of_each

    longest = hg.idle_intervals(graph, longest=top)
    place = pd.Series(np.arange(len(graph.pauses)), index=graph.pauses.after)
    rows = place.loc[longest["after"].to_numpy()].to_numpy()
    return _PAUSES.frame(longest.assign(waited_for=reason_of_each(graph, graph.pauses, rows)))


def _over_devices(waits: pd.DataFrame) -> pd.DataFrame:
    """Return the reasons why devices waited, summed over devices: the share is of the time of all devices."""
    count = max(1, len(waits[["rank", "device"]].drop_duplicates()))
    names = waits["before"].map(short_name)
    before = ("before " + names).where(names != "", "")
    unnamed = untraced_before(names).where(waits["waited_for"] == HOST, before)
    spent_in = waits["what"].map(short_name).where(waits["what"] != "", unnamed)
    sums = (
        waits.assign(what=spent_in)
        .groupby(["waited_for", "what", "inside"], as_index=False, sort=False)
        .agg(
            ranks=("rank", "nunique"),
            count=("count", "sum"),
            total_us=("total_us", "sum"),
            longest_us=("longest_us", "max"),
            share_percent=("share_percent", "sum"),
        )
    )
    sums = sums.sort_values("total_us", ascending=False, kind="stable", ignore_index=True)
    return sums.assign(share_percent=sums["share_percent"] / count).replace("", "-")


def _after_idle(graph: DependencyGraph, inputs: Sequence[str], cause: str) -> list[str]:
    """Return the change to make against the main reason of waiting, with its gain and its command.

    It is the first change of the list, as of every command. Waits that no change makes shorter have the path of the
    job.
    """
    if {Part.HOST, Part.PEERS} & graph.ledger.lacks:
        return []
    if cause in OWN_REASONS - {HOST, LOADER, OUTSIDE}:
        return [Suggestion("To see what bounds the job", command_line("critical-path", inputs))]
    if cause in _SOURCES:
        source = _SOURCES[cause]
        share = 100 * _gain_without(graph, source.option)
        if share >= MIN_PERCENT:
            command = command_line("what-if", inputs, source.option)
            return [Suggestion(f"With {source.words} the job would be {share_text(share)} shorter", command)]
    from htagraph.findings.changes import changes_of
    from htagraph.findings.verbs.gains import tried

    listed = changes_of(Results(graph))
    return tried(listed.first, inputs)


def _gain_without(graph: DependencyGraph, *options: str) -> float:
    """Return how much shorter the job is by a change, given as its options: 0 to 1."""
    with suppress(SelectionError):  # nothing is changed
        outcome = scenario_of(graph, options).run()
        return outcome.saved_ns / max(outcome.baseline_ns, 1)
    return 0.0


@gives(
    "kernels",
    {
        "device_time": Table(
            "Device time", *_NAME, _RANKS, *_DURATIONS, _SHARE, *_UNEVEN, *_OWNED, rank_by="total_us device_us",
        ),
        "device_time_by_rank": Table(
            "Device time by rank", Col("rank", "int64"), *_NAME, *_DURATIONS, Col("std_us", maybe=True), _MAYBE_SHARE,
            *_OWNED, rank_by="total_us device_us",
        ),
        "module_classes": Table(
            "Device time by module class", *_NAME, _RANKS, *_DURATIONS, _MAYBE_SHARE, *_UNEVEN, *_OWNED,
            rank_by="device_us",
        ),
    },
    maybe=("device_time_by_rank", "module_classes"), figures=(Col("by", "str"),), rests_on=MEASURES,
)  # fmt: skip
def kernels_report(graph: DependencyGraph, inputs: Sequence[str], *, by: str = "name", top: int = 20) -> Report:
    """Return the report on a job's device time."""
    table = _device_time(graph, by)
    if by == "rank":
        most = table[["kind", "name"]].drop_duplicates().head(top)
        rows = most.merge(table, on=["kind", "name"])
        sentences: list[str] = [
            Suggestion("To see whether a rank is slow, beyond chance", command_line("stragglers", inputs))
        ]
        brief = rows.drop(columns=["min_us", "max_us", "std_us", "share_percent", "slowest_rank"])
    else:
        brief = rows = over_ranks(table).head(top)
        brief = _with_collectives(graph, rows)
        sentences = findings.top_entry(
            by_class(table) if by == "module" else brief,
            by,
            inputs,
            partial(_saved_by_half_us, graph),
            recorder_of(graph.traces.values()),
            _calls_us(graph),
        )
        if by == "operator" and rows["name"].iloc[:1].eq(_COMMUNICATING).any():
            sentences.append(Suggestion("To split it into waiting and transfer", command_line("collectives", inputs)))
    outside, unlinked = _outside(graph, rows, by)
    brief = brief.assign(name=brief["name"].replace("", outside))
    shown = {"device_time": brief}
    tables = {"device_time": rows} | ({} if by == "rank" else {"device_time_by_rank": table})
    if by == "module" and (table["kind"] == "module").any():
        tables["module_classes"] = by_class(table)
        shown = {"module_classes": tables["module_classes"].head(top).replace({"name": {"": outside}}), **shown}
    figure = _FIGURES.get(by)
    return report_on(
        graph, "kernels", tables, [*sentences, *unlinked], figures={"by": by}, brief=shown,
        plot=None if figure is None else lambda: drawn(figure, table),
        titles={} if graph.activities.on_device.any() else {"device_time": "Own time on the host (no device work)"},
    )  # fmt: skip


def _with_collectives(graph: DependencyGraph, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose operator of all collectives also has the collectives' names, the most time first."""
    is_communicating = rows["name"] == _COMMUNICATING
    if not is_communicating.any():
        return rows
    times = hg.collectives(graph).groupby("op")["duration_us"].sum().sort_values(ascending=False, kind="stable")
    words = ", ".join(map(str, times.index[:MAX_LISTED]))
    if not words:
        return rows
    return rows.assign(name=rows["name"].mask(is_communicating, f"{words} ({_COMMUNICATING})"))


def _saved_by_half_us(graph: DependencyGraph, wanted: str) -> float:
    """Return how much shorter the job is if the selected work takes half the time, µs; 0 if not worth naming."""
    outcome = hg.what_if(graph).scale(factor=0.5, **criteria(wanted)).run()
    return outcome.saved_ns / 1000 if 100 * outcome.saved_ns >= MIN_PERCENT * outcome.baseline_ns else 0.0


def _calls_us(graph: DependencyGraph) -> float:
    """Return the time of calls of the runtime on ranks without device work: own times of operators leave it out, µs."""
    acts = graph.activities
    with_device = np.isin(acts.rank, occurring(acts.rank[acts.on_device]))
    is_call = of_kinds(acts.kind, _RUNTIME_CALLS) & ~with_device
    return float(acts.duration[is_call].sum()) / 1000


def _outside(graph: DependencyGraph, rows: pd.DataFrame, by: str) -> tuple[str, list[str]]:
    """Return (the name of what has no owner, a sentence on device work whose launch is not in the traces)."""
    acts = graph.activities
    lost = acts.on_device & (acts.cause < 0)
    outside = findings.OUTSIDE.get(by, "")
    without_owner = rows[rows["name"] == ""]
    if not len(without_owner) or not lost.any():
        return outside, []
    counts = "device_count" if "device_count" in rows else "count"
    count, all_of_them = int(lost.sum()), int(without_owner[counts].sum())
    whole = float(acts.duration[acts.on_device].sum())
    share = 100 * float(acts.duration[lost].sum()) / whole if whole else float("nan")
    name = findings.UNKNOWN if count >= all_of_them else f"{outside}, or {findings.UNKNOWN}"
    return name, [findings.launch_not_recorded(count, share)]


def _device_time(graph: DependencyGraph, by: str) -> pd.DataFrame:
    if by == "name":
        return hg.kernel_breakdown(graph)
    if by == "family":
        return hg.kernel_breakdown(graph, by="family")
    if by == "rank":
        return hg.kernel_distribution(graph)
    if by == "module":
        return hg.module_breakdown(graph)
    if by == "annotation":
        return hg.annotated_kernels(graph, by="annotation").rename(columns={"annotation": "name"})
    return hg.operator_breakdown(graph, by_shape=by == "shape")


@gives(
    "phases", {"phases": "analyses.phases.TABLE"},
    titles={"phases": "Phases, the most wall time of a rank first (wall time ends with the last work launched)"},
    rests_on=ATTRIBUTES,
)  # fmt: skip
def phases_report(
    graph: DependencyGraph, inputs: Sequence[str], *, annotation: str | None = None, top: int = 10
) -> Report:
    """Return the report on a job's phases; `inputs` are the words that choose what is read."""
    table = hg.phases(graph, annotation=annotation)
    brief = table.groupby("rank").head(top).drop(columns=["example", *_PHASES_FOR_PROGRAMS])
    brief.attrs["few"] = top
    if (table["tokens"] < 0).all():
        brief = brief.drop(columns=["tokens", "tokens_per_s"])
    titles = {}
    if not graph.activities.on_device.any():
        titles = {"phases": "Phases, the most wall time of a rank first"}
        brief = brief.drop(columns=[*_OF_DEVICES, "kernels", "launches"])
    unlinked = _unlinked(graph)
    if unlinked:  # their own work is not known
        brief = brief.drop(columns=_OF_DEVICES)
    job = findings_of_phases.RecordedPhases(window_us(graph), recorder_of(graph.traces.values()), not unlinked)
    long_region = _long_region(graph, table, annotation)
    sentences = findings_of_phases.phases_sentences(table, inputs, annotation, job, long_region)
    return report_on(
        graph, "phases", {"phases": table}, [*sentences, *unlinked], brief={"phases": brief}, titles=titles
    )


def _unlinked(graph: DependencyGraph) -> list[str]:
    """Return the sentence on device work whose launch is not in the traces, where it is a large part."""
    acts = graph.activities
    lost = acts.on_device & (acts.cause < 0)
    whole = float(acts.duration[acts.on_device].sum())
    percent = 100 * float(acts.duration[lost].sum()) / whole if whole else 0.0
    return [findings.launch_not_recorded(int(lost.sum()), percent)] if percent >= 100 * LARGE_SHARE else []


def _long_region(
    graph: DependencyGraph, table: pd.DataFrame, annotation: str | None
) -> findings_of_phases.LongRegion | None:
    """Return the region of the longest phase that took far longer than the others of its rank; None for none."""
    if not len(table):
        return None
    regions = phase_regions(graph, annotation).table
    regions = regions[regions["phase"] == findings_of_phases.longest_phase(table)]
    longest = regions.iloc[int(regions["wall_us"].argmax())]
    of_rank = regions[regions["rank"] == longest["rank"]]
    region = int(longest["region"])
    usual_us = float(of_rank.loc[of_rank["region"] != region, "wall_us"].median())
    if len(of_rank) < SEVERAL or longest["wall_us"] < _LONG * usual_us:
        return None
    more_us = float(longest["wall_us"]) - usual_us
    call, call_us = _longest_call(graph, region)
    is_reason = call_us > MOST * more_us
    return findings_of_phases.LongRegion(
        int(longest["rank"]),
        int(graph.activities.step[region]),
        float(longest["wall_us"]),
        usual_us,
        call if is_reason else "",
        call_us,
    )


def _longest_call(graph: DependencyGraph, region: int) -> tuple[str, float]:
    """Return the call of the runtime that takes most time inside a region, and its time, µs."""
    acts = graph.activities
    is_inside = (acts.lane == acts.lane[region]) & (acts.start >= acts.start[region])
    is_inside &= (acts.end <= acts.end[region]) & of_kinds(acts.kind, _RUNTIME_CALLS)
    calls = np.flatnonzero(is_inside)
    sums = np.bincount(acts.name[calls], acts.duration[calls], len(graph.names))
    return graph.names[int(sums.argmax())], float(sums.max(initial=0)) / 1000


@gives(
    "roofline", {"roofline": "analyses.roofline.TABLE", "counters": "analyses.cupti_counters.TABLE"},
    maybe=("counters",), headings={"gflop_s": "GFLOP/s"}, rests_on=ATTRIBUTES,
)  # fmt: skip
def roofline_report(
    graph: DependencyGraph,
    inputs: Sequence[str],
    *,
    peak_tflops: float | None = None,
    peak_gbs: float | None = None,
    top: int = 15,
) -> Report:
    """Return the report on a job's roofline; `inputs` are the words that choose what is read.

    The peaks are those of `htagraph.roofline`, if the user gave them.
    """
    table = hg.roofline(graph, peak_tflop_s=peak_tflops, peak_gb_s=peak_gbs)
    counters = hg.cupti_counters(graph)
    tables = {"roofline": table} | ({"counters": counters} if len(counters) else {})
    brief = table.head(top).drop(columns=_ROOFLINE_FOR_PROGRAMS).dropna(axis="columns", how="all")
    if "tflop_s" in brief and table["tflop_s"].max() < 1:
        rates = brief["tflop_s"] * 1000
        brief = brief.assign(tflop_s=rates).rename(columns={"tflop_s": "gflop_s"})
    chosen = (peak_tflops is not None, peak_gbs is not None)
    recorded = findings_of_roofs.RecordedRates(
        recorder_of(graph.traces.values()),
        device_record(graph),
        not len(table) and records_shapes(graph),
        _replays(graph),
    )
    saved_percent = None if missing_parts(graph) else partial(_saved_percent, graph)
    sentences = findings_of_roofs.roofline_sentences(table, inputs, chosen, recorded, saved_percent)
    return report_on(
        graph, "roofline", tables, sentences, brief={"roofline": brief}, plot=lambda: drawn("roofline", table)
    )


def _saved_percent(graph: DependencyGraph, options: Sequence[str]) -> float:
    """Return how much shorter the job is by a change, given as its options, percent."""
    return 100 * _gain_without(graph, *options)


def _replays(graph: DependencyGraph) -> tuple[str, ...]:
    """Return what runs kernels without operators in a job: CUDA graphs, torch.compile."""
    acts = graph.activities
    used = set(np.unique(acts.name).tolist())
    compiled = names_that(is_compiled_region, graph.names)
    replays = []
    if len(hg.graph_launches(graph)):
        replays.append("CUDA graphs")
    if any(compiled[name] for name in used):
        replays.append("torch.compile")
    return tuple(replays)
