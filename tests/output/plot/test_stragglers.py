from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from tests.reach import DATA, graph_of


def test_a_cell_is_how_much_longer_a_rank_takes_than_the_others() -> None:
    result = hg.stragglers(graph_of(DATA / "demo"))
    (heat,) = result.plot().data
    wide = result.by_step.pivot_table(index="rank", columns="step", values="own_us")
    others = np.array([np.median(np.delete(wide.to_numpy(), rank, 0), axis=0) for rank in range(4)])
    assert (heat.z * 1000).ravel().tolist() == pytest.approx((wide.to_numpy() - others).ravel().tolist())
    assert np.median(heat.z[2] * 1000) == pytest.approx(result.ranks["step_excess_us"][2])


def test_the_title_is_what_the_command_says() -> None:
    title = hg.stragglers(graph_of(DATA / "demo")).plot().layout.title.text.replace("<br>", " ")
    assert title.startswith(
        "Rank 2 is the straggler: 100 % of the wait time (13.5 ms over all ranks) is charged to it "
    )


def test_one_rank_has_nothing_to_compare_with() -> None:
    figure = hg.stragglers(hg.load(DATA / "demo", ranks=[0])).plot()
    assert figure.layout.title.text.startswith("Only one rank was read")
