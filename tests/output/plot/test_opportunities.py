from __future__ import annotations

import pandas as pd
import pytest

import htagraph as hg
from tests.reach import DATA, graph_of


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return hg.opportunities(graph_of(DATA / "demo"))


def test_bars_are_gains_below_their_ceilings(table: pd.DataFrame) -> None:
    ceiling, gain, half = hg.plot.opportunities(table).data
    assert gain.x.tolist() == pytest.approx((table["gain_us"] / 1000).tolist())
    assert ceiling.x.tolist() == pytest.approx((table["critical_us"] / 1000).tolist())
    assert half.x.tolist() == pytest.approx((table["gain_at_50_us"] / 1000).tolist())
    assert (ceiling.x >= gain.x - 1e-9).all()


def test_each_row_has_a_label_of_its_own(table: pd.DataFrame) -> None:
    twice = pd.concat([table, table], ignore_index=True)
    labels = hg.plot.opportunities(twice).layout.yaxis.ticktext
    assert len(set(labels)) == len(labels) == len(twice)


def test_the_title_is_the_first_row(table: pd.DataFrame) -> None:
    title = hg.plot.opportunities(table).layout.title.text
    assert title.startswith("Largest gain: 5.58 ms (21 % of the job) if operator aten::mm took no time<br>")


def test_a_curve_without_halves_has_no_marks(table: pd.DataFrame) -> None:
    assert len(hg.plot.opportunities(table.drop(columns="gain_at_50_us")).data) == 2
