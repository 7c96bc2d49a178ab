"""Every report begins with its answer: a sentence without a heading, above the tables."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.render import render_report
from htagraph.output.report import Report
from htagraph.output.reports import device_time, files, patterns, queues, ranks
from tests.reach import DATA, DATASETS, REAL, graph_of, label

WORDS = ["job"]
REPORTS = {
    "plan": partial(ranks.plan_report, inputs=WORDS),
    "stragglers": partial(ranks.stragglers_report, inputs=WORDS),
    "collectives": partial(ranks.collectives_report, inputs=WORDS),
    "kernels": partial(device_time.kernels_report, inputs=WORDS),
    "idle": partial(device_time.idle_report, inputs=WORDS),
    "launches": partial(queues.launches_report, inputs=WORDS),
    "counters": partial(queues.counters_report, inputs=WORDS),
    "phases": partial(device_time.phases_report, inputs=WORDS),
    "roofline": partial(device_time.roofline_report, inputs=WORDS),
    "patterns": partial(patterns.patterns_report, inputs=WORDS),
    "critical-path": lambda graph: ranks.critical_path_report(hg.critical_path(graph), WORDS, full=False),
    "memory": lambda graph: files.memory_report(graph, top=5),
}
every_report = pytest.mark.parametrize("verb", REPORTS)
SMALL = [path for path in REAL if path.stat().st_size < 200_000]
_LOWER = re.compile(r"(?<!\d)\. [a-z](?!\w*[:_/])")
"""A sentence that begins in lower case; a name of code may."""


def report_of(verb: str, path: Path) -> Report:
    return REPORTS[verb](graph_of(path))  # type: ignore[operator]


@every_report
@pytest.mark.parametrize("path", [*DATASETS, *SMALL], ids=label)
def test_the_first_sentence_of_a_report_has_no_heading_and_stands_above_the_tables(verb: str, path: Path) -> None:
    report = report_of(verb, path)
    answer = report.sentences[0]
    for form in ("table", "md"):
        text = render_report(report, form, width=80)
        begin = text.split("\n\n")[0]
        assert "".join(begin.split()).removeprefix("\\") == "".join(answer.split())
        assert form == "table" or not begin.startswith(("#", "|", "-", ">"))
    assert report.to_dict()["results"]["conclusions"] == report.sentences


@every_report
@pytest.mark.parametrize("path", [*DATASETS, *SMALL], ids=label)
def test_no_sentence_begins_in_lower_case_after_a_point(verb: str, path: Path) -> None:
    for sentence in report_of(verb, path).sentences:
        said = sentence.partition(": htagraph ")[0]
        assert not _LOWER.search(said), said


def test_readers_see_a_path_on_a_screen_and_all_of_it_in_full() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    brief = render_report(ranks.critical_path_report(path, WORDS, full=False), "table", width=80)
    full = render_report(ranks.critical_path_report(path, WORDS), "table", width=80)
    assert len(brief.splitlines()) <= 50 < len(full.splitlines())
    assert brief.endswith("    htagraph critical-path job --full\n")
    assert ranks.critical_path_report(path, WORDS, full=False).to_dict() == (
        ranks.critical_path_report(path, WORDS).to_dict()
    )
