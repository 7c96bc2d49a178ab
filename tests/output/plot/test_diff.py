from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.analyses.differences.diff import Diff
from tests.reach import DATA, graph_of


@pytest.fixture(scope="module")
def change() -> Diff:
    graph = graph_of(DATA / "demo")
    slower = hg.what_if(graph).scale(factor=2.0, kind="computation").run().graph
    return hg.diff(graph, slower)


@pytest.mark.parametrize("by", ["rank", "category", "edge", "operator", "kernel", "module"])
def test_the_bars_lead_from_before_to_after(change: Diff, by: str) -> None:
    (waterfall,) = hg.plot.diff(change, by=by).data  # type: ignore[arg-type]
    values = np.array(waterfall.x[:-1], float)
    assert values[0] == pytest.approx(change.before_us / 1000)
    assert values.sum() == pytest.approx(change.after_us / 1000)
    assert values[1:].sum() == pytest.approx(change.change_us / 1000)


def test_the_title_is_the_first_sentence(change: Diff) -> None:
    title = change.plot().layout.title.text.partition("<br>")[0]
    assert change.sentences()[0].startswith(title)


def test_what_it_is_divided_by_must_be_known(change: Diff) -> None:
    with pytest.raises(ValueError, match="by='stream' is not known"):
        hg.plot.diff(change, by="stream")  # type: ignore[arg-type]
