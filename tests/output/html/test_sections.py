"""Sections behind the findings: there where there is something to say, and not where there is not."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import htagraph as hg
from htagraph.findings.finding import Claim, Evidence, Place
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.verdict import stated
from htagraph.output.html.page import text
from htagraph.output.html.sections import (
    PageResults,
    breakdown_section,
    collective_section,
    evidence_of,
    findings_section,
    glance_section,
    memory_section,
    timeline_section,
)
from htagraph.output.html.timeline import timeline_of
from tests.reach import DATA, DATASETS, graph_of, label
from tests.strategies import load, op
from tests.trace.profiler_files.made import allocation


def test_the_job_at_a_glance_says_what_was_read() -> None:
    body = glance_section(PageResults(graph_of(DATA / "demo"), ["x"])).body
    for words in ("<b>4</b><span>ranks read", "NVIDIA A100", "<b>3</b><span>steps", "15,492"):
        assert words in body


def test_of_many_ranks_those_with_the_longest_steps_are_shown() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["x"])
    steps = results.summary.tables["steps"]
    results.summary.tables["steps"] = pd.concat(
        [steps.iloc[:1].assign(rank=rank, mean_us=100.0 * rank) for rank in range(64)], ignore_index=True
    )
    body = glance_section(results).body
    assert "The 16 with the largest mean of 64 ranks" in body
    shown = re.findall(r'<td class="number">(\d+)</td><td class="number">3</td>', body)
    assert shown == [str(rank) for rank in range(63, 47, -1)]


def test_breakdowns_have_definitions() -> None:
    body = breakdown_section(PageResults(graph_of(DATA / "demo"), ["x"])).body
    assert body.count("What these numbers mean") == body.count("<h3>") > 0


def test_a_job_that_does_not_communicate_has_no_section_of_collectives() -> None:
    assert collective_section(PageResults(load([op("a", 0, 5)]), ["x"])) is None
    assert collective_section(PageResults(graph_of(DATA / "demo"), ["x"])) is not None


def test_memory_is_there_if_it_was_recorded() -> None:
    assert memory_section(PageResults(graph_of(DATA / "demo"), ["x"])) is None
    graph = load([op("a", 0, 50), allocation(5, 2_000_000, 2_000_000), allocation(9, -2_000_000, 0)])
    section = memory_section(PageResults(graph, ["x"]))
    assert section is not None
    assert "at most 2.0 MB in use" in section.body


def test_each_timeline_has_its_place_and_its_payload() -> None:
    timeline = timeline_of(hg.critical_path(load([op("a", 0, 1)])))
    section = timeline_section({"before": ("Before", timeline), "after": ("After", timeline)})
    assert list(section.payload) == ["before-header", "before-data", "after-header", "after-data"]
    assert section.body.count("<canvas") == 2
    assert 'data-key="before"' in section.body


def test_what_is_left_out_is_said() -> None:
    timeline = timeline_of(hg.critical_path(load([op("x" * 2000, 0, 1)])))
    assert "without their middle" in timeline_section({"job": ("", timeline)}).body


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_findings_are_the_verdict_with_commands_and_addresses(path: Path) -> None:
    results = PageResults(graph_of(path), [str(path)])
    body = findings_section(results).body
    places = [body.index(f"<p>{text(sentence)}</p>") for sentence in results.summary.verdict]
    assert places == sorted(places)
    assert all(shlex.split(command)[0] == "htagraph" for command in re.findall(r"<code>([^<]*)</code>", body))
    for address in re.findall(r'href="(#on=[^"]*)"', body):
        numbers = {key: int(number) for key, number in re.findall(r"(event|from|to)=(-?\d+)", address)}
        assert 0 <= numbers.get("event", 0) < len(results.graph.activities)
        assert -1 <= numbers.get("from", 0) <= numbers.get("to", 0) <= 1000 * results.summary.window_us + 1


def test_what_has_only_activities_leads_to_the_first_of_them() -> None:
    results = PageResults(graph_of(DATASETS[0]), ["job"])
    for finding, claims in stated(results.summary.claims):
        evidence = evidence_of(results, finding, claims)
        assert bool(evidence.place) == bool(evidence.look and results.address(evidence.place))
    none = Claim("ranks_missing", "", 1.0, "count")
    assert evidence_of(results, RANKS_MISSING, [none]) == Evidence()
    known = Claim("ranks_missing", "", 1.0, "count", rows=(7,))
    assert evidence_of(results, RANKS_MISSING, [known]).place == Place(7)


def test_the_summary_is_made_of_the_same_results() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["data/demo"])
    assert results.summary is results.summary
    assert results.summary.tables["interruptions"] is results.interruptions


def test_addresses_name_the_timeline_and_nanoseconds() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["x"], "before")
    assert results.address(Place(7)) == "#on=before&event=7"
    assert results.address(Place(3, 1.5, 2.0)) == "#on=before&from=1500&to=2000&event=3"
    assert results.address(None) == ""
