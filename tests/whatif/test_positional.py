"""Changes without keywords: a selection and a number, and the words of the command line, are the same changes."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

import htagraph as hg
from htagraph import DependencyGraph, Selection
from htagraph.core.errors import SelectionError
from htagraph.whatif.changes.host_factor import host_factor
from htagraph.whatif.changes.scale import scale
from htagraph.whatif.options import CHANGES
from htagraph.whatif.positional import check_keywords, of_graph, positional_options, required_keywords, takes_criteria
from htagraph.whatif.scenario import Scenario
from tests.reach import DATA, graph_of

EXACT: list[dict[str, Any]] = [
    {"kind": "computation"},
    {"kind": "communication", "rank": 2},
    {"kind": "memory", "step": [5, 6]},
    {"kind": "launch", "rank": 0},
    {"kind": "op", "min_us": 20},
    {"kind": "computation", "op": "aten::mm"},
    {"name": "*gemm*"},
    {"stream": 7, "rank": [0, 1]},
]
"""Criteria that mean nothing but the activities that meet them: no name of code, and not the whole host."""

SAME: dict[str, tuple[Callable[[Scenario], Scenario], Callable[[Scenario], Scenario]]] = {
    "scale": (lambda job: job.scale("name=*gemm*:0.5"), lambda job: job.scale(name="*gemm*", factor=0.5)),
    "set": (lambda job: job.set("name=*gemm*:12us"), lambda job: job.set_duration(name="*gemm*", ns=12_000)),
    "set by keywords": (lambda job: job.set(name="*gemm*", ns=1), lambda job: job.set_duration(name="*gemm*", ns=1)),
    "network": (lambda job: job.network(2), lambda job: job.scale_network(factor=2)),
    "scale_network": (lambda job: job.scale_network(2), lambda job: job.scale_network(factor=2)),
    "network's numbers": (
        lambda job: job.network("latency=10us,bandwidth=100GB/s"),
        lambda job: job.network(latency_us=10, bandwidth_gb_s=100),
    ),
    "host_factor": (lambda job: job.host_factor(0.8), lambda job: job.host_factor(factor=0.8)),
    "fix_straggler": (lambda job: job.fix_straggler(2), lambda job: job.fix_straggler(rank=2)),
    "remove": (lambda job: job.remove("kind=memory,step=6"), lambda job: job.remove(kind="memory", step=6)),
    "stream": (
        lambda job: job.move_to_stream("name=*gemm*:9"),
        lambda job: job.move_to_stream(name="*gemm*", stream=9),
    ),
}


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return graph_of(DATA / "demo")


@pytest.fixture(scope="module")
def gemms(graph: DependencyGraph) -> Selection:
    return graph.select(name="*gemm*")


@pytest.mark.parametrize("criteria", EXACT, ids=str)
def test_a_selection_is_the_criteria_that_select_it(graph: DependencyGraph, criteria: dict[str, Any]) -> None:
    job, selection = hg.what_if(graph), graph.select(**criteria)
    assert job.scale(selection, 0.5).run().makespan_ns == job.scale(factor=0.5, **criteria).run().makespan_ns
    assert job.remove(selection).run().makespan_ns == job.remove(**criteria).run().makespan_ns


@pytest.mark.parametrize("name", SAME)
def test_the_words_of_the_command_line_are_the_keywords(graph: DependencyGraph, name: str) -> None:
    spoken, keywords = (change(hg.what_if(graph)).run() for change in SAME[name])
    assert spoken.makespan_ns == keywords.makespan_ns


def test_every_option_has_a_method_of_its_name(graph: DependencyGraph) -> None:
    for option in CHANGES:
        assert callable(getattr(hg.what_if(graph), option.replace("-", "_"))), option


def test_names_and_what_is_inside_may_be_selections(graph: DependencyGraph) -> None:
    job = hg.what_if(graph)
    for which in ("aten::mm", "DistributedDataParallel.forward"):
        selection = graph.select(name=which)
        for keyword in ("name", "op"):
            by_name = job.scale(factor=0.5, **{keyword: which})
            assert job.scale(factor=0.5, **{keyword: selection}).run().makespan_ns == by_name.run().makespan_ns
    forward = "DistributedDataParallel.forward"
    backward = job.remove(backward_of=graph.select(name=forward)).run()
    assert backward.makespan_ns == job.remove(backward_of=forward).run().makespan_ns
    before = "Optimizer.step#AdamW.step"
    pauses = job.scale(factor=0, kind="untraced", before=graph.select(name=before)).run()
    assert pauses.makespan_ns == job.scale(factor=0, kind="untraced", before=before).run().makespan_ns


def test_a_number_may_be_a_text_with_its_unit(graph: DependencyGraph, gemms: Selection) -> None:
    job = hg.what_if(graph)
    assert repr(job.set(gemms, "12us")) == repr(job.set(gemms, 12_000.0))
    assert repr(job.scale(gemms, "0.5")) == repr(job.scale(gemms, 0.5))


def test_a_selection_of_the_recording_stays_one_after_other_changes(graph: DependencyGraph, gemms: Selection) -> None:
    fused = hg.what_if(graph).fuse(graph.select(kind="computation", rank=0))
    assert fused.state.graph is not graph
    assert fused.scale(gemms, 0.5).run().makespan_ns == fused.scale(factor=0.5, name="*gemm*").run().makespan_ns
    moved = of_graph({"activity": gemms, "factor": 2}, graph, fused.state.graph)
    assert moved["activity"].graph is fused.state.graph
    assert moved["factor"] == 2


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda job, _: job.scale(factr=0.5), TypeError, "scale needs factor=; did you mean 'factor'"),
        (lambda job, _: job.scale(nme="x", factor=1), SelectionError, "did you mean 'name'"),
        (lambda job, _: job.network(latncy_us=1), TypeError, "network has no latncy_us=.*did you mean 'latency_us'"),
        (lambda job, _: job.scale(0.5), TypeError, "a selection and a number"),
        (lambda job, _: job.scale("name=x"), ValueError, "lacks :FACTOR"),
        (lambda job, gemms: job.scale(gemms), TypeError, "scale needs factor="),
        (lambda job, gemms: job.scale(gemms, 1, 2), TypeError, "a selection and a number, or one text"),
        (lambda job, gemms: job.scale(1, gemms), TypeError, "a selection and a number, or one text"),
        (lambda job, _: job.scale(None), TypeError, r"not None \(NoneType\)"),
        (lambda job, gemms: job.set(gemms, "fast"), ValueError, "is not a duration such as"),
        (lambda job, gemms: job.infinite_host(gemms), TypeError, "infinite_host takes"),
        (lambda job, _: job.infinite_host("yes"), ValueError, "takes nothing"),
        (lambda job, gemms: job.inject(gemms, 1.3), TypeError, "its keywords .rank, factor."),
        (lambda job, _: job.remove(step=job.graph.select()), SelectionError, "activity=, name= or op="),
        (lambda job, _: job.scale(graph_of(DATA / "gloo_ddp").select(), 1), SelectionError, "of another graph"),
        (lambda job, _: job.remove(job.graph.select(name="no such")), SelectionError, "nothing matches"),
    ],
)  # fmt: skip
def test_a_wrong_argument_says_what_is_right(
    graph: DependencyGraph, gemms: Selection, ask: Callable[..., object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(hg.what_if(graph), gemms)


def test_the_parts_read_signatures(gemms: Selection) -> None:
    assert required_keywords(signature(scale)) == ["factor"]
    assert takes_criteria(signature(scale))
    assert not takes_criteria(signature(host_factor))
    check_keywords("scale", signature(scale), {"factor": 1, "name": "x"})
    read = CHANGES["scale"].read
    assert positional_options("scale", signature(scale), read, (gemms, 2)) == {"activity": gemms, "factor": 2}
