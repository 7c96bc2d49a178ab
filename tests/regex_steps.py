"""How many steps a pattern takes on a text: the search that Python's `re` does, step by step, with a counter."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["steps"]

try:
    _parser: Any = importlib.import_module("re._parser")
except ImportError:  # Python 3.10
    _parser = importlib.import_module("sre_parse")


@dataclass
class _Search:
    text: str
    ignore_case: bool
    steps: int = 0
    groups: dict[int, tuple[int, int]] = field(default_factory=dict)


def steps(pattern: re.Pattern[Any], text: str) -> int:
    """Return the steps of finding all matches of a pattern in a text, as `finditer` and `sub` do."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    tree = list(_parser.parse(source, pattern.flags))
    search = _Search(text, bool(pattern.flags & re.IGNORECASE))
    at = 0
    while at <= len(text):
        end = next(_matches(search, tree, 0, at), None)
        at = at + 1 if end is None or end == at else end
    return search.steps


def _matches(search: _Search, tree: list[Any], item: int, at: int) -> Iterator[int]:
    """Yield the ends of matches of `tree[item:]` at a position, in the order in which `re` tries them."""
    search.steps += 1
    if item == len(tree):
        yield at
        return
    code, value = tree[item]
    for end in _one(search, str(code), value, at):
        yield from _matches(search, tree, item + 1, end)


def _one(search: _Search, code: str, value: Any, at: int) -> Iterator[int]:
    if code in ("MAX_REPEAT", "MIN_REPEAT"):
        yield from _repeated(search, code, value, at)
    elif code == "SUBPATTERN":
        yield from _matches(search, list(value[-1]), 0, at)
    elif code == "BRANCH":
        for branch in value[1]:
            yield from _matches(search, list(branch), 0, at)
    elif code in ("ASSERT", "ASSERT_NOT"):
        found = _looks(search, value, at)
        if found == (code == "ASSERT"):
            yield at
    elif code == "AT":
        if _is_at(search, str(value), at):
            yield at
    elif _letter(search, code, value, at):
        yield at + 1


def _looks(search: _Search, value: Any, at: int) -> bool:
    direction, inner = value
    if direction > 0:
        return next(_matches(search, list(inner), 0, at), None) is not None
    start = at - inner.getwidth()[0]
    return start >= 0 and next(_matches(search, list(inner), 0, start), None) == at


def _repeated(search: _Search, code: str, value: Any, at: int) -> Iterator[int]:
    least, most, inner = value
    most = len(search.text) + 1 if str(most) == "MAXREPEAT" else int(most)
    body = list(inner)
    if len(body) == 1 and str(body[0][0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        end = at
        while end - at < most and _letter(search, str(body[0][0]), body[0][1], end):
            end += 1
            search.steps += 1
        ends = range(at + least, end + 1)
        for each in ends if code == "MIN_REPEAT" else reversed(ends):
            search.steps += 1
            yield each
        return
    yield from _rounds(search, (body, least, most, code == "MIN_REPEAT"), at)


def _rounds(search: _Search, loop: tuple[list[Any], int, int, bool], at: int) -> Iterator[int]:
    """Yield the ends of rounds of a loop; with a stack of its own, since texts are long."""
    body, least, most, lazy = loop
    stack: list[tuple[int, Iterator[int]]] = [(at, _matches(search, body, 0, at))]
    if lazy and least == 0:
        yield at
    while stack:
        start, rounds = stack[-1]
        end = next((each for each in rounds if each > start), None) if len(stack) <= most else None
        if end is None:
            stack.pop()
            if not lazy and len(stack) >= least:
                yield start
            continue
        if lazy and len(stack) >= least:
            yield end
        stack.append((end, _matches(search, body, 0, end)))


def _is_at(search: _Search, what: str, at: int) -> bool:
    search.steps += 1
    text = search.text
    if what in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return at == 0
    if what == "AT_END_STRING":
        return at == len(text)
    if what == "AT_END":
        return at == len(text) or (at == len(text) - 1 and text[at] == "\n")
    raise NotImplementedError(what)


def _letter(search: _Search, code: str, value: Any, at: int) -> bool:
    search.steps += 1
    if at >= len(search.text):
        return False
    letter = search.text[at]
    letters = {letter, letter.lower(), letter.upper()} if search.ignore_case else {letter}
    if code == "LITERAL":
        return chr(value) in letters
    if code == "NOT_LITERAL":
        return chr(value) not in letters
    if code == "ANY":
        return True
    if code == "IN":
        return any(_in_set(value, each) for each in letters)
    raise NotImplementedError(code)


def _in_set(items: Any, letter: str) -> bool:
    negated = False
    found = False
    for code, value in items:
        if str(code) == "NEGATE":
            negated = True
        elif str(code) == "LITERAL":
            found |= letter == chr(value)
        elif str(code) == "RANGE":
            found |= value[0] <= ord(letter) <= value[1]
        else:
            found |= re.match(_CATEGORIES[str(value)], letter) is not None
    return found != negated


_CATEGORIES = {
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
