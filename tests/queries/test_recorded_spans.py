"""When the recording of each rank begins and ends, as a table."""

from __future__ import annotations

from htagraph.queries.recorded_spans import recorded_spans
from tests.host_jobs import host_job
from tests.strategies import op, step


def test_later_beginnings_and_earlier_ends_are_measured_from_the_first_and_the_last() -> None:
    graph = host_job({0: [step(3, 0, 900), op("a", 0, 10)], 1: [step(4, 700, 100)], 5: [op("b", 50, 50)]})
    table = recorded_spans(graph).set_index("rank")
    assert table["begins_later_us"].to_dict() == {0: 0.0, 1: 700.0, 5: 50.0}
    assert table["ends_earlier_us"].to_dict() == {0: 0.0, 1: 100.0, 5: 800.0}
    assert table["begin_us"].to_dict() == {0: 0.0, 1: 700.0, 5: 50.0}
    assert table["end_us"].to_dict() == {0: 900.0, 1: 800.0, 5: 100.0}
    assert table["first_step"].to_dict() == {0: 3, 1: 4, 5: -1}
    assert table["last_step"].to_dict() == {0: 3, 1: 4, 5: -1}
