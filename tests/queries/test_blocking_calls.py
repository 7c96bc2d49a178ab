"""Where the host waits longest for its device."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.queries.blocking_calls import longest_blocking
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime


def waiting(*, operator: bool, python_us: int) -> list[Json]:
    """Return steps that launch 100 µs of work, wait for it (in an operator or not), and run Python after that."""
    events: list[Json] = []
    for number in range(5):
        at, call = (160 + python_us) * number, 10 * number + 1
        events += [launch(at, 1, call), kernel(COMPUTE, at + 5, 100, call)]
        events += [runtime("cudaStreamSynchronize", at + 20, 90, call + 1), op("python", at + 130, python_us)]
        if operator:
            events += [annotation("loss", at + 8, 110), op("aten::item", at + 10, 105), op("aten::inner", at + 15, 98)]
    return events


@pytest.mark.parametrize(("operator", "name"), [(True, "aten::item"), (False, "cudaStreamSynchronize")])
def test_the_outermost_operator_is_named_or_else_the_call(*, operator: bool, name: str) -> None:
    graph = load(waiting(operator=operator, python_us=80))
    place = longest_blocking(graph)
    assert place is not None
    assert (place.name, place.count, place.blocked_ns) == (name, 5, 5 * 90_000)
    assert place.criteria == {"op" if operator else "name": name}
    assert hg.what_if(graph).remove_sync(**place.criteria).run().saved_ns > 100_000


def test_calls_that_never_wait_or_whose_work_is_over_do_not_count() -> None:
    again = [runtime("cudaStreamSynchronize", 270 * number + 120, 3, 900 + number) for number in range(5)]
    steps = waiting(operator=False, python_us=110)
    assert longest_blocking(load([*steps, *again])) == longest_blocking(load(steps))
    assert longest_blocking(load([launch(0, 1, 1), kernel(COMPUTE, 5, 100, 1)])) is None
    assert longest_blocking(load([])) is None


def test_a_summary_says_it_only_where_it_gains() -> None:
    graph = load(waiting(operator=True, python_us=80))
    (claim,) = [claim for claim in hg.summarize(graph).claims if claim.says == "blocking"]
    assert claim.figure == hg.what_if(graph).remove_sync(op="aten::item").run().saved_ns / 1000
    assert claim.facts["target"] == "op=aten::item"
    last = load([launch(0, 1, 1), kernel(COMPUTE, 5, 100, 1), runtime("cudaStreamSynchronize", 20, 90, 2)])
    assert not [claim for claim in hg.summarize(last).claims if claim.says == "blocking"]
