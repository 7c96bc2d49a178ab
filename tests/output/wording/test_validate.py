"""Whether clean files are said to be clean."""

from __future__ import annotations

from htagraph.output.wording.validate import sentences


def test_only_clean_files_are_said_to_be_clean() -> None:
    assert sentences(0, 0) == ["Nothing had to be repaired or dropped."]
    assert sentences(3, 0)[0].startswith("Every file can be read;")
    assert sentences(3, 1)[0].startswith("1 file cannot be read, and")
