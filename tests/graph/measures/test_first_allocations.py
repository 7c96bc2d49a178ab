"""Which long calls of the allocator belong to the start of a process."""

from __future__ import annotations

import htagraph as hg
from tests.strategies import Json, kernel, launch, load, op, runtime

MS = 1000


def convolutions(*allocations_ms: float, loads_ms: float = 30, last_ms: float = 30) -> list[Json]:
    """Return operators of one name with a call of the allocator and a launch; the first and the last load a kernel."""
    events: list[Json] = []
    at = 0.0
    for number, each in enumerate(allocations_ms):
        is_last = number == len(allocations_ms) - 1
        load_us = MS * (loads_ms if number == 0 else last_ms if is_last else 0)
        events += [op("aten::conv", at, each * MS + load_us + 40), runtime("cudaMalloc", at + 5, each * MS)]
        events.append(launch(at + 10 + each * MS, 8 + load_us, number + 1))
        name = "last" if is_last else "conv"
        events.append(kernel(name, at + 25 + each * MS + load_us, 10, number + 1))
        at += each * MS + load_us + 100
    return events


def allocated_ms(graph: hg.DependencyGraph) -> list[int]:
    """Return how long the calls of the allocator take that are start-up."""
    acts, rows = graph.activities, graph.start_up.activity
    return [round(acts.duration[row] / 1e6) for row in rows.tolist() if graph.names[acts.name[row]] == "cudaMalloc"]


def test_a_call_far_longer_than_usual_is_start_up_in_any_operator_before_the_last_load() -> None:
    assert allocated_ms(load(convolutions(20, 0.3, 70, 0.3, 0.3, 0.3, 0.3))) == [20, 70]


def test_a_call_after_all_loads_or_one_as_long_as_others_is_none() -> None:
    assert allocated_ms(load(convolutions(20, 0.3, 0.3, 0.3, 0.3, 70, 0.3, last_ms=0))) == [20]
    assert 15 not in allocated_ms(load(convolutions(15, 15, 15, 15, 15, 15)))[1:]
