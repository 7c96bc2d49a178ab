from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htagraph.core.issues import IssueLog
from htagraph.trace.reading.decode import event_text_decoder
from htagraph.trace.reading.scan.texts import EventTexts, EventTextScanner
from htagraph.trace.reading.source import iter_bytes
from htagraph.trace.reading.split import split
from tests.damage import healthy
from tests.reach import DATASETS, REAL, label

FILES = [*(path for folder in DATASETS for path in sorted(folder.glob("*.json*"))), *REAL]


def texts_of(path: Path, scan: EventTextScanner | None) -> tuple[list[bytes], int]:
    """Return (the text of each event of a file, how many blocks were scanned)."""
    log, texts, scanned = IssueLog(str(path)), list[bytes](), 0
    for position, events in split(iter_bytes(path, log), event_text_decoder(), {}, log, scan):
        assert position == len(texts)
        scanned += isinstance(events, EventTexts)
        texts += [bytes(events[at]) for at in range(len(events))]
    return texts, scanned


@pytest.mark.parametrize("path", FILES[::3], ids=label)
def test_events_have_the_texts_and_numbers_of_bulk_decoding(path: Path) -> None:
    assert texts_of(path, EventTextScanner())[0] == texts_of(path, None)[0]


def scanned(*events: Any) -> EventTexts | None:
    return EventTextScanner()(b", ".join(json.dumps(event).encode() for event in events), 0)


def test_each_event_is_the_text_that_it_is() -> None:
    events = healthy(3)
    found = scanned(*events)
    assert found is not None
    assert [json.loads(found[at]) for at in range(len(found))] == events


def test_a_number_that_its_column_cannot_hold_is_still_read() -> None:
    found = scanned(
        {"ph": "X", "name": "a", "ts": 1, "dur": 2, "args": {"memory bandwidth (GB/s)": 0.1105769230769230769}}
    )
    assert found is not None
    assert len(found) == 1


@pytest.mark.parametrize(
    "text",
    [
        b'{"ph": "X", "name": "\\ud800"}', b'{"ph": "X", "name": "\xff"}', b'{"ph": "X", "name": "a"', b"[1]", b"7",
        b'{"ph": "X", "args": {"stream": 1e999}}',
    ],
)  # fmt: skip
def test_what_bulk_decoding_might_refuse_is_declined(text: bytes) -> None:
    assert EventTextScanner()(text, 0) is None
