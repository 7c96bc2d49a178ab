"""Events in chunks: the same rows, whatever is scanned at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from htagraph.simulate.next_pftrace import message, packet
from htagraph.trace.pftrace import events as module
from htagraph.trace.pftrace import scan
from htagraph.trace.pftrace.argument_columns import WANTED
from htagraph.trace.pftrace.events import PacketEvents, event_rows
from tests.trace.pftrace.made import packets_in, plain


def spelled(events: PacketEvents) -> list[tuple[Any, ...]]:
    """Return arguments with their texts."""
    is_text = np.isin(events.notes.form, (scan.TEXT, scan.RAW)).tolist()
    rows = zip(*(column.tolist() for column in events.notes), is_text, strict=True)
    return [
        (event, events.texts[key], form, events.texts[value] if spells else value)
        for event, key, form, value, spells in rows
    ]


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_rows_do_not_depend_on_the_size_of_a_chunk(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packets, _ = packets_in(plain())
    whole = event_rows(packets, WANTED)
    monkeypatch.setattr(module, "_CHUNK_BYTES", size)
    parts = event_rows(packets, WANTED)
    assert np.array_equal(parts.columns[1:], whole.columns[1:])
    assert spelled(parts) == spelled(whole)
    assert parts.awaited.tolist() == whole.awaited.tolist()
    assert parts.waiting.tolist() == whole.waiting.tolist()


def test_interned_keys_and_values_are_found_by_sequence() -> None:
    def interned(sequence: int, key: str, value: str) -> bytes:
        names = (3, message((1, 1), (2, key))), (29, message((1, 2), (2, value)))
        annotation = message((1, 1), (17, 2))
        return packet((8, 5), (10, sequence), (12, message(*names)), (11, message((9, 1), (4, annotation))))

    packets, _ = packets_in(interned(1, "Collective name", "allreduce") + interned(2, "other", "x"))
    events = event_rows(packets, WANTED)
    assert [events.texts[key] for key in events.notes.key.tolist()] == ["Collective name"]
    assert [events.texts[value] for value in events.notes.value.tolist()] == ["allreduce"]
