"""Plans are the best of all sets of their changes, by a replay of every set."""

from __future__ import annotations

import tempfile

import pytest

import htagraph as hg
from benchmarks.planned import compared
from htagraph.simulate import SlowRank, simulate
from tests.whatif.changes.simulated import small


@pytest.mark.parametrize("regime", ["straggler", "communication_bound"])
def test_a_plan_is_the_best_of_all_sets(regime: str) -> None:
    """A slow rank and an operator that it runs shorten one time: both may be in a plan."""
    slow_ranks = (SlowRank(rank=1, factor=1.4),) if regime == "straggler" else ()
    job = small(regime).model_copy(update={"seed": 17, "jitter": 0.05, "slow_ranks": slow_ranks, "layers": 2})
    with tempfile.TemporaryDirectory() as folder:
        simulate(job).write(folder, level=1, truth=False)
        table = compared(hg.load(folder))
    assert table["offers"].max() > 2, "as many sets as changes would show nothing"
    assert (table["lost_percent"].abs() <= 0.1).all(), table[["plan", "best", "lost_percent"]].to_string()
