"""Why a change leaves a job as it is."""

from __future__ import annotations

import htagraph as hg
from htagraph.whatif.no_effect import why_no_effect
from tests.strategies import COMPUTE, kernel, launch, load, op, runtime


def test_time_that_nothing_waits_for_is_named() -> None:
    events = [launch(0, 5, 1), kernel(COMPUTE, 10, 1000, 1), op("beside", 20, 100)]
    outcome = hg.what_if(load(events)).scale(op="beside", factor=0.5).run()
    assert why_no_effect(outcome) == (
        "the job ends when it did (50.0 µs less to do, summed over threads and devices): nothing waits for the changed "
        "work, or other work takes as long"
    )
    assert outcome.notes[-1] == why_no_effect(outcome)


def test_a_change_that_has_an_effect_or_has_not_been_made_needs_no_reason() -> None:
    graph = load([op("alone", 0, 100)])
    assert not why_no_effect(hg.what_if(graph).run())
    assert not why_no_effect(hg.what_if(graph).scale(factor=0.5).run())


def test_calls_that_never_waited_for_the_device_say_so() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 20, 1), op("aten::item", 30, 40)]
    graph = load([*events, runtime("cudaStreamSynchronize", 40, 2), op("after", 100, 50)])
    outcome = hg.what_if(graph).remove_sync(op="aten::item").run()
    assert outcome.saved_ns == 0
    assert outcome.notes == (
        "the job ends when it did: nothing waits for the changed work, or other work takes as long",
    )
