"""Whether ends of arrows find each other, against a walk over the ends in time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.issues import IssueLog
from htagraph.output.export.arrows import ArrowEnds
from htagraph.trace.kineto.collecting import Columns

ENDS = st.lists(
    st.tuples(
        st.sampled_from("stf"),
        st.sampled_from(["ac2g", "fwdbwd"]),
        st.integers(0, 3),
        st.integers(0, 8),
        st.integers(0, 4),
    ),
    max_size=25,
)
"""Phase, category, id, time (µs), and the slice that the end meets plus 1."""


@given(ENDS)
def test_each_head_has_the_last_tail_of_its_id(rows: list[tuple[str, str, int, int, int]]) -> None:
    start = np.array([0, 2000, 1000, 5000])
    columns = Columns(IssueLog(""))
    ends = ArrowEnds(columns)
    events: list[Any] = [
        SimpleNamespace(ph=phase, cat=category, name="n", id=number, ts=moment, pid=slice_, tid=0)
        for phase, category, number, moment, slice_ in rows
    ]
    ends.add(events, exact=False)
    slice_of = {number: lane[0] - 1 for lane, number in columns.lanes.items()}
    arrows = ends.arrows(
        start,
        lambda lane, _: np.array([slice_of[each] for each in lane.tolist()], np.int64),
        np.asarray,
        unpadded=False,
    )
    expected, used, tails = [], set(), dict[tuple[str, int], int]()
    for at in sorted(range(len(rows)), key=lambda at: (rows[at][3], rows[at][0] != "s")):
        phase, category, number, _, slice_ = rows[at]
        tail = tails.get((category, number))
        first = -1 if tail is None else rows[tail][4] - 1
        if phase != "s" and first >= 0 and slice_ > 0 and first != slice_ - 1 and start[first] <= start[slice_ - 1]:
            expected.append((category, "n", first, slice_ - 1))
            used |= {at, tail}
        if phase != "f":
            tails[category, number] = at
    assert (list(arrows), arrows.ends_left_out) == (expected, len(rows) - len(used))


@pytest.mark.parametrize("bad", ["", "soon", "1e300", None, msgspec.Raw(b""), msgspec.Raw(b'""'), 1e300, float("nan")])
def test_arrows_and_instants_without_a_time_cost_the_others_nothing(bad: object) -> None:
    ends = ArrowEnds(Columns(IssueLog("")))
    events: list[Any] = [
        SimpleNamespace(ph=phase, cat="c", name="n", id=1, ts=moment, pid=1, tid=1)
        for phase, moment in [("s", 1), ("s", bad), ("f", 3), ("i", bad), ("C", 7), ("C", bad)]
    ]
    ends.add(events, exact=False)
    assert ends.others(unpadded=False).tolist() == [7_000]
    arrows = ends.arrows(
        np.array([0, 2000]), lambda _, moment: (moment > 2000).astype(np.int64), np.asarray, unpadded=False
    )
    assert list(arrows) == [("c", "n", 0, 1)]
