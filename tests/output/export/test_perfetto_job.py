"""A job's files as one: activities that no file shows, and the order of lanes; `test_perfetto` tests the whole."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.graph.activities import Lane
from htagraph.output.export.perfetto_job import Job, lane_order
from htagraph.output.export.trace_writer import slice_rows
from htagraph.output.scene import Slices


def test_activities_are_slices_with_their_numbers_and_their_time_on_the_path() -> None:
    acts = pd.DataFrame({"name": ["a", "b", "a"], "duration_ns": [5, 7, 1], "lane": ["x", "y", "x"]})
    graph = hg.DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0, 1], "target": [1, 2]}))
    job = Job.of(graph, "o.json")
    slices, *names = job.activities(0, np.array([0, 7_000, 0]), " there")
    assert isinstance(slices, Slices)
    read = json.loads(b"[" + bytes(slice_rows(slices).joined) + b"]")
    assert [event["name"] for event in read] == ["a", "b", "a"]
    assert [event["args"] for event in read] == [{"activity": 0}, {"activity": 1, "critical_us": 7}, {"activity": 2}]
    assert [event["tid"] for event in read] == [1, 2, 1]
    assert [event["args"]["name"] for event in names if isinstance(event, dict)] == ["rank 0 there", "x", "y"]


def test_main_threads_come_first_and_streams_last() -> None:
    lanes = (Lane(1, 5, 5), Lane(0, 0, 7, device=0, stream=7), Lane(0, 4, 9), Lane(0, 4, 4))
    assert sorted(range(-1, 4), key=lambda at: lane_order(lanes, at)) == [-1, 3, 2, 1, 0]
