"""Which processes are ranks, and what an export says of its recording."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import RankError
from htagraph.trace.discover import rank_files
from htagraph.trace.readers import read_trace
from tests.trace.nsys.made import small


def test_processes_of_one_file_are_ranks_in_the_order_of_their_devices(tmp_path: Path) -> None:
    path = small(tmp_path / "report.sqlite", pids=(300, 200))  # device 0 is that of process 300
    graph = hg.load(path)
    assert graph.ranks == (0, 1)
    assert [graph.traces[rank].lanes[0] for rank in graph.ranks] == [(0, 7), (1, 7)]
    assert {lane.pid for lane in graph.lanes if lane.rank == 0 and lane.device < 0} == {300}
    assert hg.load(path, ranks=[1]).ranks == (1,)
    assert not [issue for issue in graph.issues if issue.what in ("same_file", "other_process")]
    with pytest.raises(RankError, match="2 processes that used a device"):
        hg.load({0: path})
    job = hg.load(path, engine=1)
    assert job.missing == ()


def test_files_of_ranks_and_of_nodes(tmp_path: Path) -> None:
    for rank in range(2):
        small(tmp_path / f"report_{rank}.sqlite")
    assert hg.load(tmp_path).ranks == (0, 1)
    for node in range(2):
        small(tmp_path / f"report_{node}.sqlite", pids=(10, 20))
    assert hg.load(tmp_path).ranks == (0, 1, 2, 3)
    small(tmp_path / "other.sqlite", pids=(10, 20))
    with pytest.raises(RankError, match="differ in more than a number"):
        hg.load(tmp_path)


def test_the_environment_of_nsys_says_the_rank(tmp_path: Path) -> None:
    environment = {"name": "DeviceEnvironment", "value": "HOME=/root;RANK=3;WORLD_SIZE=4"}
    path = small(
        tmp_path / "a.sqlite", more={"TARGET_INFO_SYSTEM_ENV": [environment, {"name": "Hostname", "value": "n1"}]}
    )
    (file,) = rank_files(path)
    facts = read_trace(file.path, file.rank_in).facts
    assert (file.rank, facts.world_size, facts.host) == (3, 4, "n1")
