"""A wait for something outside of the recording is called a data loader by no verb, where a job has no loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph import EdgeKind
from tests.damage import document, written
from tests.graph.evidence.test_outside import WORK, paced
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, op, step

_WORDS = ("data loader", "dataloader", "data_loading", "data loading", "data-loading")
_VERBS = {
    "summary": ["--full"], "critical-path": [], "stragglers": [], "collectives": [], "kernels": [], "idle": [],
    "launches": [], "phases": [], "opportunities": [], "plan": [], "what-if": ["--scale", "op=learn:0.5"],
}  # fmt: skip
"""Options of each verb."""


def events_of() -> list[Json]:
    """Return the events of a loop that gets each item from another process."""
    events, at = list[Json](), 0
    for number, (work, wait) in enumerate(zip(WORK, paced(WORK), strict=True)):
        events += [step(number, at, wait + work), annotation("fetch", at, wait), op("learn", at + wait, work)]
        events += [launch(at + wait + 1, 2, number + 1), kernel(COMPUTE, at + wait + 10, work - 20, number + 1)]
        at += wait + work
    return events


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outside") / "trace.json"
    return written(path, document(events_of()))


def test_the_job_waits_for_something_outside_and_is_bound_by_it(job: Path) -> None:
    graph = hg.load(job)
    assert EdgeKind.OUTSIDE in graph.edges.kind
    assert EdgeKind.DATALOADER not in graph.edges.kind
    assert "waiting for another process or thread in fetch" in str(hg.summarize(graph))


@pytest.mark.parametrize("verb", _VERBS)
@pytest.mark.parametrize("form", ["table", "json"])
def test_no_verb_speaks_of_a_loader(job: Path, verb: str, form: str, run: Any) -> None:
    ran = run(verb, str(job), *_VERBS[verb], "--format", form)
    assert ran.code == 0, ran.err
    assert not [word for word in _WORDS if word in ran.out.lower()]


def test_drawings_and_views_speak_of_no_loader(job: Path) -> None:
    graph = hg.load(job)
    path = hg.critical_path(graph)
    drawing = hg.to_graphviz(path).source.lower()
    assert not [word for word in _WORDS if word in drawing]
    assert "outside" in set(path.to_frame()["category"])
    assert "outside" in {edge["kind"] for *_, edge in graph.as_networkx().edges(data=True)}
