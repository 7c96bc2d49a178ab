"""Graphs that are kept between questions."""

from __future__ import annotations

import shutil
from pathlib import Path

from htagraph.service.graphs import Graphs
from tests.reach import REPOSITORY

DEMO = REPOSITORY / "data" / "demo" / "rank-0.json.gz"


def test_a_job_is_read_once_until_its_files_change(tmp_path: Path) -> None:
    file = Path(shutil.copy(DEMO, tmp_path / "rank-0.json.gz"))
    graphs = Graphs(cache=False)
    first = graphs.graph(file, [file])
    assert graphs.graph(file, [file]) is first
    assert graphs.graph(file, [file], steps=[5]) is not first
    shutil.copy(DEMO.with_name("rank-1.json.gz"), file)
    assert graphs.graph(file, [file]) is not first


def test_only_the_last_ones_are_kept() -> None:
    graphs = Graphs(cache=False)
    first = graphs.graph(DEMO, [DEMO], steps=[5])
    for steps in ([6], [7], [5, 6]):
        graphs.graph(DEMO, [DEMO], steps=steps)
    assert len(graphs) == 3
    assert graphs.graph(DEMO, [DEMO], steps=[5]) is not first
