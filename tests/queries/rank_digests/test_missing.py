from __future__ import annotations

import json
from pathlib import Path

import htagraph as hg
from htagraph.queries.rank_digests.missing import missing_ranks
from tests.reach import DATASETS, graph_of
from tests.strategies import op


def test_a_whole_job_lacks_no_rank() -> None:
    assert missing_ranks(graph_of(DATASETS[0])) == ()


def test_a_job_without_any_word_about_its_size_lacks_no_rank(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [op("aten::mm", 0, 5)]}))
    assert missing_ranks(hg.load({4: tmp_path / "a.json"})) == ()


def test_members_of_process_groups_are_ranks(tmp_path: Path) -> None:
    info = {"rank": 1, "pg_config": [{"pg_name": "0", "pg_size": 3, "ranks": [1, 5, 9]}]}
    (tmp_path / "a.json").write_text(json.dumps({"distributedInfo": info, "traceEvents": [op("aten::mm", 0, 5)]}))
    assert missing_ranks(hg.load(tmp_path / "a.json")) == (5, 9)


def test_a_damaged_number_of_ranks_takes_no_memory(tmp_path: Path) -> None:
    info = {"rank": 0, "world_size": 10**15}
    (tmp_path / "a.json").write_text(json.dumps({"distributedInfo": info, "traceEvents": [op("aten::mm", 0, 5)]}))
    assert len(missing_ranks(hg.load(tmp_path / "a.json"))) < 1 << 21
