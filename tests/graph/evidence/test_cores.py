"""Who waited for a core: jobs in which nobody did."""

from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph.graph.evidence.cores import cores_of


def test_a_job_with_devices_has_cores_to_spare() -> None:
    assert cores_of(hg.load("data/demo")) is None


def test_one_thread_waits_for_no_core() -> None:
    rows = pd.DataFrame({"name": ["a", "b"], "lane": ["main", "main"], "duration_ns": [10, 20]})
    edges = pd.DataFrame({"source": [0], "target": [1]})
    assert cores_of(hg.DependencyGraph.from_frames(rows, edges)) is None
