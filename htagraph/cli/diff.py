"""The verb about two jobs: why steps take longer, with limits for tests, or how often and how long each name runs."""

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
    from collections.abc import Sequence

    from htagraph.output.reports.two_jobs import Limit

__all__ = ["diff", "limit"]

_LIMIT = re.compile(r"(?P<what>\w+)\s*>\s*\+?(?P<number>\d+(\.\d+)?)\s*(?P<unit>%|us|µs|ms|s)")
_US = {"us": 1.0, "µs": 1.0, "ms": 1_000.0, "s": 1_000_000.0}

_BY: dict[str, Any] = {"name": "name", "short": "short_name", "path": "path"}
"""What a row of a table of activities is: words of ``--by``, and those that `htagraph.compare` takes."""


def diff(  # noqa: PLR0913 - one argument per option
    before: str, after: str, *, steps_before: str | None = None, steps_after: str | None = None,
    ranks: str | None = None, by: str = "short", names: bool = False,
    device: Literal["all", "host", "device"] = "all", fail_on: list[str] | None = None, strict: bool = False,
    comment: Path | None = None, top: int = 10, form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """Why do the steps of one job take longer than those of another?

    A folder of folders with traces is several runs of one job. A limit of step_time counts as exceeded only if the
    change is larger than what steps and runs differ by. Exit code 3: a limit is exceeded, or with --strict the
    recordings cannot tell.

    With --names: how often and how long operators, kernels and annotations run in both jobs.

    Example: htagraph diff before/ after/ --fail-on 'step_time>+5%'
    """
    limits = [limit(text) for text in fail_on or []]
    numbers = chosen(steps_before, "--steps-before")
    later = chosen(steps_after, "--steps-after")
    some = chosen(ranks, "--ranks")
    _refuse_unread(names=names, device=device, limits=limits, comment=comment)
    from htagraph.trace.discover import runs_of

    runs = [[read([run], None, None) for run in runs_of(path)] for path in (before, after)]
    from htagraph.analyses.differences import compare
    from htagraph.analyses.differences import diff as difference_of
    from htagraph.analyses.differences.step_change import change_of_runs, typical
    from htagraph.output.reports.two_jobs import diff_report, names_report

    graphs = [typical(side) for side in runs]
    table = compare(*graphs, by=_BY[by], device=device, steps=numbers, steps_after=later, ranks=some)
    if names:
        show(names_report(graphs, table, (before, after), top=top, device=device), form, output, [before, after])
        return
    result = difference_of(*graphs, steps=numbers, steps_after=later, ranks=some)
    change = change_of_runs(result, *runs, ranks=some)
    result = replace(result, of_runs=change)
    shown = diff_report(result, table, (before, after), limits=limits, change=change, strict=strict, top=top)
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


def _refuse_unread(
    *, names: bool, device: str, limits: Sequence[Limit], comment: Path | None
) -> None:  # fmt: skip
    """Refuse options that the answer would not read: ``--names`` has no limits, and only names have a device."""
    if names and (limits or comment is not None):
        msg = "limits and comments are about why steps differ: leave out --names"
        raise typer.BadParameter(msg, param_hint="--names")
    if device != "all" and not names:
        msg = "it chooses rows of the table of names: add --names"
        raise typer.BadParameter(msg, param_hint="--device")


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
