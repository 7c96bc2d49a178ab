"""Two jobs: the reports of diff on why steps differ, with its limits, and on names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd

from htagraph.analyses.differences import Diff
from htagraph.analyses.differences.compared_parts import parts_of
from htagraph.analyses.differences.step_change import StepChange, change_of_runs, change_of_times
from htagraph.core.kinds import CATEGORIES
from htagraph.core.naming import short_name
from htagraph.core.tables import Col, Table
from htagraph.findings.differences.pair import compared
from htagraph.findings.incomplete import comparison_of
from htagraph.findings.start_up import start_up_note
from htagraph.findings.verbs import diff as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.output.report import Report, gives
from htagraph.queries.inputs import inputs_of, issues_of, window_us

__all__ = ["INSIDE", "STEP_TIME", "Limit", "diff_report", "marked", "names_report", "of_both"]

STEP_TIME = "step_time"
"""What a limit may be of, besides a category of the critical path."""

_ROWS_REST_ON: Final = frozenset({Part.DEVICE, Part.HOST, Part.MEANING})
"""The parts that rows of names, and the times of steps, rest on."""
_ROWS_OF: Final = {
    "all": _ROWS_REST_ON,
    "device": _ROWS_REST_ON - {Part.HOST},
    "host": _ROWS_REST_ON - {Part.DEVICE},
}
"""The parts that the rows of a comparison rest on, by whose rows are compared."""
_CAUSES: Final = ("contributions", "work", "summary", "added", "removed", "renamed")
"""The tables of a diff that say what made the difference."""
INSIDE = " (with all inside)"
"""What follows the name of a call whose row is of all inside it."""


@dataclass(frozen=True)
class Limit:
    """By how much something may be longer after than before."""

    text: str
    what: str
    """``step_time``, or a category of the critical path."""
    us: float | None
    percent: float | None
    """Of its own time before."""

    def percent_of(self, before_us: float) -> float:
        """Return the limit in percent of a time before."""
        return (self.percent or 0.0) if self.us is None else 100 * self.us / before_us if before_us else math.inf

    def broken(self, before_us: float, after_us: float) -> bool:
        """Return whether a time grew beyond the limit."""
        if self.us is not None:
            return after_us - before_us > self.us
        return after_us > before_us * (1 + (self.percent or 0.0) / 100)


def of_both(table_of: Callable[[DependencyGraph], pd.DataFrame], graphs: Sequence[DependencyGraph]) -> pd.DataFrame:
    """Return the rows of both jobs, each with the word for its job."""
    sides = zip(("before", "after"), graphs, strict=True)
    return pd.concat([table_of(graph).assign(job=side) for side, graph in sides], ignore_index=True)


_SUMMARY = Table(
    "Change of the critical path per step", Col("group key", "str"), Col("before_us after_us change_us change_percent")
)


@gives(
    "diff",
    {
        "contributions": "analyses.differences.diff.TABLE", "work": "analyses.differences.effects.TABLE",
        "summary": _SUMMARY, "names": "analyses.differences.compare.TABLE",
        "added": "analyses.differences.diff.ADDED_PATHS", "removed": "analyses.differences.diff.REMOVED_PATHS",
        "renamed": "analyses.differences.diff.RENAMED", "paired_steps": "analyses.differences.diff.STEP_TIMES",
    },
    maybe=("contributions", "work", "summary", "added", "removed", "renamed", "paired_steps"),
    figures=(
        Col("before_us after_us change_us change_percent", maybe=True), Col("unit", "str", maybe=True),
        Col("exceeded cannot_tell", "list", maybe=True),
        Col("step_change_percent step_change_plus_minus_percent", maybe=True),
    ),
    titles={
        "change_category": f"{_SUMMARY.title}, by category", "change_operator": f"{_SUMMARY.title}, by operator",
    },
    headings={
        "before_per_step_count": "before count", "after_per_step_count": "after count",
        "before_per_step_us": "before_us", "after_per_step_us": "after_us", "change_per_step_us": "change_us",
        "change": "occurs",
    },
)  # fmt: skip
def diff_report(  # noqa: PLR0913 - what the options say
    result: Diff,
    names: pd.DataFrame,
    inputs: Sequence[str],
    *,
    limits: Sequence[Limit] = (),
    change: StepChange | None = None,
    strict: bool = False,
    top: int = 10,
) -> Report:
    """Return the report on a difference; `inputs` are the two jobs as they were named."""
    graphs = [part.graph for part in result.parts]
    whole = result.summary()
    change = change or change_of_runs(result, [graphs[0]], [graphs[1]])
    lost = compared(result.parts).lost
    untold = [limit for limit in limits if lost and limit.what != STEP_TIME]
    noisy = [limit for limit in limits if limit in untold or _is_noise(limit, result, whole)]
    broken = [
        each for each in limits
        if (change.fails(each.percent_of(change.before_us), strict=strict) if each.what == STEP_TIME
            else each in untold or change.is_empty or each.broken(*_times(result, whole, each.what)))
    ]  # fmt: skip
    exceeded = [each for each in broken if strict or each not in noisy]
    tables = {
        "contributions": result.to_frame().head(top),
        "work": result.causes(top),
        "summary": whole.groupby("group", sort=False).head(top).reset_index(drop=True),
        "names": names.head(top),
        "added": result.added.head(top),
        "removed": result.removed.head(top),
        "renamed": result.renamed.head(top),
        "paired_steps": result.step_times(),
    }
    unknown = [
        each.text for each in limits
        if each in noisy or (each.what == STEP_TIME and change.cannot_tell(each.percent_of(change.before_us)))
    ]  # fmt: skip
    figures = {
        "before_us": result.before_us, "after_us": result.after_us, "change_us": result.change_us,
        "change_percent": result.change_percent, "unit": result.unit,
        "exceeded": [each.text for each in exceeded], "cannot_tell": unknown,
        "step_change_percent": change.percent, "step_change_plus_minus_percent": change.plus_minus_percent,
    }  # fmt: skip
    told = {limit: None if limit in noisy else limit in exceeded for limit in limits if limit not in untold}
    sentences = [
        *_gates(result, whole, told, change),
        *(findings.incomplete_limit(limit.text, fails=strict) for limit in untold),
        *result.sentences(),
        *_start_up(graphs),
        *findings.next_action(inputs, is_same=change.shows_none or change.is_empty),
    ]
    if lost:
        tables, figures = _without_verdict(tables, figures, lost)
        sentences = [*result.sentences(), *(sentence for sentence in sentences if sentence not in result.sentences())]
    return Report(
        "diff", of_both(inputs_of, graphs), of_both(issues_of, graphs), result.after.makespan_ns / 1000, tables,
        sentences, figures, _brief(tables, is_noise=change.shows_none), plot=None if lost else result.plot,
    )  # fmt: skip


def _without_verdict(tables: dict[str, pd.DataFrame], figures: dict[str, Any], lost: frozenset[Part]) -> _Withheld:
    """Return tables and figures of a diff without those that rest on lost parts of the recordings."""
    withheld = set(_CAUSES)
    if lost & _ROWS_REST_ON:
        withheld |= {"names", "paired_steps"}
    is_timed = not lost & _ROWS_REST_ON
    kept = {name: table.head(0) if name in withheld else table for name, table in tables.items()}
    times = {name: math.nan for name in figures if name.endswith(("_us", "_percent")) and not is_timed}
    return _Withheld(kept, figures | times)


class _Withheld(NamedTuple):
    """The tables and figures of a comparison that stay where a recording lacks parts."""

    tables: dict[str, pd.DataFrame]
    figures: dict[str, Any]


_OCCURS: Final = {"added": "only after", "removed": "only before", "more": "more often", "fewer": "less often"}
"""How often a name occurs, in words, by the kind of its change; all further kinds are as often."""


def _start_up(graphs: Sequence[DependencyGraph]) -> list[str]:
    """Return the sentences that name start-up before and after."""
    jobs = zip(("Before", "After"), graphs, strict=True)
    return [f"{job}: {note}" for job, graph in jobs for note in start_up_note(graph, "diff")]


def marked(causes: pd.DataFrame) -> pd.DataFrame:
    """Return the table of causes as it is shown: what changed by more than noise, named if it is all inside a call.

    Example:
        >>> rows = {"name": ["mm", "item", "add"], "whole": [False, True, False], "change_us": 5.0}
        >>> marked(pd.DataFrame(rows).assign(plus_minus_us=[1.0, math.nan, 9.0]))["name"].tolist()
        ['mm', 'item (with all inside)']
    """
    causes = causes[~(causes["change_us"].abs() <= causes["plus_minus_us"])]
    name = causes["name"].mask(causes["whole"], causes["name"] + INSIDE)
    return causes.drop(columns=["whole", "plus_minus_us"]).assign(name=name).reset_index(drop=True)


def _brief(tables: dict[str, pd.DataFrame], *, is_noise: bool) -> dict[str, pd.DataFrame]:
    """Return what a reader wants to see; of steps that do not differ, not where on the path they do."""
    table = tables["contributions"]
    columns = ["path", "category", "before_us", "after_us", "change_us", "before_count", "after_count"]
    shares = tables["summary"]
    shown = {
        "work": marked(tables["work"]),
        "contributions": table.loc[(table["change_us"] != 0) & (not is_noise), columns],
    }
    for group in ("category", "operator"):
        rows = shares[(shares["group"] == group) & (shares["change_us"] != 0) & (not is_noise)]
        shown[f"change_{group}"] = rows.drop(columns="group").rename(columns={"key": group})
    shown["names"] = _unlike(tables["names"])
    columns = ["path", "count_per_step", "total_us", "critical_us"]
    shown |= {name: tables[name][columns] for name in ("added", "removed")}
    old, new = (tables["renamed"][side].map(short_name) for side in ("before", "after"))
    new = new.where(new != old, "the same with other template arguments or parameters")
    return shown | {"renamed": pd.DataFrame({"before": old, "after": new})}


def _unlike(names: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison by name that differ, with what is read of them."""
    differ = names[(names["change_per_step_us"] != 0) | (names["change"] != "same")]
    differ = differ.assign(change=differ["change"].map(_OCCURS).fillna("as often"))
    return differ[[
        "name", "before_per_step_count", "after_per_step_count", "before_per_step_us", "after_per_step_us",
        "change_per_step_us", "change",
    ]]  # fmt: skip


def _times(result: Diff, whole: pd.DataFrame, what: str) -> tuple[float, float]:
    """Return the time of what a limit is about, before and after, µs per step."""
    if what == STEP_TIME:
        return result.before_us, result.after_us
    rows = whole[(whole["group"] == "category") & (whole["key"] == what)]
    return float(rows["before_us"].sum()), float(rows["after_us"].sum())


def _is_noise(each: Limit, result: Diff, whole: pd.DataFrame) -> bool:
    """Return whether the critical path exceeds the limit of a category by no more than its steps differ."""
    if each.what == STEP_TIME or not each.broken(*_times(result, whole, each.what)):
        return False
    paths = zip(result.parts, (result.before, result.after), strict=True)
    return change_of_times(*([part.times_by_step(path, CATEGORIES.index(each.what))] for part, path in paths)).is_noise


def _gates(result: Diff, whole: pd.DataFrame, limits: Mapping[Limit, bool | None], change: StepChange) -> list[str]:
    """Return what became of each limit, exceeded or not, or None: noise hides it; those of the step time first."""
    return [
        findings.gate(change, each.text, each.percent_of(change.before_us), fails=bool(exceeded))
        if each.what == STEP_TIME
        else findings.too_long(each.what, *_times(result, whole, each.what), each.text, exceeded=exceeded)
        for each, exceeded in sorted(limits.items(), key=lambda one: one[0].what != STEP_TIME)
    ]


def names_report(
    graphs: Sequence[DependencyGraph],
    table: pd.DataFrame,
    inputs: Sequence[str],
    *,
    top: int = 20,
    device: str = "all",
) -> Report:
    """Return the report on names, the result of `htagraph.compare`; `device` says which rows the table has."""
    before, after = graphs
    notes, lost = comparison_of(before, after)
    if lost & _ROWS_OF[device]:
        table = table.head(0)
        sentences = notes
    else:
        apart = findings.unlike(parts_of(before, after, None, None, None))
        sentences = [*notes, *apart, *findings.compare_sentences(table, inputs), *_start_up(graphs)]
    unlike = _unlike(table).head(top).rename(columns={"change": "occurs"})
    return Report(
        "diff",
        of_both(inputs_of, graphs),
        of_both(issues_of, graphs),
        window_us(after),
        {"names": table},
        sentences,
        brief={"names": unlike},
        titles={"names": "Names that differ, per rank and step, the largest change first"},
    )
