"""Results one after another, while threads compute the next few."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from htagraph.core.processors import processors

__all__ = ["ahead", "threads_for"]

Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_THREADS = 8
"""How many results are computed at once, at most. Chosen: each holds columns of all vertices or edges, some 100 bytes
per vertex, and more threads wait for memory. Doubled, twice the memory."""
_FEW = 200_000
"""Rows below which threads are not worth it. Chosen: numpy then leaves one operation after some 0.1 ms, and the threads
wait for each other between them. Doubled, a graph of 0.3 million events is replayed one change at a time."""


def threads_for(rows: int) -> int:
    """Return how many results are computed at once where each passes over so many rows.

    Example:
        >>> threads_for(1000)
        1
    """
    return min(processors(), _MAX_THREADS) if rows >= _FEW else 1


def ahead(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in their order; an error comes where its item's result would.

    Whoever stops early has had some results computed that nobody reads, one per thread at most.

    Args:
        function: called in several threads at once. It should spend its time where other threads can run, as in numpy.
        items: read in this thread.
        threads: how many results are computed at once; see `threads_for`. With 1, each is computed when it is asked
            for.

    Example:
        >>> list(ahead(abs, [3, -1], 2))
        [(3, 3), (-1, 1)]
    """
    if threads == 1:
        for item in items:
            yield item, function(item)
        return
    with ThreadPoolExecutor(threads) as pool:
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
