"""Whatever is damaged in a file, each event of which no byte was touched is read, or is reported as lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from htagraph.trace.columns import Trace
from tests.damage import read
from tests.fuzz import sound_events
from tests.fuzz.sound_events import FORMS, Losses, damaged, losses, written


@pytest.mark.parametrize("form", FORMS)
def test_a_healthy_file_is_read_whole(form: str, tmp_path: Path) -> None:
    healthy = written(form)
    assert len(healthy.events) == 198
    assert losses(form, healthy.text, tmp_path / "a.json") == Losses(198, 0, 0)


def test_events_that_reading_leaves_out_without_a_word_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = written("compact")
    first = healthy.text.index(b'"ts":1500.125')
    less = healthy.text[: healthy.text.rindex(b",{", 0, first)] + b"]}"
    monkeypatch.setattr(sound_events, "read", lambda path: read_of(path, less))
    found = losses("compact", healthy.text, tmp_path / "a.json")
    assert found == Losses(198, 148, 0)
    assert found.is_silent


def read_of(path: Path, data: bytes) -> Trace:
    path.write_bytes(data)
    return read(path)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3, 10])
@pytest.mark.parametrize("form", FORMS)
def test_no_sound_event_is_lost_without_a_word(form: str, times: int, tmp_path: Path) -> None:
    draw = random.Random(times)
    for case in range(60):
        data = damaged(written(form).text, draw, times)
        found = losses(form, data, tmp_path / "a.json")
        assert not found.is_silent, (case, found)
        assert not found.refused or "events begin" in found.refused or "traceEvents" in found.refused, (case, found)
        assert found.refused or found.missing <= times, (case, found)
