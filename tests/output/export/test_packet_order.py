"""Slices that begin at one moment: longer ones first on a track, tails of arrows before their heads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.export.packet_order import held_back

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)
pairs = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=6)


@given(rows, pairs)
def test_what_begins_together_stands_in_order(rows: list[tuple[int, int, int]], pairs: list[tuple[int, int]]) -> None:
    track, start, duration = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    # arrows from a track to a later one never make a circle
    arrows = [(tail, head) for tail, head in pairs if max(tail, head) < len(rows) and track[tail] < track[head]]
    tails, heads = (np.array([arrow[at] for arrow in arrows], np.int64) for at in range(2))
    late = held_back(track, start, duration, (tails, heads)).tolist()
    order = [row for row in range(len(rows)) if row not in late] + late
    assert sorted(order) == list(range(len(rows)))
    place = {row: at for at, row in enumerate(order)}
    for a in range(len(rows)):
        for b in range(len(rows)):
            if (track[a], start[a]) == (track[b], start[b]) and duration[a] > duration[b]:
                assert place[a] < place[b]
    assert all(place[tail] < place[head] for tail, head in arrows if start[tail] == start[head])


def test_what_is_in_order_stays_where_it_is() -> None:
    start = np.array([0, 0, 5, 5, 5])
    none = np.zeros(0, np.int64)
    assert not len(held_back(np.zeros(5), start, np.array([9, 4, 3, 3, 0]), (none, none)))
