"""Processes of this machine, started afresh, so that threads and locks of this one do not matter to them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

from htagraph.core.computing import processors

__all__ = ["Processes"]

T = TypeVar("T")


class Processes:
    """A pool of processes that is made anew when one of them dies, which ends all of a pool's calls."""

    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)
    hopeless: tuple[type[BaseException], ...] = ()

    def __init__(self, count: int | None = None) -> None:
        self._count = count or processors()
        self._pool = self._new()

    def submit(self, function: Callable[..., T], /, *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        """Return the future result of a call in one of the processes."""
        try:
            return self._pool.submit(function, *given)
        except BrokenExecutor:
            self.renew()
            return self._pool.submit(function, *given)

    def slots(self) -> int:
        """Return how many processes there are."""
        return self._count

    def renew(self) -> None:
        """End the processes and start others: calls that run are lost."""
        before, self._pool = self._pool, self._new()
        processes = list((before._processes or {}).values())
        before.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._count, mp_context=multiprocessing.get_context("spawn"))
