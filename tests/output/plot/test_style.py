from __future__ import annotations

import pytest

from htagraph.output.plot.style import COLORS, GREY, drawn, heading, nothing, row_pixels, text_color, time_unit


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


def test_a_title_is_no_markup() -> None:
    assert "<b>" not in drawn([], "<b>x</b>", "<i>y</i>").layout.title.text


def test_nothing_to_draw_is_said() -> None:
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
