"""Tables and envelopes → text for terminals, files and other programs."""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from htagraph.core.errors import printable
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import Suggestion, command_line, plural, spoken
from htagraph.output.report import Column, Report, Wording, abridged, columns_of, cut_all, fitted, title_of, wording_of
from htagraph.output.summary import Summary

if TYPE_CHECKING:
    from htagraph.output.validation import Validation

__all__ = [
    "FORMATS", "csv_text", "frames_of", "plain", "render_report", "render_summary", "render_validation", "to_json",
]  # fmt: skip

FORMATS = ("table", "json", "md")
"""Forms of a whole result; CSV is one table of it, which `csv_text` writes."""

_FORMULAS = tuple(
    "=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
)
"""With what a text begins that spreadsheets compute."""
_NUMBER = re.compile(r"-|[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?%?")  # one number, or a dash for nothing
_UNIT = re.compile(r"(?<=\d) (?=%|ms|µs|s\b)")
_MARKS = ("#", "-", "*", "+", ">", "|")
"""Begins of lines of Markdown with a meaning beside the text."""
_MAX_TEXT_WIDTH = 120
"""Letters of a text in Markdown, where nothing limits the width; chosen. Doubled, kernel names are twice as long."""


class _Page(NamedTuple):
    """What readers are shown: sentences, tables, sentences."""

    frames: Mapping[str, pd.DataFrame]
    wording: Wording
    first: tuple[str, Sequence[str]] = ("", ())
    """A heading and sentences before the tables."""
    last: tuple[str, Sequence[str]] = ("", ())
    """A heading and sentences behind them."""
    glance: Sequence[str] = ()
    """What comes before all else."""


def render_report(report: Report, form: str, *, width: int = 120, color: bool = False) -> str:
    """Return the report of a command as text in one of `FORMATS`.

    The first sentence, the answer, stands above the tables, and the second if it has a heading; all further
    sentences stand below.
    """
    brief = report.tables if report.brief is None else report.brief
    brief = {name: frame for name, frame in brief.items() if len(frame)}
    sentences = [sentence for sentence in report.sentences if sentence not in report.details]
    page = _answered(brief, report.wording, [*sentences, *spoken(report.more)], report.second)
    return _rendered(report, page, form, width, color=color)


def _answered(
    frames: Mapping[str, pd.DataFrame], wording: Wording, sentences: Sequence[str], second: str = ""
) -> _Page:
    """Return the page of tables and sentences: the first sentence is the answer; the second may have a heading."""
    lead = 2 if second else 1
    above = (second, sentences[1:lead])
    return _Page(frames, wording, first=above, last=("Conclusion", sentences[lead:]), glance=sentences[:1])


def render_summary(
    summary: Summary,
    form: str,
    *,
    width: int = 120,
    color: bool = False,
    full: bool = False,
    inputs: Sequence[str] = ("PATHS",),
) -> str:
    """Return a summary as text in one of `FORMATS`.

    It begins with the head. In full, the whole verdict and all tables follow, in place of the tables that matter most;
    `inputs` are the words of the command line that choose the traces, for the suggested commands.
    """
    first = summary.changes.first
    last = list[str]()
    if first and first.change and not first.is_hypothetical:
        last.append(Suggestion(first.change.title, first.change.command(inputs)))
    if not full:
        also = f"{plural(len(summary.verdict), 'finding')} in full, and all tables"
        last.append(Suggestion(also, command_line("summary", inputs, "--full")))
    frames = summary.whole() if full else summary.brief()
    verdict = ("Verdict", summary.verdict if full else ())
    page = _Page(
        frames, _summary_wording(summary, full=full), verdict, ("Try", last), [line.text for line in summary.head.lines]
    )
    return _rendered(summary, page, form, width, color=color)


def _summary_wording(summary: Summary, *, full: bool) -> Wording:
    """Return the titles of a summary's tables; opportunities, which are shown in full, may leave start-up out."""
    wording = wording_of("summary")
    if not full or summary.graph is None:
        return wording
    from htagraph.output.reports.ranks import opportunity_titles

    return replace(wording, titles={**wording.titles, **opportunity_titles(summary.graph)})


def render_validation(
    validation: Validation, form: str, *, width: int = 120, color: bool = False, inputs: Sequence[str] = ()
) -> str:
    """Return a validation report as text in one of `FORMATS`; `inputs` are the words that choose the files."""
    from htagraph.findings.verbs.files import validation_sentences  # of this one command

    frames = frames_of(validation)
    issues = validation.files
    is_first_of_kind = issues.groupby("what").cumcount() < MAX_LISTED
    shown_issues = issues[(issues["rank"] >= 0) | is_first_of_kind]  # by rank: see `abridged`
    shown_issues.attrs = {"rows": len(issues)}
    frames["issues"] = shown_issues
    skipped = int((validation.files["what"] == "file_skipped").sum())
    sentences = validation_sentences(len(validation.files), skipped, validation.support, inputs)
    shown = frames if form == "md" else {name: frame for name, frame in frames.items() if len(frame)}
    page = _answered(shown, wording_of("validate"), sentences)
    return _rendered(validation, page, form, width, color=color)


def _rendered(result: Report | Summary | Validation, page: _Page, form: str, width: int, *, color: bool) -> str:
    """Return a result for programs as JSON, or what its readers are shown as Markdown or for a terminal."""
    if form == "json":
        return to_json(result.to_dict())
    page = page._replace(frames={name: abridged(frame) for name, frame in page.frames.items()})
    return _markdown(page) if form == "md" else _terminal(page, width, color=color)


def frames_of(result: Report | Summary | Validation) -> dict[str, pd.DataFrame]:
    """Return everything that a result holds as tables by name, in the order of CSV."""
    if isinstance(result, Summary):
        verdict = pd.DataFrame({"sentence": result.verdict})
        return {"inputs": result.inputs, **result.tables, "issues": result.issues, "verdict": verdict}
    if isinstance(result, Report):
        figures = {
            name: ["; ".join(map(str, value)) if isinstance(value, list) else value]
            for name, value in result.figures.items()
        }
        first = {"figures": pd.DataFrame(figures)} if figures else {}
        sentences = {"conclusions": pd.DataFrame({"sentence": result.sentences})}
        return {"inputs": result.inputs, **first, **result.tables, "issues": result.issues, **sentences}
    return result.tables


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV: a line of headings, and a line per row."""
    return plain(table).to_csv(index=False)


def to_json(envelope: dict[str, Any]) -> str:
    """Return an envelope as text, without a character that commands a terminal."""
    text = json.dumps(envelope, indent=2, ensure_ascii=False, default=lambda value: value.item())
    commands = {ord(letter): json.dumps(letter)[1:-1] for letter in set(text) if not letter.isprintable()}
    return text.translate(commands | {ord("\n"): "\n"}) + "\n"


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table for CSV: no text is a formula to a spreadsheet, or a command to a terminal.

    What is no number, such as a ratio to 0, is empty, as it is null in JSON.
    """
    frame = frame.mask(frame.isin([math.inf, -math.inf]))
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    return frame.assign(**{name: frame[name].map(_plain_cell) for name in texts})


def _plain_cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULAS) and not _NUMBER.fullmatch(text) else text


def _markdown(page: _Page) -> str:
    tables = ""
    for name, frame in page.frames.items():
        columns = columns_of(frame, page.wording)
        rows = zip(*(cut_all(column.cells, _MAX_TEXT_WIDTH) for column in columns), strict=True)
        marks = ["---:" if column.is_number else "---" for column in columns]
        lines = [[column.heading for column in columns], marks, *rows]
        cells = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
        tables += f"\n## {title_of(name, page.wording, frame)}\n\n{cells}"
    glance = "\n".join(f"{_as_text(printable(sentence))}\n" for sentence in page.glance)
    return (glance + _markdown_list(*page.first) + tables + _markdown_list(*page.last)).lstrip("\n")


def _as_text(sentence: str) -> str:
    """Return a sentence for Markdown, in which no name at its begin makes it a heading, a list or a quotation."""
    return f"\\{sentence}" if sentence.startswith(_MARKS) else sentence


def _markdown_list(heading: str, sentences: Sequence[str]) -> str:
    if not (heading and sentences):
        return ""
    return f"\n## {heading}\n\n" + "\n".join(f"- {printable(line)}" for line in sentences) + "\n"


def _terminal(page: _Page, width: int, *, color: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    for sentence in page.glance:
        console.print(Text(_filled(sentence, width, "")), soft_wrap=True)
    if page.glance:
        console.print()
    if page.first[1]:
        _say(console, *page.first, width)
        console.print()
    for name, frame in page.frames.items():
        console.print(Text(title_of(name, page.wording, frame), style="bold"))
        _show_table(console, columns_of(frame, page.wording), width)
        console.print()
    if page.last[1]:
        _say(console, *page.last, width)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _say(console: Console, heading: str, sentences: Sequence[str], width: int) -> None:
    console.print(Text(heading, style="bold"))
    for sentence in sentences:
        console.print(Text(_filled(sentence, width)), soft_wrap=True)


def _show_table(console: Console, columns: list[Column], width: int) -> None:
    shown = fitted(columns, width)
    table = Table(box=None, pad_edge=False)
    for column, room in zip(shown.columns, shown.widths, strict=True):
        wrapped = "\n".join(textwrap.wrap(column.heading, max(room, 1)))
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(Text(wrapped), justify=justify, no_wrap=column.width <= room, min_width=room, max_width=room)
    for row in zip(*shown.cells, strict=True):
        table.add_row(*map(Text, row))
    console.print(table)
    if shown.left_out:
        left = ", ".join(shown.left_out)
        line = textwrap.fill(f"(no room for: {left})", width, break_on_hyphens=False)
        console.print(Text(line, style="dim"), soft_wrap=True)


def _filled(sentence: str, width: int, start: str = "• ") -> str:
    """Return a sentence in lines, numbers beside their units, and the command that it ends with, whole, on its own."""
    text = sentence
    command = ""
    if isinstance(sentence, Suggestion):
        text = f"{sentence.said}:"
        command = f"\n    {printable(sentence.command)}"
    unbroken = _UNIT.sub("\N{NO-BREAK SPACE}", printable(text))
    lines = textwrap.fill(
        unbroken, width - 1, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
    )
    lines = lines.replace("\N{NO-BREAK SPACE}", " ")
    return f"{lines}{command}"
