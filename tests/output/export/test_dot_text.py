"""Texts of pictures: shown as they are, with times and widths."""

from __future__ import annotations

from htagraph.output.export.dot_text import dot_text, one_line, text_width


def test_labels_escape_what_graphviz_would_read() -> None:
    assert dot_text("a\\Nb") == "a\\\\Nb"
    assert dot_text("&lt;\n") == "&amp;lt;\\n"
    assert one_line("a\r\n\tb\x00") == "a b "


def test_the_longest_line_counts() -> None:
    assert text_width("a\nabc\nab", 10) == text_width("abc", 10) == 3 * text_width("a", 10)
