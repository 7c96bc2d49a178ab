"""Compressed bytes of strangers, inflated to so many at most."""

from __future__ import annotations

import zlib

__all__ = ["inflated"]


def inflated(data: bytes, most: int) -> bytes:
    """Return what zlib compressed.

    Args:
        data: the compressed bytes.
        most: bytes that they may become.

    Raises:
        ValueError: they end early, or would become more.
        zlib.error: they are not compressed by zlib.

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
