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


def test_the_title_is_one_line_with_the_figures_of_the_command() -> None:
    title = hg.stragglers(graph_of(DATA / "demo")).plot().layout.title.text.split("<br>")[0]
    assert title == "Rank 2 is the straggler: others wait 13.5 ms for it, 100 % of all waiting"


def test_what_makes_the_title_uncertain_is_said_below_it() -> None:
    title = hg.stragglers(graph_of(DATA / "gloo_ddp")).plot().layout.title.text.replace("<br>", " ")
    finding, _, about = title.partition("<span")
    assert " by chance" not in finding
    assert "nobody can tell" in about or "straggler" in finding


def test_one_rank_has_nothing_to_compare_with() -> None:
    figure = hg.stragglers(hg.load(DATA / "demo", ranks=[0])).plot()
    assert figure.layout.title.text.startswith("Only one rank was read")
