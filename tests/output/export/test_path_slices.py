from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.output.export.event_batches import slice_rows
from htagraph.output.export.path_slices import path_slices, us_texts
from htagraph.output.export.trace_writer import us


@given(st.lists(st.integers(-(2**62), 2**62), max_size=10))
@settings(max_examples=50)
def test_many_times_become_the_texts_of_each(times: list[int]) -> None:
    assert us_texts(np.array(times, np.int64)) == [
        str(us(time)) if time % 1000 else str(time // 1000) for time in times
    ]


@pytest.mark.parametrize("ranks", [None, [1]])
def test_each_segment_is_a_slice_that_says_what_the_table_says(ranks: list[int] | None) -> None:
    path = hg.critical_path(hg.load("data/demo", ranks=ranks))
    tids = {lane: 10 + lane for lane in range(-1, len(path.graph.lanes))}
    text = b",".join(slice_rows(some).joined for some in path_slices(path, tids, path.graph.origin_ns))
    slices = json.loads(b"[" + text + b"]", parse_float=Decimal)
    rows = path.to_frame().to_dict("records")
    assert len(slices) == len(rows)
    for event, row, start, length in zip(slices, rows, path.segments.start, path.segments.length, strict=True):
        shown = ("category", "edge", "gap", "kind", "name", "operator", "module", "before", "rank", "lane", "activity")
        expected = {"weight_us": us(length)} | {key: row[key] for key in shown if row[key] != ""}
        assert event["args"] == expected
        assert (event["ts"], event["dur"]) == (us(start - path.graph.origin_ns), us(length))
