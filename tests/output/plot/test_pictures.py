from __future__ import annotations

import numpy as np
import pytest

from htagraph.output.plot.pictures import category_map, category_ticks, parts_by_rank
from htagraph.output.plot.style import MAX_BARS


@pytest.mark.parametrize(("ranks", "kind"), [(1, "bar"), (MAX_BARS, "bar"), (MAX_BARS + 1, "heatmap")])
def test_up_to_32_ranks_are_bars(ranks: int, kind: str) -> None:
    labels = [str(rank) for rank in range(ranks)]
    traces, _ = parts_by_rank(labels, {"a": np.ones(ranks)}, {"a": "#000000"}, {"a": labels}, "ms")
    assert {trace.type for trace in traces} == {kind}


@pytest.mark.parametrize("rows", [1, 40, 41, 512])
def test_few_labels_are_drawn_beside_many_rows(rows: int) -> None:
    axis = category_ticks([str(row) for row in range(rows)])
    assert len(axis["ticktext"]) <= 40
    assert set(axis["tickvals"]) <= set(axis["categoryarray"])
    assert axis["tickvals"][0] == "0"


def test_a_category_has_the_whole_stretch_of_its_colour() -> None:
    colors = ["#111111", "#222222", "#333333"]
    picture = category_map(np.array([0.0]), ["row"], np.array([[1.0]]), colors, [["x"]])
    place = (1.0 - picture.zmin) / (picture.zmax - picture.zmin)
    below = [color for at, color in picture.colorscale if at <= place]
    above = [color for at, color in picture.colorscale if at >= place]
    assert below[-1] == above[0] == "#222222"
