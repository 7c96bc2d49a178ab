"""Names of files, and settings to record with."""

from __future__ import annotations

from pathlib import Path

from htagraph.trace.kineto.read import SETTINGS as OF_KINETO
from htagraph.trace.pftrace.settings import CATEGORIES, SETTINGS, recognizes


def test_files_are_recognized_by_name() -> None:
    assert [recognizes(Path(name)) for name in ("a.pftrace", "a.pftrace.gz", "a.json", "pftrace")] == [
        True,
        True,
        False,
        False,
    ]


def test_every_setting_of_kineto_has_words_here() -> None:
    assert SETTINGS.keys() == OF_KINETO.keys()
    assert "kernel" in CATEGORIES
