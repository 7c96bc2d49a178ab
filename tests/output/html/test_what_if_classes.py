"""Sliders are what has time on the critical path, each with the option that selects it."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.html.what_if_classes import sliders, starts
from htagraph.whatif.change_options import CHANGES
from tests.reach import DATA, graph_of
from tests.strategies import load


def test_the_option_of_a_slider_selects_its_time() -> None:
    graph = graph_of(DATA / "demo")
    found = sliders(graph, hg.opportunities(graph))
    assert [each.name for each in found][:2] == ["All kernels", "GEMM kernels"]
    for slider in found:
        option, which = slider.option
        by_option = CHANGES[option.removeprefix("--")].read(f"{which}0.5").apply(hg.what_if(graph)).run()
        assert by_option.makespan_ns == hg.what_if(graph).scale(factor=0.5, **slider.criteria).run().makespan_ns


def test_no_two_sliders_are_the_same_time() -> None:
    graph = graph_of(DATA / "demo")
    names = [each.name for each in sliders(graph, hg.opportunities(graph, top=20))]
    assert len(names) == len(set(names))
    assert not any(name.startswith("group") for name in names)  # all transfers are one group


def test_a_start_is_what_its_option_makes() -> None:
    graph = graph_of(DATA / "demo")
    first, *others = starts(graph)
    assert first.option == ()
    assert others
    assert ("--free-dataloader",) in [each.option for each in others]
    assert ("--remove-sync", "op=aten::item") in [each.option for each in others]  # where the host waits longest
    for start in others:
        option, value = (*start.option, "")[:2]
        expected = CHANGES[option.removeprefix("--")].read(value).apply(hg.what_if(graph))
        assert (start.state.lag == expected.state.lag).all()


def test_a_job_without_work_has_no_slider() -> None:
    graph = load([])
    assert sliders(graph, hg.opportunities(graph)) == []
