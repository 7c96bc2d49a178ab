from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.trace.reading.large import is_large


@pytest.mark.parametrize(("size", "large"), [(0, False), ((1 << 20) - 1, False), (1 << 20, True)])
def test_files_of_a_mebibyte_are_large(tmp_path: Path, size: int, *, large: bool) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b" " * size)
    assert is_large(path) is large
