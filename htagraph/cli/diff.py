"""Verbs about two jobs: why steps take longer, with limits for tests, and how often and how long each name runs."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from htagraph.cli.options import Form, Ranks, Top, chosen, emit, read, show
from htagraph.cli.writing import Comment, Drawn, Output
from htagraph.core.errors import nearest_words
from htagraph.core.kinds import CATEGORIES

if TYPE_CHECKING:
    from htagraph.output.reports.two_jobs import Limit

__all__ = ["FAILED", "compare", "diff", "limit"]

FAILED = 3
"""Exit code where a limit of ``--fail-on`` is exceeded."""
_LIMIT = re.compile(r"(?P<what>\w+)\s*>\s*\+?(?P<number>\d+(\.\d+)?)\s*(?P<unit>%|us|µs|ms|s)")
_US = {"us": 1.0, "µs": 1.0, "ms": 1_000.0, "s": 1_000_000.0}

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


class By(str, Enum):
    """What a row of a table of activities is."""

    NAME = "name"
    SHORT = "short"
    PATH = "path"


class Device(str, Enum):
    """Where activities ran."""

    ALL = "all"
    HOST = "host"
    DEVICE = "device"


_BY: dict[By, Literal["name", "short_name", "path"]] = {By.NAME: "name", By.SHORT: "short_name", By.PATH: "path"}


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
    from htagraph.output.reports.two_jobs import diff_report

    graphs = [typical(side) for side in runs]

    result = difference_of(graphs[0], graphs[1], steps=numbers, steps_after=later, ranks=some)
    names = compare(
        graphs[0], graphs[1], by=_BY[by], steps=numbers, steps_after=later, ranks=some
    )  # fmt: skip
    change = change_of_runs(result, *runs, ranks=some)
    shown = diff_report(result, names, (before, after), limits=limits, change=change, strict=strict, top=top)
    if comment is not None:
        from htagraph.output.regressions import comment as comment_on

        emit(comment_on(result, change, shown.figures["exceeded"], limits=fail_on or []), comment, [before, after])
    show(shown, form, output, [before, after])
    if shown.figures["exceeded"]:
        raise typer.Exit(FAILED)


def limit(text: str) -> Limit:
    """Return the limit that a text such as ``step_time>+5%`` sets.

    Raises:
        typer.BadParameter: it is no limit, or of nothing that is known.

    Example:
        >>> limit("step_time>+5%").percent, limit("communication > 2ms").us
        (5.0, 2000.0)
    """
    from htagraph.output.reports.two_jobs import STEP_TIME, Limit

    known = (STEP_TIME, *CATEGORIES)
    match = _LIMIT.fullmatch(text.strip())
    if not match or match["what"] not in known:
        word = re.match(r"\w+", text.strip())
        nearest = nearest_words(word[0], known) if word and word[0] not in known else ""
        msg = f"{text!r}: write 'step_time>+5%' or 'CATEGORY>+2ms'; categories: {', '.join(CATEGORIES)}{nearest}"
        raise typer.BadParameter(msg, param_hint="--fail-on")
    number, unit = float(match["number"]), match["unit"]
    is_share = unit == "%"
    return Limit(text, match["what"], None if is_share else number * _US[unit], number if is_share else None)


def compare(  # noqa: PLR0913 - one argument per option
    before: Annotated[str, typer.Argument(help="The job before: a folder, a file or a glob.", show_default=False)],
    after: Annotated[str, typer.Argument(help="The job after, likewise.", show_default=False)],
    *,
    by: Annotated[By, typer.Option("--by", help="Name, name without template arguments, or call path.")] = By.SHORT,
    device: Annotated[Device, typer.Option("--device", help="Only what ran there.")] = Device.ALL,
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="STEPS", help="Only from the first to the last of these steps, of both."),
    ] = None,
    steps_after: Annotated[
        str | None, typer.Option("--steps-after", metavar="STEPS", help="Those of the job after, if others.")
    ] = None,
    ranks: Ranks = None,
    top: Top = 20,
    form: Form = None,
    output: Output = None,
) -> None:
    """How often and how long operators, kernels and annotations run in two jobs, by name; diff says why steps differ.

    Example: htagraph compare before/ after/ --device device
    """
    numbers, later = chosen(steps, "--steps"), chosen(steps_after, "--steps-after")
    some = chosen(ranks, "--ranks")
    graphs = [read([path], None, None) for path in (before, after)]
    from htagraph.analyses.differences import compare as table_of
    from htagraph.output.reports.two_jobs import compare_report

    table = table_of(
        graphs[0], graphs[1], by=_BY[by], device=device.value, steps=numbers, steps_after=later, ranks=some
    )
    show(compare_report(graphs, table, (before, after), top=top), form, output, [before, after])
