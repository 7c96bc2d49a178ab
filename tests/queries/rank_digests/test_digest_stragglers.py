from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.simulate import Job, SlowRank, simulate
from tests.digests import job_of
from tests.reach import DATASETS, graph_of, label

SAME = ("waits_us", "late_count", "own_step_us", "step_excess_us", "step_error_us", "slow", "slow_steps")


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_the_straggler_and_its_figures_are_those_of_the_whole_graph(folder: Path) -> None:
    own, whole = job_of(folder).stragglers(), hg.stragglers(graph_of(folder))
    assert own.straggler == whole.straggler
    assert own.total_wait_us == whole.total_wait_us
    assert own.steps == whole.steps
    for column in SAME:
        one, other = own.to_frame()[column].to_numpy(), whole.to_frame()[column].to_numpy()
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), column


def test_a_slow_rank_is_named_with_what_is_slow(tmp_path: Path) -> None:
    simulate(Job(ranks=4, steps=4, slow_ranks=(SlowRank(rank=1, factor=1.2),))).write(tmp_path)
    files = sorted(tmp_path.glob("rank-*.json.gz"))
    found = hg.joined_job([hg.digest(hg.load({rank: file})) for rank, file in enumerate(files)]).stragglers()
    assert found.straggler == 1
    table = found.to_frame().set_index("rank")
    assert table.loc[1, "cause"] == "kernels"
    assert table["share_percent"].to_dict()[1] > 90
    assert repr(found).startswith("RankStragglers(rank 1, ")


def test_charges_add_up_to_the_waiting() -> None:
    for folder in DATASETS:
        found = job_of(folder).stragglers()
        assert found.to_frame()["blamed_us"].sum() <= found.total_wait_us + 1e-6


def test_one_rank_has_no_straggler() -> None:
    found = hg.joined_job([hg.digest(hg.load(DATASETS[0], ranks=[2]))]).stragglers()
    assert found.straggler is None
    assert found.total_wait_us == 0
