from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from tests.reach import JOBS, LARGE_BYTES, graph_of, label


@pytest.mark.parametrize(
    "path", [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES], ids=label
)
def test_nothing_changed_is_exact_and_extremes_are_bounds(path: Path) -> None:
    graph = graph_of(path)
    start = hg.what_if(graph)
    assert np.array_equal(start.run().time, graph.time)
    if not len(graph.activities):
        return
    quick, none = start.scale(factor=0.5).run(), start.scale(factor=0).run()
    assert none.makespan_ns <= quick.makespan_ns <= quick.baseline_ns
    assert (start.infinite_host().run().time <= graph.time).all()
    assert (none.time <= quick.time).all()


def test_a_bound_is_found_by_halving_each_resource() -> None:
    graph = graph_of(next(path for path in JOBS if path.name == "demo"))
    gain = {kind: hg.what_if(graph).scale(factor=0.5, kind=kind).run().saved_ns for kind in ("host", "device")}
    assert max(gain.values()) > 0
    assert hg.what_if(graph).scale(factor=0.5).run().saved_ns >= max(gain.values())
