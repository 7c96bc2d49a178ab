from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.kernel_costs import device_name
from tests.reach import DATA


def test_a_recording_names_its_device_and_a_frame_may() -> None:
    assert device_name(hg.load(DATA / "gloo_ddp", ranks=[0]), 0) == ""
    acts = pd.DataFrame({"duration_ns": [1, 2], "device": ["T4", None]})
    assert device_name(DependencyGraph.from_frames(acts, pd.DataFrame({"source": [], "target": []})), 0) == "T4"
