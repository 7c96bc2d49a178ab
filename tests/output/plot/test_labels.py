"""Labels of figures: one for each name, and no markup in them."""

from __future__ import annotations

import html

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.plot.hta import user_annotation_breakdown
from htagraph.output.plot.labels import axis_labels, escaped, hover_name, plain, row_labels, unique_labels

NAMES = st.lists(st.text(alphabet="ab<>( ", max_size=6) | st.just("x" * 61) | st.just("x" * 62), max_size=8)


@given(NAMES)
def test_different_names_have_different_labels(names: list[str]) -> None:
    labels = unique_labels(names)
    assert set(labels) == set(names)
    assert len(set(labels.values())) == len(set(names))


@given(NAMES)
def test_each_row_has_a_label_of_its_own(names: list[str]) -> None:
    assert len(set(row_labels(names))) == len(names)
    assert len(set(axis_labels(names).values())) == len(set(names))


@given(st.text())
def test_markup_is_the_text_that_it_was(text: str) -> None:
    assert html.unescape(escaped(text.replace("&", "+"))) == text.replace("&", "+")
    assert not set("<>$") & set(escaped(text))


def test_names_can_be_encoded_and_turn_no_direction_of_writing() -> None:
    name = "a\ud800\u202eb\x00c\n" + "d" * 10_000
    assert plain(name, 8) == "a? b c …"
    assert len(hover_name(name).encode()) < 600
    assert hover_name(name).replace("<br>", "").isprintable()


def test_a_pie_has_as_many_items_as_there_are_annotations() -> None:
    """plotly sums up the slices of one label, so equal labels lose items."""
    names = [f"forward(batch={number})" for number in range(31)]
    times = {f"{what} (us)": [1.0] * 31 for what in ("sum", "mean", "max", "min")}
    pie, bars = user_annotation_breakdown(pd.DataFrame({"rank": 0, "name": names, **times}))
    assert len(set(pie.data[0].labels)) == 31
    assert list(pie.data[0].customdata) == names
    assert len({bar.name for bar in bars.data}) == 31
