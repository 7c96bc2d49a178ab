from __future__ import annotations

import zlib

import pytest

from htagraph.core.inflated import inflated


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_what_was_compressed_comes_back(size: int) -> None:
    assert inflated(zlib.compress(bytes(size)), size + 1) == bytes(size)


def test_too_many_bytes_too_few_and_others_are_refused() -> None:
    packed = zlib.compress(bytes(1_000_000))
    with pytest.raises(ValueError, match="too many"):
        inflated(packed, 1000)
    with pytest.raises(ValueError, match="end early"):
        inflated(packed[:-4], 2_000_000)
    with pytest.raises(zlib.error):
        inflated(b"no zlib", 1000)
