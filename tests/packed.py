"""Packed text whose members say their size."""

from __future__ import annotations

import gzip
from typing import Any

import zstandard


def bgzipped(data: bytes) -> bytes:
    """Return a member of bgzip, whose header has its size."""
    member = gzip.compress(data, mtime=0)
    size = (len(member) + 7).to_bytes(2, "little")
    return member[:3] + b"\4" + member[4:10] + b"\6\0BC\2\0" + size + member[10:]


def zstd(data: bytes, **how: Any) -> bytes:
    return zstandard.ZstdCompressor(**how).compress(data)


def pzstd(data: bytes) -> bytes:
    """Return a frame of pzstd, which has its size before it, and a checksum."""
    frame = zstd(data, write_checksum=True, write_content_size=False)
    return b"\x50\x2a\x4d\x18\4\0\0\0" + len(frame).to_bytes(4, "little") + frame
