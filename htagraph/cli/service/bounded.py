"""bounded: an envelope as JSON of bounded size that says what was left out, and how to ask for it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from htagraph.core.errors import HtagraphError, nearest_words, printable, shown
from htagraph.findings.phrases import shortened

__all__ = ["MAX_BYTES", "MAX_ROWS", "Window", "bounded"]

MAX_ROWS: Final = 200
"""Rows of a table in one answer, at most. Chosen: more are a task for the command line. Doubled, wide tables are cut by
`MAX_BYTES` anyway."""
MAX_BYTES: Final = 24_000
"""Bytes of an answer. Chosen: about 8,000 tokens, which leaves a model room for several answers. Doubled, fewer tables
are cut, and fewer questions fit."""
_MAX_LETTERS: Final = 240
"""Letters of a name in a table; longer ones lose their middle. Sentences stay whole. Chosen: kernel names of templates
keep both ends. Doubled, tables of such names are cut to half as many rows."""
_MIN_LETTERS: Final = 40
"""Letters to which texts are cut if an answer is too large without any row. Chosen. Doubled, answers with hundreds of
texts may exceed `MAX_BYTES`."""
_MAX_LIST: Final = 50
"""Sentences or values of a list. Chosen: no command says as many. Doubled, nothing changes for sound traces."""

_SENTENCES: Final = ("text",)
"""Columns of tables that hold sentences."""

_Json: TypeAlias = dict[str, Any]

_BESIDE: Final = ("inputs", "warnings")
"""Tables about what was read, which are not what was asked for."""


@dataclass(frozen=True)
class Window:
    """Which rows of which table are asked for."""

    rows: int = 10
    """Rows of each table."""
    table: str = ""
    """The only table wanted; empty for all."""
    offset: int = 0
    """The first row, of the only table wanted."""

    @property
    def asked(self) -> int:
        """How many rows a ranked table needs, so that one knows whether there are more."""
        return self.offset + self.rows + 1


def bounded(envelope: _Json, window: Window) -> str:
    """Return an envelope as JSON in one line of at most `MAX_BYTES` bytes; ``cut`` names what was left out.

    Texts lose control characters. Long names in tables lose their middle; sentences do only if they alone are too
    large.

    Example:
        >>> many = {"results": {"kernels": [{"name": "a"}] * 30}}
        >>> json.loads(bounded(many, Window(rows=2)))["cut"][0]["more"]
        "table='kernels', offset=2"
    """
    tables = _tables(envelope)
    _refuse(window, tables)
    shown_rows = {name: window.rows if name not in _BESIDE or window.table else 5 for name in tables}
    letters = _MAX_LETTERS
    while True:
        text = _json(_windowed(envelope, window, shown_rows, letters))
        if len(text.encode()) <= MAX_BYTES or (letters == _MIN_LETTERS and not any(shown_rows.values())):
            return text
        cut = {name: _clean_rows(tables[name], window, many, _MAX_LETTERS) for name, many in shown_rows.items()}
        largest = max(cut, key=lambda name: len(_json(cut[name])), default="")
        if largest and shown_rows[largest]:
            shown_rows[largest] = min(shown_rows[largest], len(tables[largest])) // 2
        else:
            letters = _MIN_LETTERS


def _tables(envelope: _Json) -> dict[str, list[_Json]]:
    """Return the tables of an envelope by name."""
    found = {name: envelope.get(name) for name in _BESIDE} | dict(envelope["results"])
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, list) and (not value or isinstance(value[0], dict))
    }


def _refuse(window: Window, tables: dict[str, list[_Json]]) -> None:
    if window.table and window.table not in tables:
        known = sorted(tables)
        msg = f"table={shown(window.table)}: there are {', '.join(known)}{nearest_words(window.table, known)}"
        raise HtagraphError(msg)
    if window.offset and not window.table:
        msg = "offset: name the table whose further rows are wanted as well"
        raise HtagraphError(msg)


def _windowed(envelope: _Json, window: Window, shown_rows: dict[str, int], letters: int) -> _Json:
    """Return an envelope with only so many rows of each table, and what that left out."""
    cut: list[_Json] = []
    of_sentence = _letters_of_sentences(letters)

    def part(name: str, value: Any) -> Any:  # noqa: ANN401 - any value of an envelope
        if name not in shown_rows:
            return _clean(value, of_sentence)
        end = min(window.offset + shown_rows[name], len(value))
        if end < len(value):
            certain = "at least " if len(value) == window.asked else ""  # no more were computed
            more, of = f"table={name!r}, offset={end}", f"{certain}{len(value)}"
            count = end - window.offset
            cut.append({"table": name, "first": window.offset, "rows": count, "of": of, "more": more})
        return _clean_rows(value, window, shown_rows[name], letters)

    results = dict(sorted(envelope["results"].items(), key=lambda item: item[0] in shown_rows))  # sentences first
    if window.table:
        results = {window.table: results[window.table]} if window.table in results else {}
    beside = [name for name in _BESIDE if name in envelope and window.table in ("", name)]
    others = [name for name in envelope if name not in (*_BESIDE, "results")]
    head = {name: _clean(envelope[name], of_sentence) for name in others}
    shown_results = {name: part(name, value) for name, value in results.items()}
    read = {name: part(name, envelope[name]) for name in beside}
    return head | {"results": shown_results} | read | {"cut": cut}


def _clean_rows(rows: list[_Json], window: Window, count: int, letters: int) -> list[_Json]:
    limits = dict.fromkeys(_SENTENCES, _letters_of_sentences(letters))
    shown_rows = rows[window.offset : window.offset + count]
    return [{name: _clean(row[name], limits.get(name, letters)) for name in row} for row in shown_rows]


def _letters_of_sentences(letters: int) -> int:
    """Return how many letters a sentence may have where names have so many: all, unless names had to be cut further."""
    return MAX_BYTES if letters == _MAX_LETTERS else letters


def _clean(value: Any, letters: int) -> Any:  # noqa: ANN401 - any value of an envelope
    """Return a value with texts that are safe and short, and numbers that JSON has."""
    if isinstance(value, str):
        return printable(shortened(value, letters))
    if isinstance(value, dict):
        return {str(_clean(str(key), letters)): _clean(each, letters) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, letters) for each in value[:_MAX_LIST]]
    if isinstance(value, float):
        return round(value, 3) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return _clean(value.item() if hasattr(value, "item") else str(value), letters)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
