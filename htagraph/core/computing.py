"""How results are computed: once per object, a few ahead in threads, on as many processors as there are to use."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from htagraph.core.arrays import Ints, Mask

__all__ = [
    "Threads",
    "ahead",
    "in_parts",
    "keep_memory",
    "most_threads",
    "once",
    "processors",
    "rows_where",
    "threads_for",
]


def processors() -> int:
    """Return how many processors this process may use: in a container or a batch job, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_memory() -> None:
    """Let this process keep memory that it frees, where its C library is glibc; other libraries stay as they are.

    glibc gives columns of 32 MB and more back to the system, which clears them for the next column: of a job of some
    million events that takes as long as all else. In one arena, what a thread frees serves the others.
    """
    no_mappings, no_trimming, one_arena = (-4, 0), (-1, 0x7FFFFFFF), (-8, 1)  # as malloc.h numbers them
    with suppress(AttributeError, OSError, TypeError):  # no glibc: memory is kept as its own allocator does
        for option in (no_mappings, no_trimming, one_arena):
            ctypes.CDLL(None).mallopt(*option)


Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_THREADS = 8
"""How many results are computed at once, at most. Chosen: each holds columns of all vertices or edges, some 100 bytes
per vertex, and more threads wait for memory. Doubled, twice the memory."""
_FEW = 200_000
"""Rows below which threads are not worth it, and rows of a part. Chosen: numpy then leaves one operation after some 0.1
ms, and the threads wait for each other between them; columns of a part take memory that is at hand. Doubled, a graph of
0.3 million events is replayed one change at a time."""


def threads_for(rows: int) -> int:
    """Return how many results are computed at once where each passes over so many rows.

    Example:
        >>> threads_for(1000)
        1
    """
    return most_threads() if rows >= _FEW else 1


def most_threads() -> int:
    """Return how many threads are used at once, at most: one per processor, up to a few.

    Example:
        >>> 1 <= most_threads() <= processors()
        True
    """
    return min(processors(), _MAX_THREADS)


class Threads(Executor):
    """Runs functions in threads; where the system refuses a thread, in the thread that submits them.

    A container may limit threads (``ulimit -u``, cgroup pids): results then come later, and are the same.

    Example:
        >>> with Threads(2) as threads:
        ...     list(threads.map(abs, [3, -1]))
        [3, 1]
    """

    def __init__(self, count: int, name: str = "htagraph") -> None:
        self._pool = ThreadPoolExecutor(count, name)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - Executor's
        """Return the future result of a function, which a thread computes, or this call where there is none."""
        future: Future[Any] = Future()
        first_runner = Lock()  # the pool may keep a function for which it could not start a thread

        def run() -> None:
            if first_runner.acquire(blocking=False) and future.set_running_or_notify_cancel():
                _settle(future, fn, args, kwargs)

        try:
            self._pool.submit(run)
        except RuntimeError as error:
            if "thread" not in str(error):  # the pool was shut down
                raise
            run()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - Executor's
        """End the threads, see `concurrent.futures.Executor`."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _settle(future: Future[Any], function: Callable[..., Any], args: Any, kwargs: Any) -> None:  # noqa: ANN401
    """Give a future the result of a function, or its error."""
    try:
        result = function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it, as from a pool
        future.set_exception(error)
    else:
        future.set_result(result)


def in_parts(rows: int) -> Iterator[slice]:
    """Yield slices of so many rows, one part after the other.

    What numpy makes on the way of a part takes memory that the part before gave back. Columns of millions of rows would
    each get new memory from the system, which costs more than the pass over it.
    """
    for first in range(0, rows, _FEW):
        yield slice(first, min(rows, first + _FEW))


def rows_where(test: Callable[[slice], Mask], rows: int) -> Ints:
    """Return the rows, of so many, for which a test is True that is asked part by part."""
    found = (part.start + np.flatnonzero(test(part)) for part in in_parts(rows))
    return np.concatenate([np.zeros(0, np.int64), *found])


def ahead(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in their order; an error comes where its item's result would.

    Whoever stops early has had some results computed that nobody reads, one per thread at most. The function should
    spend its time where other threads can run, as in numpy; see `threads_for` for `threads`.

    Example:
        >>> list(ahead(abs, [3, -1], 2))
        [(3, 3), (-1, 1)]
    """
    if threads == 1:
        for item in items:
            yield item, function(item)
        return
    with Threads(threads) as pool:
        running: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                running.append((item, pool.submit(function, item)))
                if len(running) == threads:
                    first, result = running.popleft()
                    yield first, result.result()
            for first, result in running:
                yield first, result.result()
        finally:
            for _, result in running:
                result.cancel()


Subject = TypeVar("Subject")


def once(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
    """Return the function of an object that never changes, as one that computes each result once.

    What it returns is shared: no caller may write to it. It must not hold the object, which would then be kept forever.

    Example:
        >>> class Job: pass
        >>> job, calls = Job(), []
        >>> count = once(lambda job: calls.append(job) or len(calls))
        >>> count(job), count(job), count(Job())
        (1, 1, 2)
    """
    known: WeakKeyDictionary[Subject, Result] = WeakKeyDictionary()

    @wraps(function)
    def call(subject: Subject) -> Result:
        if subject not in known:
            known[subject] = function(subject)
        return known[subject]

    return call
