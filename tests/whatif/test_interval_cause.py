"""Whether every cause of an interval's width is a member with words of its own, and every reading has one."""

from __future__ import annotations

import json
from pathlib import Path

from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.readings import DOUBTS

PACKAGE = Path(__file__).resolve().parents[2] / "htagraph"


def test_a_cause_is_its_words() -> None:
    cause = IntervalCause.SLOW_LOADER
    assert f"wide, as {cause}" == "wide, as the data loader may not keep up, which the recording cannot show"
    assert json.dumps(cause) == f'"{cause.value}"'
    assert cause.telling == "of the data loader alone"


def test_no_two_causes_have_the_same_words() -> None:
    assert len({cause.value for cause in IntervalCause}) == len(IntervalCause)


def test_every_reading_has_a_cause() -> None:
    assert all(isinstance(cause, IntervalCause) for cause in DOUBTS)


def test_the_words_of_a_cause_stand_in_one_file() -> None:
    """Code that compares words would have to repeat them."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    for cause in IntervalCause:
        if cause.value:
            files = [path.name for path, text in texts.items() if f'"{cause.value}"' in text]
            assert files == ["interval_cause.py"], cause
