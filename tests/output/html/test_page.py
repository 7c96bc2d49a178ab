"""A page: one script and one style that its policy names, and payloads that are data."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.output.html.page import Html, Section, definition, element, join, page, script_of, table_of, text

WHOLE = page("<A>", [Section("a", "A & B", element("p", "x"), payload={"bytes": b"</script>\0"})]).decode()


def digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def test_the_policy_names_the_script_and_the_style() -> None:
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', WHOLE)[0].replace("&#x27;", "'")
    (script,), (style,) = (
        re.findall(r"<script>(.*?)</script>", WHOLE, re.S),
        re.findall(r"<style>(.*?)</style>", WHOLE, re.S),
    )
    assert f"script-src 'sha256-{digest(script)}'" in policy
    assert f"style-src 'sha256-{digest(style)}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


def test_a_payload_is_data() -> None:
    (data,) = re.findall(r'<script type="application/octet-stream" id="bytes">([^<]*)</script>', WHOLE)
    assert base64.b64decode(data) == b"</script>\0"


def test_titles_are_escaped_and_sections_are_linked() -> None:
    assert "<title>&lt;A&gt;</title>" in WHOLE
    assert '<a href="#a">A &amp; B</a>' in WHOLE


def test_modules_become_one_script_without_imports() -> None:
    script = script_of(["words.js", "scan.js"])
    assert "import " not in re.sub(r"//.*|/\*.*?\*/", "", script)
    assert "export " not in script
    assert "function scanRow(" in script


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


HOSTILE = "void <b>k</b>(" + "x" * 5000 + ")"


def test_names_are_shortened_and_whole_on_hover() -> None:
    shown = table_of(pd.DataFrame({"name": [HOSTILE], "total_us": [12_345.6]}))
    assert "<b>" not in shown
    assert "total ms" in shown
    assert "12.3" in shown
    assert len(shown) < 3000


def test_an_empty_table_is_nothing() -> None:
    assert table_of(pd.DataFrame({"a": []})) == ""


def test_rows_link_to_where_they_are() -> None:
    shown = table_of(pd.DataFrame({"rank": [0, 1]}), links=["#a", "#b"])
    assert shown.count('<a href="#') == 2


def test_a_definition_says_what_the_numbers_are_and_not_how_to_call() -> None:
    shown = definition(temporal_breakdown)
    assert "window, from its first to its last device" in shown
    assert not [word for word in ("Returns:", "int64", "Args:", "&gt;&gt;&gt;") if word in shown]
    assert "<p>- kernel_wait: another edge" in definition(idle_breakdown)
    assert definition(lambda: None) == ""
