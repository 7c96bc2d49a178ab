"""The workers of a Dask cluster. Its scheduler gives a lost worker's calls to others by itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Dask"]

T = TypeVar("T")


class Dask:
    """A `distributed.Client`, through the executor that it offers."""

    hopeless: tuple[type[BaseException], ...] = ()

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - a client of distributed
        from distributed.scheduler import KilledWorker

        self.deaths: tuple[type[BaseException], ...] = (KilledWorker,)  # several workers died, perhaps of another call
        self._client = client
        self._executor = client.get_executor(pure=False)  # not pure: a copy of a slow call is a call of its own

    @classmethod
    def at(cls, address: str) -> Dask:
        """Return the cluster whose scheduler has this address.

        Raises:
            HtagraphError: no scheduler answers, or Dask is not installed.
        """
        from htagraph.core.errors import HtagraphError

        try:
            import distributed
        except ImportError as error:
            msg = f"{address}: a Dask scheduler needs a package: pip install 'htagraph[cluster]'"
            raise HtagraphError(msg) from error
        try:
            connect: Any = distributed.Client  # without types in some releases
            return cls(connect(address))
        except (OSError, ValueError) as error:
            msg = f"{address}: no Dask scheduler answers there ({error})"
            raise HtagraphError(msg) from error

    def submit(self, function: Callable[..., T], /, *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        """Return the future result of a call on one of the workers."""
        return self._executor.submit(function, *given)

    def slots(self) -> int:
        """Return how many threads the workers have, now; one if there are none yet."""
        return max(1, sum(self._client.nthreads().values()))

    def renew(self) -> None:
        """Do nothing: others may use the same workers."""
