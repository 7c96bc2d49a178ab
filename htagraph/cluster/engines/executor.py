"""Any `concurrent.futures.Executor`: its threads or processes are the workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, Final, TypeVar

__all__ = ["OfExecutor"]

T = TypeVar("T")

_UNKNOWN: Final = 8
"""Calls that are given at once to an executor that does not say how many it runs. Chosen: enough for a machine; more
wait inside it. Doubled, nothing changes but how soon a call counts as slow."""


class OfExecutor:
    """The user's own executor, as it is. One that is broken stays so: the caller made it, and knows how to."""

    deaths: tuple[type[BaseException], ...] = ()
    hopeless: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., T], /, *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        """Return the future result of a call."""
        return self._executor.submit(function, *given)

    def slots(self) -> int:
        """Return how many threads or processes it has."""
        return int(getattr(self._executor, "_max_workers", _UNKNOWN))

    def renew(self) -> None:
        """Do nothing: its threads and processes are not ours to end."""
