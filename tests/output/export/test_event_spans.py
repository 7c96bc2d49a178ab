from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from htagraph.output.export.event_spans import ARGS, CATEGORY, INSIDE, NAME, PLAIN, SCOPE, event_spans
from htagraph.trace.kineto.scan.scanner import Block, Scanner, span_text

EVENT = {"ph": "X", "name": "a", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1.25, "dur": 2, "args": {"stream": 7}}


def scanned(text: str) -> Block:
    block, _ = Scanner(calls=False).scan(text.encode(), 0, exact=False)
    assert block is not None
    return block


def test_spans_are_those_of_the_values() -> None:
    block = scanned(json.dumps(EVENT) + ', {"ph": "i", "s": "t", "args" : { "x": [1, 2] } , "name":"b","ts":5 }')
    spans = event_spans(block, np.array([0, 1]))
    texts = [
        {each: span_text(block.text, row[each]) for each in (NAME, CATEGORY, ARGS, SCOPE, INSIDE)} for row in spans
    ]
    assert texts[0] == {NAME: b'"a"', CATEGORY: b'"kernel"', ARGS: b'{"stream": 7}', SCOPE: b"", INSIDE: b'"stream": 7'}
    assert texts[1] == {NAME: b'"b"', CATEGORY: b"", ARGS: b'{ "x": [1, 2] }', SCOPE: b'"t"', INSIDE: b'"x": [1, 2]'}
    assert spans[:, PLAIN].tolist() == [1, 1]


@pytest.mark.parametrize(
    "change", [{"name": "C:\\x"}, {"id": 3}, {"args": {"x": "\\"}}, {"bp": "e"}, {"sf": 1}, {"name": "12345678\\"}]
)
def test_an_event_with_a_backslash_or_another_key_is_not_plain(change: dict[str, Any]) -> None:
    assert not event_spans(scanned(json.dumps(EVENT | change)), np.array([0]))[0, PLAIN]


def test_a_backslash_behind_a_value_is_not_in_it() -> None:
    block = scanned('{"ph":"X","ts":0,"dur":1,"args":{},"name":"a"},{"ph":"X","name":"\\\\","ts":1}')
    assert event_spans(block, np.array([0, 1]))[:, PLAIN].tolist() == [1, 0]


def test_an_event_without_a_name_is_not_plain() -> None:
    assert not event_spans(scanned('{"ph":"i","ts":0,"args":{"x":1}}'), np.array([0]))[0, PLAIN]
