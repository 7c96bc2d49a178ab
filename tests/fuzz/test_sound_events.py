"""Whatever is damaged in a file, each event of which no byte was touched is read, or is reported as lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from htagraph.trace.columns import Trace
from htagraph.trace.pftrace.samples import samples
from tests.damage import read
from tests.fuzz import sound_events
from tests.fuzz.sound_events import ALL_FORMS, FORMS, NATIVE, Losses, damaged, file_name, losses, written


@pytest.mark.parametrize("form", ALL_FORMS)
def test_a_healthy_file_is_read_whole(form: str, tmp_path: Path) -> None:
    healthy = written(form)
    sound = len(healthy.events) + len(healthy.samples)
    assert len(healthy.events) == 198
    assert len(healthy.samples) == (67 if form == NATIVE else 0)
    assert losses(form, healthy.text, tmp_path / file_name(form)) == Losses(sound, 0, 0)


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


def test_samples_that_reading_leaves_out_without_a_word_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound_events, "samples", lambda trace: samples(trace)[1:])
    found = losses(NATIVE, written(NATIVE).text, tmp_path / "a.pftrace")
    assert found == Losses(198 + 67, 1, 0)
    assert found.is_silent


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3, 10])
def test_no_sound_packet_is_lost_or_given_another_time_without_a_word(times: int, tmp_path: Path) -> None:
    draw = random.Random(times)
    for case in range(60):
        data = damaged(written(NATIVE), draw, times)
        found = losses(NATIVE, data, tmp_path / "a.pftrace")
        assert not found.refused or not found.sound, (case, found)
        assert not found.is_silent, (case, found)
        assert found.wrong <= found.reported + found.uncertain, (case, found)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3, 10])
@pytest.mark.parametrize("form", FORMS)
def test_no_sound_event_is_lost_without_a_word(form: str, times: int, tmp_path: Path) -> None:
    draw = random.Random(times)
    for case in range(60):
        data = damaged(written(form), draw, times)
        found = losses(form, data, tmp_path / "a.json")
        assert not found.is_silent, (case, found)
        assert not found.refused or "events begin" in found.refused or "traceEvents" in found.refused, (case, found)
        assert found.refused or found.missing <= times, (case, found)
