"""Whether files still hold what they held: by their state on the disk where that proves it, else by their bytes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Final

from htagraph.core.computing import processors
from htagraph.trace.remote import RemotePath, TracePath, fingerprint

__all__ = ["FileState", "file_states", "is_unchanged"]

_PIECE_BYTES: Final = 1 << 20
"""Bytes that are digested at once. Chosen: fits into the cache of a processor core. Doubled, nothing is faster."""
_SETTLED_NS: Final = 2_000_000_000
"""ns: a file that changed less than this before it was digested may change again without a new time, because some file
systems count whole seconds or two (FAT). Doubled, files just written are digested once more."""
_MAX_THREADS: Final = 8
"""Threads that digest files. Chosen: disks are busy by then. Doubled, only faster disks gain."""


@dataclass(frozen=True)
class FileState:
    """A file as it was found on the disk, and the digest of its bytes."""

    size: int
    """Bytes."""
    modified_ns: int
    changed_ns: int
    """When its bytes or its entry changed, which no program can set."""
    inode: int
    device: int
    found_ns: int = 0
    """When it was found so."""
    digest: str = ""

    @property
    def disk(self) -> tuple[int, ...]:
        """What the disk says of it."""
        return astuple(self)[:5]

    @property
    def is_settled(self) -> bool:
        """Whether another change would show in its times."""
        return max(self.modified_ns, self.changed_ns) + _SETTLED_NS < self.found_ns


def file_states(files: Sequence[TracePath], known: Mapping[str, FileState]) -> list[FileState]:
    """Return the state of each file with the digest of its bytes; files that are as they were known are not read.

    Args:
        files: the files.
        known: states of before, by path.

    Raises:
        OSError: a file cannot be read.
    """

    def state(path: TracePath) -> FileState:
        if isinstance(path, RemotePath):
            return _in_store(path)
        now, before = _on_disk(path), known.get(str(path))
        if before is not None and before.disk == now.disk and before.is_settled:
            return before
        return replace(now, digest=_digest(path))

    with ThreadPoolExecutor(min(_MAX_THREADS, processors())) as threads:
        return list(threads.map(state, files))


def is_unchanged(path: TracePath, state: FileState) -> bool:
    """Return whether a file still is as it was found."""
    try:
        return (_in_store(path) if isinstance(path, RemotePath) else _on_disk(path)).disk == state.disk
    except OSError:
        return False


def _in_store(path: RemotePath) -> FileState:
    """Return the state of a file that a store keeps; its tag, or the time of its upload, stands for its bytes."""
    size, tag = fingerprint(path)
    if not tag:
        msg = "the store does not say whether a file changed"
        raise OSError(msg)
    return FileState(size, tag, 0, 0, 0, time.time_ns(), f"{size} {tag}")


def _on_disk(path: Path) -> FileState:
    found_ns = time.time_ns()
    stat = path.stat()
    return FileState(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev, found_ns)


def _digest(path: Path) -> str:
    digest, piece = hashlib.blake2b(digest_size=16), memoryview(bytearray(_PIECE_BYTES))
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(piece):
            digest.update(piece[:read])
    return digest.hexdigest()
