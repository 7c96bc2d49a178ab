"""Verbs about two jobs: why steps take longer, with limits for tests, and how often and how long each name runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from htagraph.cli.options import FAILED, chosen, read
from htagraph.cli.writing import Format, emit, show
from htagraph.core.errors import nearest_words
from htagraph.core.kinds import CATEGORIES

if TYPE_CHECKING:
    from htagraph.output.reports.two_jobs import Limit

__all__ = ["compare", "diff", "limit"]

_LIMIT = re.compile(r"(?P<what>\w+)\s*>\s*\+?(?P<number>\d+(\.\d+)?)\s*(?P<unit>%|us|µs|ms|s)")
_US = {"us": 1.0, "µs": 1.0, "ms": 1_000.0, "s": 1_000_000.0}

_BY: dict[str, Any] = {"name": "name", "short": "short_name", "path": "path"}
"""What a row of a table of activities is: words of ``--by``, and those that `htagraph.compare` takes."""


def diff(  # noqa: PLR0913 - one argument per option
    before: str, after: str, *, steps_before: str | None = None, steps_after: str | None = None,
    ranks: str | None = None, by: str = "short", fail_on: list[str] | None = None, strict: bool = False,
    comment: Path | None = None, top: int = 10, form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """Why do the steps of one job take longer than those of another?

    A folder of folders with traces is several runs of one job. A limit of step_time counts as exceeded only if the
    change is larger than what steps and runs differ by. Exit code 3: a limit is exceeded, or with --strict the
    recordings cannot tell.

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
    result = difference_of(*graphs, steps=numbers, steps_after=later, ranks=some)
    names = compare(*graphs, by=_BY[by], steps=numbers, steps_after=later, ranks=some)
    change = change_of_runs(result, *runs, ranks=some)
    result = replace(result, of_runs=change)
    shown = diff_report(result, names, (before, after), limits=limits, change=change, strict=strict, top=top)
    if comment is not None:
        from htagraph.output.regressions import comment as comment_on

        emit(
            comment_on(
                result, change, shown.figures["exceeded"], limits=fail_on or [], unknown=shown.figures["cannot_tell"]
            ),
            comment,
            [before, after],
        )
    show(shown, form, output, [before, after])
    if shown.figures["exceeded"]:
        raise typer.Exit(FAILED)


def limit(text: str) -> Limit:
    """Return the limit that a text such as ``step_time>+5%`` sets.

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
    before: str, after: str, *, by: str = "short", device: Literal["all", "host", "device"] = "all",
    steps: str | None = None, steps_after: str | None = None, ranks: str | None = None, top: int = 20,
    form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """How often and how long operators, kernels and annotations run in two jobs, by name; diff says why steps differ.

    Example: htagraph compare before/ after/ --device device
    """
    numbers, later = chosen(steps, "--steps"), chosen(steps_after, "--steps-after")
    some = chosen(ranks, "--ranks")
    graphs = [read([path], None, None) for path in (before, after)]
    from htagraph.analyses.differences import compare as table_of
    from htagraph.output.reports.two_jobs import compare_report

    table = table_of(*graphs, by=_BY[by], device=device, steps=numbers, steps_after=later, ranks=some)
    show(compare_report(graphs, table, (before, after), top=top, device=device), form, output, [before, after])
