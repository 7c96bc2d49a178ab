"""Of a recording of a moment, nothing is advised but to record whole steps."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.results import Results
from htagraph.findings.too_little import TOO_LITTLE
from tests.strategies import kernel, launch, load, op


def test_of_a_moment_nothing_is_advised_but_to_record_steps() -> None:
    graph = load([op("aten::relu", 0, 3), launch(1, 1, 1), kernel("relu", 3, 2, 1)])
    summary = hg.summarize(graph)
    assert [row.finding for row in summary.changes] == ["too_little"]
    assert summary.head.first == "Record whole steps of the job."
    assert summary.head.why[0] == "Too little was recorded to judge a job: 3 rows of a moment."
    assert summary.head.then == ""


def test_one_long_operator_can_be_judged() -> None:
    assert not TOO_LITTLE.when(Results(load([op("aten::mm", 0, 2000)])))


def test_many_rows_of_half_a_millisecond_can_be_judged() -> None:
    events = [op("aten::mm", 50 * number, 45) for number in range(10)]
    assert not TOO_LITTLE.when(Results(load(events)))
    assert TOO_LITTLE.when(Results(load(events[:9])))
