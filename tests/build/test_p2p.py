"""P2P edges: sends and receives of pipelines wait for each other as the simulator knows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htagraph import EdgeKind
from htagraph.simulate import Job, simulate
from tests.build.test_collective import awaited, truly_awaited
from tests.build.test_matching import OFFSETS, loaded


@pytest.mark.parametrize("era", ["2026", "2024", "2021"])
@pytest.mark.parametrize("args", [True, False])
@pytest.mark.parametrize("shape", [{"ranks": 4, "parallelism": "pipeline"}, {"ranks": 4, "tp": 2, "pp": 2}])
def test_pairs_wait_for_each_other(era: str, args: bool, shape: dict[str, object], tmp_path: Path) -> None:  # noqa: FBT001
    job = Job.model_validate({"steps": 2, "era": era, "group_args": args, "clock_offsets_us": OFFSETS[:4], **shape})
    done = simulate(job)
    graph = loaded(done, tmp_path)
    truth, mine = truly_awaited(done, graph), awaited(graph)
    assert set(mine) == set(truth)
    for member, arrivals in truth.items():
        assert arrivals <= mine[member] <= arrivals | {member}


def test_sends_and_receives_have_edges_of_their_own_kind(tmp_path: Path) -> None:
    graph = loaded(simulate(Job(ranks=2, parallelism="pipeline", steps=1)), tmp_path)
    matches = graph.matches
    assert matches is not None
    assert set(matches.op) == {"send_recv"}
    assert (np.bincount(matches.collective) == 2).all()
    kinds = set(graph.edges.kind.tolist())
    assert EdgeKind.P2P in kinds
    assert EdgeKind.COLLECTIVE not in kinds
    leaving = (graph.edges.kind == EdgeKind.P2P) & (graph.edges.target % 2 == 1)
    assert sorted(graph.edges.activity[leaving].tolist()) == sorted(matches.activity.tolist())
