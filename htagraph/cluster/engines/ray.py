"""The workers of a Ray cluster, or of this machine where Ray runs on no other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Ray"]

T = TypeVar("T")


class Ray:
    """Ray as the program has started it, or as it starts by itself."""

    hopeless: tuple[type[BaseException], ...] = ()

    def __init__(self, ray: Any) -> None:  # noqa: ANN401 - the module
        if not ray.is_initialized():
            ray.init()
        self.deaths: tuple[type[BaseException], ...] = (ray.exceptions.WorkerCrashedError,)
        self._ray = ray
        self._call = ray.remote(max_retries=0, num_cpus=1)(_call)  # the caller tries again

    def submit(self, function: Callable[..., T], /, *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        """Return the future result of a call on one of the workers."""
        return self._call.remote(function, *given).future()

    def slots(self) -> int:
        """Return how many processors the cluster has, now."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def renew(self) -> None:
        """Do nothing: others may use the same workers."""


def _call(function: Callable[..., T], *given: Any) -> T:  # noqa: ANN401 - the function's
    return function(*given)
