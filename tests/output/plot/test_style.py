"""Labels of figures: one for each name, and no markup in them."""

from __future__ import annotations

import html

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.shapes.figures import user_annotation_breakdown
from htagraph.output.plot.style import (
    GREY,
    Sizes,
    category_map,
    category_ticks,
    columns_of,
    covered,
    drawn,
    escaped,
    heading,
    highest_of_steps,
    hover_name,
    longest,
    mean_of_steps,
    nothing,
    parts_by_rank,
    plain,
    row_labels,
    row_pixels,
    running,
    text_color,
    time_unit,
    unique_labels,
)
from htagraph.output.scene import COLORS


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["#FFFFFF", "#000000"])
def test_text_can_be_read_on_light_and_dark_pages(page: str) -> None:
    assert contrast(GREY, page) >= 4.5


@pytest.mark.parametrize("color", COLORS.values())
def test_text_can_be_read_on_every_colour(color: str) -> None:
    assert contrast(text_color(color), color) == max(contrast(each, color) for each in ("#FFFFFF", "#000000")) or (
        contrast(text_color(color), color) >= 3.5
    )


def test_long_titles_are_wrapped_cut_and_given_room() -> None:
    text, pixels = heading("word " * 200, "small")
    assert all(len(line) <= 84 for line in text.split("<br>")[:-1])
    assert len(text.split("<br>")) == 4
    assert pixels > heading("word", "small")[1]


def test_a_title_is_no_markup_and_says_where_nothing_is_drawn() -> None:
    assert "<b>" not in drawn([], "<b>x</b>", "<i>y</i>").layout.title.text
    figure = nothing("No copies were recorded")
    assert figure.layout.title.text == "No copies were recorded"
    assert figure.layout.annotations[0].text == "Nothing to draw."


def test_512_rows_fit_a_screen() -> None:
    assert row_pixels(1) < 100
    assert row_pixels(512) == row_pixels(8192) < 1200


@pytest.mark.parametrize(("us", "unit"), [(0.0, "µs"), (999.0, "µs"), (1000.0, "ms"), (1e6, "s"), (1e9, "s")])
def test_the_unit_suits_the_longest(us: float, unit: str) -> None:
    assert time_unit(us)[1] == unit


def test_no_word_of_a_title_stands_alone() -> None:
    text, _ = heading("Rank 2 is the straggler: 100 % of the wait time (13.5 ms over all ranks) is charged to it", "")
    lines = [len(line) for line in text.split("<br>")]
    assert len(lines) == 2
    assert min(lines) > 0.7 * max(lines)


NAMES = st.lists(st.text(alphabet="ab<>( ", max_size=6) | st.just("x" * 61) | st.just("x" * 62), max_size=8)


@given(NAMES)
def test_different_names_have_different_labels(names: list[str]) -> None:
    labels = unique_labels(names)
    assert set(labels) == set(names)
    assert len(set(labels.values())) == len(set(names))


@given(NAMES)
def test_each_row_has_a_label_of_its_own(names: list[str]) -> None:
    assert len(set(row_labels(names))) == len(names)


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


@pytest.mark.parametrize(("ranks", "kind"), [(1, "bar"), (Sizes.bars, "bar"), (Sizes.bars + 1, "heatmap")])
def test_up_to_32_ranks_are_bars(ranks: int, kind: str) -> None:
    times = pd.DataFrame({"a": 1.0}, [str(rank) for rank in range(ranks)])
    traces, _ = parts_by_rank(times, {"a": "#000000"}, "{label}: {us}", "({unit})")
    assert {trace["type"] for trace in traces} == {kind}


@pytest.mark.parametrize("rows", [1, 40, 41, 512])
def test_few_labels_are_drawn_beside_many_rows(rows: int) -> None:
    axis = category_ticks([str(row) for row in range(rows)])
    assert len(axis["ticktext"]) <= 40
    assert set(axis["tickvals"]) <= set(axis["categoryarray"])
    assert axis["tickvals"][0] == "0"


def test_a_category_has_the_whole_stretch_of_its_colour() -> None:
    colors = ["#111111", "#222222", "#333333"]
    picture = category_map(np.array([0.0]), ["row"], np.array([[1.0]]), colors, [["x"]])
    place = (1.0 - picture["zmin"]) / (picture["zmax"] - picture["zmin"])
    below = [color for at, color in picture["colorscale"] if at <= place]
    above = [color for at, color in picture["colorscale"] if at >= place]
    assert below[-1] == above[0] == "#222222"


INTERVALS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12), st.integers(0, 2)), max_size=12
)
EDGES = np.arange(0.0, 44.0, 4.0)


def arrays(intervals: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    row, start, length, code = np.array(intervals, np.int64).reshape(-1, 4).T
    return row, start.astype(float), (start + length).astype(float), code


@given(INTERVALS)
def test_covered_time_is_what_a_count_of_each_moment_gives(intervals: list[tuple[int, int, int, int]]) -> None:
    row, start, end, _ = arrays(intervals)
    expected = np.zeros((3, len(EDGES) - 1))
    for each, begin, length, _ in intervals:
        for moment in range(begin, begin + length):
            if moment < EDGES[-1]:
                expected[each, moment // 4] += 1
    np.testing.assert_allclose(covered(row, start, end, EDGES, 3), expected, atol=1e-9)


@given(INTERVALS)
def test_the_code_of_a_cell_covers_most_of_it(intervals: list[tuple[int, int, int, int]]) -> None:
    row, start, end, code = arrays(intervals)
    found = longest(row, start, end, code, EDGES)
    for at in range(len(found)):
        for column in range(len(EDGES) - 1):
            time = [
                sum(
                    max(0, min(begin + length, EDGES[column + 1]) - max(begin, EDGES[column]))
                    for each, begin, length, what in intervals
                    if each == at and what == kind
                )
                for kind in range(3)
            ]
            best = found[at, column]
            assert np.isnan(best) if not max(time) else time[int(best)] == max(time)


def test_a_cell_is_empty_where_sums_of_floats_are_not_quite_nothing() -> None:
    start = np.cumsum(np.full(4000, 0.1)) * 7
    edges = np.linspace(0.0, 9000.0, 5000)
    found = longest(np.zeros(4000, np.int64), start, start + 0.1, np.zeros(4000, np.int64), edges)[0]
    last = int(np.searchsorted(edges, start[-1] + 0.1))
    assert np.isnan(found[last:]).all()


def test_what_runs_in_the_middle_of_a_cell_is_found() -> None:
    row, start, end = np.array([0, 0, 1]), np.array([0.0, 4.0, 5.0]), np.array([3.0, 8.0, 5.5])
    assert running(row, start, end, np.array([0.0, 4.0, 8.0]), 2).tolist() == [[0, 1], [-1, -1]]


@given(st.lists(st.tuples(st.integers(0, 39), st.integers(0, 5)), min_size=1, max_size=8))
def test_a_mean_over_a_cell_is_that_of_its_moments(steps: list[tuple[int, int]]) -> None:
    steps = sorted(steps, key=lambda step: step[0])
    level = np.array([next((v for t, v in reversed(steps) if t <= moment), 0) for moment in range(40)], float)
    time, value = (np.array(each, float) for each in zip(*steps, strict=True))
    np.testing.assert_allclose(mean_of_steps(time, value, EDGES), level.reshape(-1, 4).mean(axis=1), atol=1e-9)
    order = np.unique(time[::-1], return_index=True)[1]  # of changes at one moment, the last holds
    last = (time[::-1][order], value[::-1][order])
    np.testing.assert_allclose(highest_of_steps(*last, EDGES), level.reshape(-1, 4).max(axis=1), atol=1e-9)


def test_pictures_of_many_rows_have_fewer_columns() -> None:
    assert len(columns_of(0, 1, 4).edges) == 801
    assert len(columns_of(0, 1, 4096).edges) == 101
    assert columns_of(5, 5, 1).edges[-1] > 5
