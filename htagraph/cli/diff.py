"""``htagraph diff``: why the steps of one job take longer than those of another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from htagraph.cli.options import Form, Ranks, Top, chosen, emit, read, show
from htagraph.cli.targets import Comment, Drawn
from htagraph.core.words import nearest_words
from htagraph.output.wording import diff as wording
from htagraph.queries.path_segments import CATEGORIES

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.differences import Diff
    from htagraph.analyses.differences.step_change import StepChange
    from htagraph.output.report import Report

__all__ = ["FAILED", "Limit", "diff", "limit", "report"]

FAILED = 3
"""Exit code where a limit of ``--fail-on`` is exceeded."""
_LIMIT = re.compile(r"(?P<what>\w+)\s*>\s*\+?(?P<number>\d+(\.\d+)?)\s*(?P<unit>%|us|µs|ms|s)")
_US = {"us": 1.0, "µs": 1.0, "ms": 1_000.0, "s": 1_000_000.0}
_STEP_TIME = "step_time"


class By(str, Enum):
    """What a row of the table of activities is."""

    NAME = "name"
    SHORT = "short"
    PATH = "path"


@dataclass(frozen=True)
class Limit:
    """By how much something may be longer after than before."""

    text: str
    what: str
    """``step_time``, or a category of the critical path."""
    us: float | None
    percent: float | None
    """Of its own time before."""

    def broken(self, before_us: float, after_us: float) -> bool:
        """Return whether a time grew beyond the limit."""
        if self.us is not None:
            return after_us - before_us > self.us
        return after_us > before_us * (1 + (self.percent or 0.0) / 100)


StepsBefore = Annotated[
    str | None,
    typer.Option(
        "--steps-before", "--steps", metavar="STEPS",
        help="Only from the first to the last of these steps; --steps is the same.",
    ),
]  # fmt: skip
StepsAfter = Annotated[
    str | None,
    typer.Option("--steps-after", metavar="STEPS", help="The same for the job after; default: --steps-before."),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on", metavar="WHAT>+LIMIT", show_default=False,
        help=f"Exit with code {FAILED} if this grew by more: step_time, or a category of the critical path "
        f"({', '.join(CATEGORIES)}), such as 'step_time>+5%' or 'gap>+2ms'. May be repeated.",
    ),
]  # fmt: skip


def diff(  # noqa: PLR0913 - one argument per option
    before: Annotated[str, typer.Argument(help="The job before: a folder, a file or a glob.", show_default=False)],
    after: Annotated[str, typer.Argument(help="The job after, likewise.", show_default=False)],
    *,
    steps_before: StepsBefore = None,
    steps_after: StepsAfter = None,
    ranks: Ranks = None,
    by: Annotated[By, typer.Option("--by", help="What a row of the table of activities is.")] = By.SHORT,
    fail_on: FailOn = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help=f"Exit with code {FAILED} also if there are too few steps to tell from noise."),
    ] = False,
    comment: Comment = None,
    top: Top = 10,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """Why do the steps of one job take longer than those of another?

    A folder of folders with traces is several runs of one job. A limit of step_time counts as exceeded only if the
    change is larger than what steps and runs differ by, which one or two steps cannot tell (see --strict).

    Example: htagraph diff before/ after/ --fail-on 'step_time>+5%'
    """
    limits = [limit(text) for text in fail_on or []]
    numbers, later = chosen(steps_before, "--steps-before"), chosen(steps_after, "--steps-after")
    some = chosen(ranks, "--ranks")
    from htagraph.trace.discover import runs_of

    runs = [[read([run], None, None) for run in runs_of(path)] for path in (before, after)]
    from htagraph.analyses.differences import compare
    from htagraph.analyses.differences import diff as difference_of
    from htagraph.analyses.differences.step_change import change_of_runs, typical

    graphs = [typical(side) for side in runs]

    result = difference_of(graphs[0], graphs[1], steps=numbers, steps_after=later, ranks=some)
    names = compare(
        graphs[0], graphs[1], by=_BY[by], steps=numbers, steps_after=later, ranks=some
    )  # fmt: skip
    change = change_of_runs(result, *runs, ranks=some)
    shown = report(result, names, (before, after), limits=limits, change=change, strict=strict, top=top)
    if comment is not None:
        from htagraph.output.comment import comment as comment_on

        emit(comment_on(result, change, shown.figures["exceeded"], limits=fail_on or []), comment, [before, after])
    show(shown, form, output, [before, after], lambda: result)
    if shown.figures["exceeded"]:
        raise typer.Exit(FAILED)


_BY: dict[By, Literal["name", "short_name", "path"]] = {
    By.NAME: "name",
    By.SHORT: "short_name",
    By.PATH: "path",
}


def limit(text: str) -> Limit:
    """Return the limit that a text such as ``step_time>+5%`` sets.

    Raises:
        typer.BadParameter: it is no limit, or of nothing that is known.

    Example:
        >>> limit("step_time>+5%").percent, limit("communication > 2ms").us
        (5.0, 2000.0)
    """
    known = (_STEP_TIME, *CATEGORIES)
    match = _LIMIT.fullmatch(text.strip())
    if not match or match["what"] not in known:
        word = re.match(r"\w+", text.strip())
        nearest = nearest_words(word[0], known) if word and word[0] not in known else ""
        msg = f"{text!r}: write 'step_time>+5%' or 'CATEGORY>+2ms'; categories: {', '.join(CATEGORIES)}{nearest}"
        raise typer.BadParameter(msg, param_hint="--fail-on")
    number, unit = float(match["number"]), match["unit"]
    is_share = unit == "%"
    return Limit(text, match["what"], None if is_share else number * _US[unit], number if is_share else None)


def report(  # noqa: PLR0913 - what the options say
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
    import pandas as pd

    from htagraph.analyses.differences.step_change import change_of_runs
    from htagraph.findings.verbs import diff as findings
    from htagraph.output.report import Report, Wording
    from htagraph.queries.inputs import inputs_of, issues_of

    graphs = [part.graph for part in result.parts]
    sides = list(zip(("before", "after"), graphs, strict=True))
    whole = result.summary()
    change = change or change_of_runs(result, [graphs[0]], [graphs[1]])
    exceeded = [each for each in limits if _is_broken(each, result, whole, change, strict=strict)]
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
    figures = {
        "before_us": result.before_us, "after_us": result.after_us, "change_us": result.change_us,
        "change_percent": result.change_percent, "unit": result.unit, "exceeded": [each.text for each in exceeded],
        "step_change_percent": change.percent, "step_change_plus_minus_percent": change.plus_minus_percent,
    }  # fmt: skip
    sentences = [
        *_gates(result, whole, limits, exceeded, change),
        *result.sentences(),
        *findings.next_command(result, inputs),
    ]
    inputs_table, issues = (
        pd.concat([table(graph).assign(job=side) for side, graph in sides], ignore_index=True)
        for table in (inputs_of, issues_of)
    )
    return Report("diff", inputs_table, issues, result.after.makespan_ns / 1000, tables, sentences, figures,
                  _brief(tables), Wording(wording.TITLES))  # fmt: skip


def _brief(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return what a reader wants to see."""
    table = tables["contributions"]
    columns = ["path", "category", "before_us", "after_us", "change_us", "before_count", "after_count"]
    shares = tables["summary"]
    shown = {"work": wording.marked(tables["work"]), "contributions": table.loc[table["change_us"] != 0, columns]}
    for group in ("category", "operator"):
        rows = shares[(shares["group"] == group) & (shares["change_us"] != 0)]
        shown[f"change_{group}"] = rows.drop(columns="group").rename(columns={"key": group})
    names = tables["names"][[
        "name", "before_per_step_count", "after_per_step_count", "before_per_step_us", "after_per_step_us",
        "change_per_step_us", "change",
    ]]  # fmt: skip
    shown["names"] = names[(names["change_per_step_us"] != 0) | (names["change"] != "same")]
    columns = ["path", "count_per_step", "total_us", "critical_us"]
    return (
        shown | {name: tables[name][columns] for name in ("added", "removed")} | {"renamed": _short(tables["renamed"])}
    )


def _short(renamed: pd.DataFrame) -> pd.DataFrame:
    """Return both names as short as they can be and still differ."""
    from htagraph.core.naming import short_name

    pairs = [(short_name(old), short_name(new)) for old, new in zip(renamed["before"], renamed["after"], strict=True)]
    after = [new if new != old else "the same with other template arguments or parameters" for old, new in pairs]
    return renamed.assign(before=[old for old, _ in pairs], after=after)[["before", "after"]]


def _times(result: Diff, whole: pd.DataFrame, what: str) -> tuple[float, float]:
    """Return the time of what a limit is about, before and after, µs per step."""
    if what == _STEP_TIME:
        return result.before_us, result.after_us
    rows = whole[(whole["group"] == "category") & (whole["key"] == what)]
    return float(rows["before_us"].sum()), float(rows["after_us"].sum())


def _is_broken(each: Limit, result: Diff, whole: pd.DataFrame, change: StepChange, *, strict: bool) -> bool:
    """Return whether a limit is exceeded by more than noise; of categories nobody knows their noise."""
    if each.what != _STEP_TIME:
        return change.is_empty or each.broken(*_times(result, whole, each.what))
    return change.fails(longer=each.broken(change.before_us, change.after_us), strict=strict)


def _gates(
    result: Diff, whole: pd.DataFrame, limits: Sequence[Limit], exceeded: Sequence[Limit], change: StepChange
) -> list[str]:
    """Return what became of each limit: those exceeded first, then of the step time those that noise hides."""
    from htagraph.findings.verbs import diff as findings

    said = [
        findings.too_long(limit.what, *_times(result, whole, limit.what), limit.text)
        for limit in exceeded if limit.what != _STEP_TIME
    ]  # fmt: skip
    return [
        findings.gate(change, each.text, fails=each in exceeded) for each in limits if each.what == _STEP_TIME
    ] + said
