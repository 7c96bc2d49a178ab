"""Many files at once. Threads are enough, because decoding and decompressing leave the interpreter to others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

from htagraph.core.computing import processors
from htagraph.trace.discover import RankedFile
from htagraph.trace.remote import TracePath

__all__ = ["Read", "in_parallel", "is_large", "json_bytes"]

T = TypeVar("T", covariant=True)

_GZIP_RATIO = 15
"""Bytes of JSON per byte of a gzipped trace. Chosen: real traces shrink 10 to 20 times. Doubled, the compiled scan is
used for smaller jobs; no result depends on it."""
_LARGE_BYTES = 16 << 20
"""Bytes of JSON from which the compiled scan is used, and threads: loading the compiled code takes as long as decoding
so much without it (measured: 0.1 s). Doubled, jobs of 16 to 32 MiB load up to 0.2 s slower; no result depends on it."""


class Read(Protocol[T]):
    """Reads one file."""

    def __call__(self, file: RankedFile, *, progress: Callable[[int], None], compiled: bool) -> T:
        """Return what the file holds; see `read_trace` for `progress` and `compiled`."""


def in_parallel(
    files: Sequence[RankedFile], read: Read[T], progress: Callable[[float], None] | None = None
) -> Iterator[tuple[RankedFile, T]]:
    """Yield each file with the result of reading it, in any order; a thread per processor reads large jobs.

    Args:
        files: the files to read.
        read: reads one file.
        progress: called with the share done, 0 to 1.
    """
    sizes = [file.path.stat().st_size for file in files]
    large = sum(map(json_bytes, files)) >= _LARGE_BYTES
    report = _Report(sizes, progress)

    def result(number: int) -> T:
        return read(files[number], progress=lambda at: report.advance(number, at), compiled=large)

    workers = min(len(files), processors())
    if workers < 2 or not large:
        for number, file in enumerate(files):
            yield file, result(number)
            report.advance(number, sizes[number])
        return
    pool = ThreadPoolExecutor(workers, "htagraph-read")
    try:
        jobs = {pool.submit(result, number): number for number in range(len(files))}
        for job in as_completed(jobs):
            report.advance(jobs[job], sizes[jobs[job]])
            yield files[jobs[job]], job.result()
    finally:  # also where the caller stops early, or is interrupted
        report.stop()
        pool.shutdown(cancel_futures=True)


class _Report:
    """Adds up what several threads have read."""

    def __init__(self, sizes: list[int], progress: Callable[[float], None] | None) -> None:
        self._read, self._total, self._progress = [0] * len(sizes), max(1, sum(sizes)), progress
        self._lock, self._stopped = threading.Lock(), False

    def advance(self, number: int, at: int) -> None:
        """Note that a file was read up to byte `at`; ends a thread whose result nobody waits for."""
        if self._stopped:
            raise CancelledError
        if self._progress is not None:
            with self._lock:
                self._read[number] = max(self._read[number], at)  # a file may be read twice
                self._progress(min(1.0, sum(self._read) / self._total))

    def stop(self) -> None:
        """End the threads that still read, at their next piece."""
        self._stopped = True


def json_bytes(file: RankedFile) -> int:
    """Return about how many bytes of JSON a file holds."""
    return file.path.stat().st_size * (_GZIP_RATIO if file.path.suffix == ".gz" else 1)


_AGAIN_BYTES = 1 << 20
"""Bytes of a file, packed or not, from which a compiled scan reads its events again. Chosen: it takes 0.1 s to load,
and saves as much on a packed file of that size. Doubled, files of 1 to 2 MB take up to 0.1 s more."""


def is_large(path: TracePath) -> bool:
    """Return whether a compiled scan reads a file sooner than the general decoder, with the time to load it."""
    return path.stat().st_size >= _AGAIN_BYTES
