"""Repairs of one damaged event: what each does, that none loses a brace, and that none takes long on any text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.reading import mends, salvage, split
from tests.regex_steps import steps

PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (mends, salvage, split)
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
}
PIECES = (
    '\\"', '"', " ", "\n", ",", "{", "}", "]", "[", "\\", "inf ", '"name":"', ',"name":"a', ',"args":', ',"args":{',
    ',"args":"', '{"ph":', '{"', '"traceEvents":[', '"a" , ', "}, {", "/\"", "1", "rank", "-", "nan", "\xef\xbb\xbf",
)  # fmt: skip
"""What a hostile text repeats."""
STARTS = ('{"ph":"X","name":"', '"name":"a"b"', ',"args":{}', "}", '"', "{", "")


def by_code(body: bytes) -> dict[str, bytes]:
    """Return what each repair alone makes of a text."""
    return {names[0]: mended for names, mended in reversed(list(mends.candidates(body))) if len(names) == 1}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_takes_more_than_twice_the_steps_on_twice_the_text(name: str) -> None:
    pattern: re.Pattern[Any] = PATTERNS[name]
    for start in STARTS:
        for piece in PIECES:
            few, many = (steps(pattern, start + piece * count + "x}") for count in (6, 24))
            assert many <= 4.2 * few + 100, (start, piece)


def test_the_steps_of_a_pattern_that_tries_each_start_again_grow_with_the_square() -> None:
    twice = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
    few, many = (steps(twice, '\\"' * count) for count in (40, 80))
    assert many > 3.5 * few


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"a+b", "aaac aab"), (r"(?:ab|a)*c", "ababaac"), (r"(?<=x)a.*?b(?!c)", "xaabcab xa b")]
)
def test_steps_are_those_of_a_search_that_finds_what_re_finds(pattern: str, text: str) -> None:
    assert steps(re.compile(pattern), text) >= len(text)


@pytest.mark.parametrize(
    ("body", "code", "mended"),
    [
        (b'{"x": inf, "y": "inf"}', "non_finite", b'{"x": "inf", "y": "inf"}'),
        (b'{"x": [,1], "y": "[,1]",}', "stray_comma", b'{"x": [1], "y": "[,1]"}'),
        (b'{"name": "a "b" c", "ts": 1}', "unescaped_quotes", b'{"name": "a \\"b\\" c", "ts": 1}'),
        (b'{"name": "a", "args": {"x": }}', "args_dropped", b'{"name": "a"}'),
        (b'{"name": "a", "args": "b"}', "args_dropped", b'{"name": "a"}'),
        (b'{"name": "a", "args": {"x": }}\n ],\n "y": 1}', "args_dropped", b'{"name": "a"}\n ],\n "y": 1}'),
        (b'{"name": "a\x07"}', "control_characters", b'{"name": "a "}'),
        (
            b'"\\ud83d\\ude00 \\ud83d \\\\ud83d \\uDE00x"',
            "lone_surrogate",
            b'"\\ud83d\\ude00 \\ufffd \\\\ud83d \\ufffdx"',
        ),
        (b'{"x": "a/"b"}', "slashed_quotes", b'{"x": "a\\"b"}'),
    ],
)
def test_a_repair_undoes_its_damage_only(body: bytes, code: str, mended: bytes) -> None:
    assert by_code(body)[code] == mended


def test_each_repair_has_a_meaning() -> None:
    bodies = [b'{"x": inf}', b'{"x": 1,}', b'"name": "a "b" c", "ts":', b'/"', b"\xff\x07", b'"a","args":}', b"\\udfff"]
    assert {code for body in bodies for code in by_code(body)} == set(mends.MEANING)


def test_without_its_end_an_event_keeps_its_arguments() -> None:
    body = b'{"name": "a", "args": {"x": }}'
    assert list(mends.candidates(body, whole=False)) == []


@given(st.lists(st.sampled_from([*PIECES, "a", ":", "1"])).map("".join))
def test_no_repair_but_that_of_arguments_adds_or_loses_a_brace(text: str) -> None:
    body = text.encode("latin-1")
    for names, mended in mends.candidates(body, whole=False):
        assert mended.count(b"}") == body.count(b"}"), names
