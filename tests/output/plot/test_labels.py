"""Labels of figures: one for each name."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.plot.hta_shapes.breakdowns import user_annotation_breakdown
from htagraph.output.plot.labels import unique_labels

NAMES = st.lists(st.text(alphabet="ab<>( ", max_size=6) | st.just("x" * 61) | st.just("x" * 62), max_size=8)


@given(NAMES)
def test_different_names_have_different_labels(names: list[str]) -> None:
    labels = unique_labels(names)
    assert set(labels) == set(names)
    assert len(set(labels.values())) == len(set(names))


def test_a_pie_has_as_many_items_as_there_are_annotations() -> None:
    """plotly sums up the slices of one label, so equal labels lose items."""
    names = [f"forward(batch={number})" for number in range(31)]
    times = {f"{what} (us)": [1.0] * 31 for what in ("sum", "mean", "max", "min")}
    pie, bars = user_annotation_breakdown(pd.DataFrame({"rank": 0, "name": names, **times}))
    assert len(set(pie.data[0].labels)) == 31
    assert list(pie.data[0].customdata) == names
    assert len({bar.name for bar in bars.data}) == 31
