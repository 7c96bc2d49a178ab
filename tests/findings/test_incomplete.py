"""Whether a recording that lacks a part of the job is said to, and nothing is concluded that rests on the part."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.changes import ranked
from htagraph.findings.incomplete import INCOMPLETE, missing_parts
from htagraph.findings.results import Results
from htagraph.graph.measures.ledger import Part
from tests.strategies import Json, launch, load, op, runtime


def _without_kernels() -> list[Json]:
    """Return a job whose launches and waits for the device are recorded, and nothing that the device did."""
    events: list[Json] = []
    for number in range(30):
        at = 100 * number
        events += [op("aten::linear", at, 40), launch(at + 5, 8, number + 1)]
        events.append(runtime("cudaDeviceSynchronize", at + 40, 60))
    return events


def test_what_is_missing_comes_first_and_no_verdict_rests_on_it() -> None:
    graph = load(_without_kernels())
    claims = hg.summarize(graph).claims
    assert [claim.says for claim in claims] == ["incomplete"]
    assert INCOMPLETE.whole(claims[0]) == (
        "The recording lacks the work of devices: 30 of 30 launch calls have no kernel or copy in the file, while the "
        "host waits 1.80 ms of 3.00 ms for devices that do nothing in the file and are likely the limit. What bounds "
        "the job, when its device is idle and what changes gain cannot be said."
    )
    (row,) = ranked(claims)
    assert row.text.startswith("Record again: without a second profiler")


def test_what_is_missing_is_a_value_with_how_to_record_it() -> None:
    (missing,) = missing_parts(load(_without_kernels()))
    assert (missing.lost, missing.ranks) == (Part.DEVICE, (0,))
    assert missing.sentence.startswith("The recording lacks the work of devices: 30 of 30")
    assert missing.advice.startswith("Record again")


def test_a_host_alone_lacks_nothing() -> None:
    graph = load([op("aten::mm", 100 * number, 90) for number in range(30)])
    assert INCOMPLETE.when(Results(graph)) == []


def test_a_host_that_hardly_waits_says_nothing_of_the_limit() -> None:
    events = [event for event in _without_kernels() if event["name"] != "cudaDeviceSynchronize"]
    (missing,) = missing_parts(load(events))
    assert missing.why == "30 of 30 launch calls have no kernel or copy in the file"
