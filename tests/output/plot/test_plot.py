"""Every figure of every kind of job: it is made, never shown, and its words are no markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.output.report import Report
from htagraph.output.reports import device_time, files, queues, ranks
from tests.output.plot.jobs import JOBS, job, result_of

_TAGS = re.compile(r"</?(?!br>|span|/span)[a-zA-Z]")


@pytest.fixture(autouse=True)
def _never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(*_: object, **__: object) -> None:
        pytest.fail("a figure was shown")

    monkeypatch.setattr("plotly.graph_objects.Figure.show", show)


@pytest.mark.parametrize("name", hg.plot.__all__)
@pytest.mark.parametrize("kind", JOBS)
def test_every_figure_of_every_job_can_be_drawn(name: str, kind: str) -> None:
    figure = getattr(hg.plot, name)(result_of(name, job(kind)))
    text = json.dumps(json.loads(figure.to_json())["layout"]["title"])
    assert figure.layout.title.text
    assert not _TAGS.search(text), text
    assert figure.layout.height < 1600


@pytest.mark.parametrize("name", ["critical_path", "stragglers", "diff", "what_if"])
def test_an_object_draws_itself(name: str) -> None:
    result = result_of(name, job("demo"))
    assert result.plot().layout.title.text == getattr(hg.plot, name)(result).layout.title.text
    assert "<" in result._repr_html_()


def test_a_summary_draws_where_the_time_of_its_ranks_goes() -> None:
    summary = hg.summarize(job("demo"))
    expected = hg.plot.temporal_breakdown(hg.temporal_breakdown(job("demo")))
    assert summary.plot().layout.title.text == expected.layout.title.text
    assert "<li>" in summary._repr_html_()


REPORTS: list[tuple[str, Callable[[DependencyGraph], Report]]] = [
    ("kernel_breakdown", lambda graph: device_time.kernels_report(graph, [])),
    ("kernel_distribution", lambda graph: device_time.kernels_report(graph, [], by="rank")),
    ("module_breakdown", lambda graph: device_time.kernels_report(graph, [], by="module")),
    ("launch_stats", lambda graph: queues.launches_report(graph, [])),
    ("queue_length", lambda graph: queues.counters_report(graph, [])),
    ("roofline", lambda graph: device_time.roofline_report(graph, [])),
    ("collectives", lambda graph: ranks.collectives_report(graph, [])),
    ("plan", lambda graph: ranks.plan_report(graph, [])),
    ("memory_timeline", lambda graph: files.memory_report(graph)),
]


@pytest.mark.parametrize(("name", "report"), REPORTS, ids=[name for name, _ in REPORTS])
def test_a_report_has_the_figure_of_its_analysis(name: str, report: Callable[[DependencyGraph], Report]) -> None:
    plot = report(job("demo")).plot
    assert plot is not None
    figure = getattr(hg.plot, name)(result_of(name, job("demo")))
    assert plot().layout.title.text == figure.layout.title.text


def test_the_figure_of_idle_has_the_devices_and_the_reasons_of_its_sentences() -> None:
    plot = device_time.idle_report(job("demo"), []).plot
    assert plot is not None
    title = str(plot().layout.title.text)
    assert "ranks are idle for 12.1 ms: 80 % waiting for the data" in title
    assert "streams" not in title


def test_operators_are_drawn_as_modules_and_annotations_are_not_drawn() -> None:
    """The table of operators has the columns of modules, and so has its figure."""
    figure = device_time.kernels_report(job("demo"), [], by="operator").plot
    assert figure is not None
    assert figure().layout.title.text == hg.plot.module_breakdown(hg.operator_breakdown(job("demo"))).layout.title.text
    assert device_time.kernels_report(job("demo"), [], by="annotation").plot is None
