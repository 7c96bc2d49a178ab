from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph.queries.device_annotations as module
from htagraph.queries.device_annotations import device_annotations, narrowest
from tests.strategies import COMPUTE, complete, kernel, load

_intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=10)


def slow(work: list[tuple[int, int]], over: list[tuple[int, int]]) -> list[int]:
    found = []
    for start, took in work:
        around = [
            (length, -i)
            for i, (begin, length) in enumerate(over)
            if length and begin < start + max(took, 1) and begin + length > start
        ]
        found.append(-min(around)[1] if around else -1)
    return found


@given(_intervals, _intervals, st.sampled_from([1, 7, 1 << 22]))
@settings(max_examples=200)
def test_the_narrowest_is_what_trying_all_finds(
    work: list[tuple[int, int]], over: list[tuple[int, int]], pairs: int
) -> None:
    columns = [np.array([pair[0] for pair in each], np.int64) for each in (work, over)]
    ends = [np.array([sum(pair) for pair in each], np.int64) for each in (work, over)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_PAIRS", pairs)  # however few are compared at once
        found = narrowest(columns[0], ends[0], columns[1], ends[1])
    assert found.tolist() == slow(work, over)


def test_annotations_know_the_lane_of_their_stream() -> None:
    marks = [complete("gpu_user_annotation", "a", 0, 5, tid) | {"pid": 0} for tid in (7, 20)]
    graph = load([kernel(COMPUTE, 0, 5), *marks])
    table = device_annotations(graph, 0)
    assert [graph.lanes[lane].stream if lane >= 0 else None for lane in table["lane"]] == [7, None]
    assert device_annotations(load([*marks]), 0).empty
