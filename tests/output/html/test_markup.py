"""Nothing that is no markup becomes any."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.html.markup import Html, element, join, text


class Seen(HTMLParser):
    """What a parser finds."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.texts: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(st.text(max_size=40))
def test_a_text_is_never_markup(name: str) -> None:
    seen = Seen(element("p", name, title=name))
    assert [(tag, [key for key, _ in attributes]) for tag, attributes in seen.tags] == [("p", ["title"])]
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    assert "".join(seen.texts) == shown
    assert seen.tags[0][1] == [("title", shown)]


def test_markup_stays_markup_and_other_texts_do_not() -> None:
    assert join([element("b", "1"), "<b>", 2]) == "<b>1</b>&lt;b&gt;2"
    assert isinstance(join([]), Html)


def test_attributes_that_are_none_or_false_are_left_out() -> None:
    assert element("br", class_=None, hidden=False) == "<br>"
    assert element("input", checked=True, aria_label="a") == '<input checked aria-label="a">'


def test_lone_surrogates_and_commands_of_terminals_are_gone() -> None:
    assert text("\ud800\x1b[31m\u202e\0") == "  [31m  "
    text("\ud800").encode()
