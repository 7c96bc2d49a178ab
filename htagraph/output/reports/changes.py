"""What a changed job would do: the reports of what-if and of its sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from htagraph.analyses.critical_path import critical_path
from htagraph.core.tables import Col, Table
from htagraph.findings.change import saved_us
from htagraph.findings.finding import PREDICTS
from htagraph.findings.phrases import spoken
from htagraph.findings.unmatched import unmatched_sentences
from htagraph.findings.verbs import what_if as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.steps import is_paced_by_ends, known_lengths, regular_steps
from htagraph.output.report import Report, drawn, gives, report_on
from htagraph.queries.path_segments import bound_of
from htagraph.whatif.asked import asked_text, factor_note
from htagraph.whatif.options import Change, Sweep
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.scenario import Scenario, sweep, what_if

__all__ = ["capacity_report", "sweep_report", "what_if_report"]

_PREDICTION = Table(
    "Prediction",
    Col("baseline_us predicted_us saved_us speedup low high baseline_step_us predicted_step_us"),
    Col("gain_us", doc="what the change saves in the usual steps, as in findings, opportunities and plans"),
    Col("gain_low_us gain_high_us", doc="the 90 % interval of that gain, in the recorded run"),
    Col("p50_us p99_us", maybe=True),
)
_CHANGES = Table(
    "Effect of each change, added to those above it", Col("change", "str"), Col("predicted_us saved_us speedup")
)
_HOST: Final = frozenset({Part.HOST})
_BOUNDS = Table(
    "Critical path before and after",
    Col("group key", "str"),
    Col("before_time_us after_time_us before_share_percent after_share_percent"),
)


@gives(
    "what-if",
    {
        "prediction": _PREDICTION, "changes": _CHANGES, "step_times": "whatif.outcome.STEP_TIMES", "bounds": _BOUNDS,
        "sweep": "whatif.scenario.TABLE",
    },
    maybe=("prediction", "changes", "step_times", "bounds", "sweep"),
    figures=(Col("notes", "list", maybe=True), Col("swept", "str", maybe=True), Col("baseline_step_us", maybe=True)),
    titles={f"bounds_{group}": f"{_BOUNDS.title}, by {group}" for group in ("category", "rank", "kernel")},
    rests_on=PREDICTS,
    concludes=(
        "prediction", "changes", "step_times", "bounds", "sweep", "bounds_category", "bounds_rank", "bounds_kernel",
    ),
)  # fmt: skip
def what_if_report(
    outcomes: Sequence[Outcome], texts: Sequence[str], changes: Sequence[Change] = (), *, top: int = 5
) -> Report:
    """Return the report on changes.

    Args:
        outcomes: the prediction before all changes, and after each.
        texts: the changes as asked for.
        changes: the same changes, where the answer is to say their meaning.
        top: how many rows of each table are shown.
    """
    after = outcomes[-1]
    words = [asked_text(change, text) for change, text in zip(changes, texts, strict=False)] or texts
    paths = critical_path(after.baseline), after.critical_path()
    bounds = _bounds(paths[0].summary(), paths[1].summary(), top)
    tables = {
        "prediction": _prediction(after),
        "changes": _CHANGES.frame([  # what each adds to those before it
            (text, new.makespan_ns / 1000, (old.makespan_ns - new.makespan_ns) / 1000, new.speedup)
            for text, old, new in zip(texts, outcomes, outcomes[1:], strict=False)
        ]),
        "step_times": after.step_times(),
        "bounds": bounds,
    }  # fmt: skip
    brief = {name: table for name, table in tables.items() if name != "bounds"}
    unshown = ["low", "high"] if findings.tells_saving(after) else []  # one interval is told: that of the gain
    brief["prediction"] = brief["prediction"].drop(columns=[*unshown, "gain_us", "gain_low_us", "gain_high_us"])
    brief["step_times"] = by_step(after)
    brief |= {f"bounds_{group}": rows.drop(columns="group").rename(columns={"key": group})
              for group, rows in bounds.groupby("group", sort=False)}  # fmt: skip
    if len(texts) == 1:
        del brief["changes"]
    notes = list(after.notes)
    is_of_host = any(change.method == "infinite_host" for change in changes)
    stays = findings.stays_note(paths[1]) if is_of_host else ""
    told = spoken(factor_note(changes), *notes, stays, findings.path_note(*paths))
    sentences = [
        *findings.sentences(after, *map(bound_of, paths), texts=words),
        *(f"Note: {note}" for note in told),
    ]
    sentences[:0] = unmatched_sentences(after.baseline)
    return report_on(
        after.baseline,
        "what-if",
        tables,
        sentences,
        figures={"notes": notes},
        brief=brief,
        titles={"step_times": _step_title(brief["step_times"])},
        plot=after.plot,
        rests_on=_HOST if after.changes_unrecorded_host else frozenset(),
    )


def _prediction(after: Outcome) -> pd.DataFrame:
    gain_us, (gain_low_us, gain_high_us) = saved_us(after)
    row: dict[str, Any] = {
        "baseline_us": after.baseline_ns / 1000,
        "predicted_us": after.makespan_ns / 1000,
        "saved_us": after.saved_ns / 1000,
        "speedup": after.speedup,
        "low": after.low,
        "high": after.high,
        "baseline_step_us": after.baseline_step_ns / 1000,
        "predicted_step_us": after.step_ns / 1000,
        "gain_us": gain_us,
        "gain_low_us": gain_low_us,
        "gain_high_us": gain_high_us,
    }
    if after.state.jitter:
        row |= {"p50_us": after.p50_ns / 1000, "p99_us": after.p99_ns / 1000}
    return pd.DataFrame([row])


def by_step(outcome: Outcome) -> pd.DataFrame:
    """Return the time of each step, recorded and predicted, and whether the step is a usual step.

    The mean of the usual steps is the usual step. A step that no other step bounds lasts from its start to its end. A
    recording without usual steps has the time of each step from the end of the step before, which add up to all steps.
    """
    times = outcome.step_times()
    usual = regular_steps(outcome.baseline, outcome.baseline.time)[0]
    if not len(usual):
        return _one_after_the_other(times)
    rows = times.groupby("step", as_index=False).mean()
    table = rows[["step"]].copy()
    table["recorded_us"] = rows["end_us"] - rows["start_us"]
    table["predicted_us"] = rows["predicted_end_us"] - rows["predicted_start_us"]
    ends = is_paced_by_ends(outcome.baseline)
    sides = (
        ("recorded_us", outcome.baseline, outcome.baseline.time),
        ("predicted_us", outcome.state.graph, outcome.marks),
    )
    for column, graph, moments in sides:
        numbers, lengths = known_lengths(graph, moments, ends=ends)
        by_number = pd.Series(lengths / 1000, numbers)
        table[column] = table["step"].map(by_number).fillna(table[column])
    return table.assign(usual=table["step"].isin(usual))


def _one_after_the_other(times: pd.DataFrame) -> pd.DataFrame:
    """Return the time of each step over all ranks, from the end of the step before; the first from its start."""
    ends = times.groupby("step", as_index=False).agg(
        start=("start_us", "min"),
        end=("end_us", "max"),
        new_start=("predicted_start_us", "min"),
        new_end=("predicted_end_us", "max"),
    )
    table = ends[["step"]].copy()
    table["recorded_us"] = ends["end"].diff().fillna(ends["end"] - ends["start"])
    table["predicted_us"] = ends["new_end"].diff().fillna(ends["new_end"] - ends["new_start"])
    return table


def _step_title(table: pd.DataFrame) -> str:
    """Return the title of the times of steps, which says how they make the usual step."""
    if "usual" in table:
        return "Step times, mean of ranks; a usual step is the mean of those marked usual"
    return "Step times, each from the end of the step before, the first from its start"


def _bounds(before: pd.DataFrame, after: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the critical path's shares before and after (summaries of it): by category, rank and kernel."""
    tables = []
    for group in ("category", "rank", "kernel"):
        old, new = (
            path[path["group"] == group].set_index("key")[["time_us", "share_percent"]] for path in (before, after)
        )
        both = old.add_prefix("before_").join(new.add_prefix("after_"), how="outer").astype("float64").fillna(0.0)
        both = both.drop(index="none", errors="ignore")
        largest = both[["before_time_us", "after_time_us"]].max(axis=1).sort_values(ascending=False, kind="stable")
        both = both.loc[largest.head(top).index]
        tables.append(both.rename_axis("key").reset_index().assign(group=group))
    return _BOUNDS.frame(pd.concat(tables, ignore_index=True))


@gives(
    "capacity",
    {"batches": "whatif.capacity.BATCHES", "devices": "whatif.capacity.DEVICES"},
    maybe=("batches", "devices"),
    figures=(
        Col("recorded_batch", "int64"), Col("recorded_device unit", "str"), Col("recorded_step_us"),
        Col("refused notes", "list"),
        Col("fits_surely fits_perhaps", "int64", maybe=True),
    ),
    rests_on=PREDICTS, concludes=("batches", "devices", "recorded_step_us"),
)  # fmt: skip
def capacity_report(  # noqa: PLR0913 - what the command takes
    graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10, batches: Sequence[int] | None = None,
    before: int | None = None, devices: Sequence[str] | None = None, recorded: str = "",
) -> Report:  # fmt: skip
    """Return the report on other batches and devices; `inputs` are the words that choose what is read."""
    from htagraph.whatif.capacity import capacity

    del inputs, top
    found = capacity(graph, batches=batches, before=before, devices=devices, recorded=recorded)
    tables = {name: table for name, table in (("batches", found.batches), ("devices", found.devices)) if len(table)}
    brief = {name: table.dropna(axis="columns", how="all") for name, table in tables.items()}
    figures: dict[str, Any] = {
        "recorded_batch": found.batch, "recorded_device": found.device, "recorded_step_us": found.step_us,
        "refused": list(found.refused), "notes": list(found.notes), "unit": found.unit,
    }  # fmt: skip
    if found.room:
        figures |= {"fits_surely": found.room.surely, "fits_perhaps": found.room.perhaps}
    said = [*unmatched_sentences(graph), *findings.capacity_sentences(found)]
    return report_on(graph, "capacity", tables, said, figures=figures, brief=brief, plot=found.plot)


def sweep_report(
    graph: DependencyGraph, asked: Sweep, changes: Sequence[Change] = (), texts: Sequence[str] = ()
) -> Report:
    """Return the report on a sweep."""

    def scenario(job: Scenario, factor: float) -> Scenario:
        for change in changes:
            job = change.apply(job)
        return asked.apply(job, factor)

    table = sweep(graph, scenario, asked.factors, intervals=True)
    changed = scenario(what_if(graph), min(asked.factors)).run()
    recorded_us = what_if(graph).run().baseline_step_ns / 1000
    what = " ".join([asked.what, *(f"after {text}" for text in texts)])
    brief = table[["factor", "mean_step_us", "makespan_us", "saved_us", "speedup", "low", "high"]]
    takes = "transfers between ranks take" if asked.what == "network" else f"{asked.what} takes"
    title = f"If {takes} FACTOR times as long" if not asked.is_of_batches else "If the batch of each rank is FACTOR"
    return report_on(
        graph, "what-if", {"sweep": table},
        findings.sweep_sentences(table, what, recorded_us, of_batches=asked.is_of_batches),
        figures={"swept": asked.what, "baseline_step_us": recorded_us},
        brief={"sweep": brief.assign(factor=table["factor"].map("{:g}".format))},
        titles={"sweep": f"{title} (low, high: 90 % interval of the speedup)"},
        plot=lambda: drawn("sweep", table), rests_on=_HOST if changed.changes_unrecorded_host else frozenset(),
    )  # fmt: skip
