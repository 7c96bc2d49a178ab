"""Compressed bytes of strangers, inflated to so many at most."""

from __future__ import annotations

import zlib

__all__ = ["inflated"]


def inflated(data: bytes, most: int) -> bytes:
    """Return what zlib compressed.

    It raises a ValueError if they end early or would become more, and a zlib.error if zlib did not compress them.

    Example:
        >>> inflated(zlib.compress(b"a" * 9), 9)
        b'aaaaaaaaa'
    """
    stream = zlib.decompressobj()
    raw = stream.decompress(data, most)
    if not stream.eof:
        msg = "the bytes end early, or are too many"
        raise ValueError(msg)
    return raw
