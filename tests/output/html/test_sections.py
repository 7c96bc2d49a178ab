"""Sections behind the findings: there where there is something to say, and not where there is not."""

from __future__ import annotations

import re

import pandas as pd

import htagraph as hg
from htagraph.output.html.findings import PageResults
from htagraph.output.html.sections import (
    breakdown_section,
    collective_section,
    glance_section,
    memory_section,
    timeline_section,
)
from htagraph.output.html.timeline import timeline_of
from tests.reach import DATA, graph_of
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
        [steps.iloc[:1].assign(rank=rank, median_us=100.0 * rank) for rank in range(64)], ignore_index=True
    )
    body = glance_section(results).body
    assert "The 16 with the largest median of 64 ranks" in body
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
