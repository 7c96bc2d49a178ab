"""Texts of pictures: shown as they are, shortened in the middle."""

from __future__ import annotations

import pytest

from htagraph.output.export.dot_text import dot_text, middle_shortened, one_line, text_width, time_text


@pytest.mark.parametrize("length", [1, 2, 5, 26, 27, 100])
@pytest.mark.parametrize("most", [5, 26])
def test_a_shortened_text_keeps_both_ends(length: int, most: int) -> None:
    text = "".join(chr(0x4E00 + at) for at in range(length))
    short = middle_shortened(text, most)
    assert len(short) == min(length, most)
    assert (short == text) == (length <= most)
    assert short[:2] == text[:2]
    assert short[-2:] == text[-2:]


def test_labels_escape_what_graphviz_would_read() -> None:
    assert dot_text("a\\Nb") == "a\\\\Nb"
    assert dot_text("&lt;\n") == "&amp;lt;\\n"
    assert one_line("a\r\n\tb\x00") == "a b "


def test_times_change_unit_at_one_ms() -> None:
    assert [time_text(ns) for ns in (0, 999_949, 1_000_000)] == ["0.0 µs", "999.9 µs", "1.00 ms"]


def test_the_longest_line_counts() -> None:
    assert text_width("a\nabc\nab", 10) == text_width("abc", 10) == 3 * text_width("a", 10)
