"""Whether the next change of a list does not repeat the first one."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.changes import changes_of
from htagraph.findings.repeated import offer_of, repeats
from htagraph.findings.results import Results
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load


def transferring(rank: int) -> list[Json]:
    """Return transfers of 100 µs, each behind a kernel of 50 µs; all are launched ahead."""
    events = list[Json]()
    for at in range(5):
        begin = 100 + 155 * at
        events += [launch(10 * at, 2, 10 * at + 1), kernel(COMPUTE, begin, 50 + rank, 10 * at + 1)]
        events += [launch(10 * at + 4, 2, 10 * at + 2), kernel(COMMUNICATE, begin + 53, 100, 10 * at + 2)]
    return events


def test_all_transfers_and_transfers_of_a_name_are_one_subject() -> None:
    results = Results(load({0: transferring(0), 1: transferring(1)}))
    halved = ("--scale", "kind=communication:0.5")
    assert repeats(results, halved, ("--network", "0"))
    assert not repeats(results, ("--scale", "kind=computation:0.5"), ("--network", "0"))


@pytest.mark.parametrize(("first", "is_repeated"), [("kind=computation:0", True), ("kind=communication:0", False)])
def test_a_part_of_the_first_change_is_no_next_change(first: str, *, is_repeated: bool) -> None:
    results = Results(load(transferring(0)))
    assert repeats(results, ("--scale", f"name={COMPUTE}:0.5"), ("--scale", first)) is is_repeated


def test_the_next_change_of_a_head_is_none_that_repeats_the_first() -> None:
    graph = graph_of(DATA / "demo")
    found = changes_of(Results(graph))
    repeated = [row.change.title for row in found if row.is_repeated and row.change]
    then = hg.summarize(graph).head.then
    assert not any(title in then for title in repeated)


def test_an_offer_makes_the_change_of_its_options() -> None:
    graph = graph_of(DATA / "demo")
    offer = offer_of("products", ["--scale", "op=aten::mm:0.5"])
    expected = hg.what_if(graph).scale(factor=0.5, op="aten::mm").run()
    assert offer.apply(hg.what_if(graph)).run().saved_ns == expected.saved_ns
