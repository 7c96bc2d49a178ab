from __future__ import annotations

import htagraph as hg
from htagraph.queries.weights import initial
from htagraph.whatif.straggler_gain import straggler_gain
from htagraph.whatif.trial import Trial
from tests.reach import DATA, graph_of


def test_the_straggler_gains_what_fixing_it_gains() -> None:
    graph = graph_of(DATA / "demo")
    (row,) = straggler_gain(Trial(initial(graph)), {"gain_at_50_us": 0.5, "gain_at_0_us": 0.0}, 3)
    fixed = hg.what_if(graph).fix_straggler(rank=2).run()
    assert row["name"] == "rank 2 beyond its peers'"
    assert round(1000 * row["gain_us"]) == round(1000 * row["gain_at_0_us"]) == fixed.saved_ns
    assert 0 < row["gain_at_50_us"] < row["gain_us"] <= row["critical_us"] <= row["time_us"]
    assert row["gain_per_step_us"] == row["gain_us"] / 3


def test_a_job_without_a_straggler_has_no_such_row() -> None:
    assert straggler_gain(Trial(initial(hg.load(DATA / "demo", ranks=[0]))), {}, 3) == []
