"""Whether clean files are said to be clean."""

from __future__ import annotations

from htagraph.output.wording.validate import sentences


def test_only_clean_files_are_said_to_be_clean() -> None:
    assert sentences(clean=True) == ["Nothing had to be repaired or dropped."]
    assert sentences(clean=False) == []
