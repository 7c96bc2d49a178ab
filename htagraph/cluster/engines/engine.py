"""Engine: the little that is asked of whatever calls functions on workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

__all__ = ["Engine"]

T = TypeVar("T")


class Engine(Protocol):
    """Calls functions on workers. Lost workers are its callers' business: it calls each function once."""

    deaths: tuple[type[BaseException], ...]
    """Errors of calls that were on a worker as it died, whichever of them it died of."""
    hopeless: tuple[type[BaseException], ...]
    """Errors after which another try would fail too."""

    def submit(self, function: Callable[..., T], /, *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        """Return the future result of a call on a worker, which imports the function by its name."""

    def slots(self) -> int:
        """Return how many calls run at once."""

    def renew(self) -> None:
        """Free the slots of calls that never end, where that is possible; other calls may be lost with them."""
