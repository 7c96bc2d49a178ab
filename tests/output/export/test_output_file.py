"""Files that appear when they are complete; `test_trace_writer` tests links, pipes and sources."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from htagraph.core.errors import TraceError
from htagraph.output.export.output_file import OutputFile


class Text(OutputFile):
    def __enter__(self) -> Text:
        self._write(b"begin ")
        return self

    def _finish(self) -> None:
        self._write(b"end")


def test_the_ending_of_the_name_says_whether_it_is_gzipped(tmp_path: Path) -> None:
    for name in ("a.x", "new/a.x.gz"):
        with Text(tmp_path / name):
            assert not (tmp_path / name).exists()
    assert (tmp_path / "a.x").read_bytes() == b"begin end"
    assert gzip.decompress((tmp_path / "new" / "a.x.gz").read_bytes()) == b"begin end"


def test_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Text(tmp_path / "a"):
        raise ZeroDivisionError
    with pytest.raises(TraceError, match="it is a folder"):
        Text(tmp_path)
    assert not list(tmp_path.iterdir())
