"""Every figure of every kind of job: it is made, never shown, and its words are no markup."""

from __future__ import annotations

import json
import re

import pytest

import htagraph as hg
from htagraph.output.plot.choose import FIGURES, figure_function
from tests.output.plot.jobs import JOBS, job, result_of

_TAGS = re.compile(r"</?(?!br>|span|/span)[a-zA-Z]")


@pytest.fixture(autouse=True)
def _never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(*_: object, **__: object) -> None:
        pytest.fail("a figure was shown")

    monkeypatch.setattr("plotly.graph_objects.Figure.show", show)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", JOBS)
def test_every_figure_of_every_job_can_be_drawn(name: str, kind: str) -> None:
    figure = figure_function(name)(result_of(name, job(kind)))
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
