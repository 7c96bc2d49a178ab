"""Engine: what calls a function on workers. They are processes of this machine, or of an executor, Dask or Ray."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from htagraph.core.computing import processors
from htagraph.core.errors import HtagraphError

__all__ = ["Engine", "engine_of"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Engine:
    """Calls functions on workers. Lost workers are its callers' business: it calls each function once."""

    submit: Callable[..., Future[Any]]
    """Takes a function and its arguments, and returns the future result of that call on a worker, which imports the
    function by its name."""
    slots: Callable[[], int]
    """Returns how many calls run at once, now."""
    deaths: tuple[type[BaseException], ...] = ()
    """Errors of calls that were on a worker as it died, whichever of them it died of."""
    hopeless: tuple[type[BaseException], ...] = ()
    """Errors after which another try would fail too."""
    renew: Callable[[], None] = lambda: None
    """Frees the slots of calls that never end, where that is possible; other calls may be lost with them. It does
    nothing where the workers are not ours to end, or others may use them too."""


def engine_of(engine: Any) -> Engine:  # noqa: ANN401 - of one of several libraries, which need not be installed
    """Return what calls functions on the workers that a user named.

    Args:
        engine: ``"processes"``, or the number of processes; a `distributed.Client`, or the address of a Dask scheduler
            (``"tcp://…"``); ``"ray"`` or the module; or any `concurrent.futures.Executor`.

    Raises:
        TypeError: it is none of these.
        HtagraphError: no scheduler answers at the address.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> engine_of(ThreadPoolExecutor(3)).slots()
        3
    """
    if engine == "processes" or (isinstance(engine, int) and not isinstance(engine, bool) and engine > 0):
        pool = _Processes(processors() if engine == "processes" else engine)
        return Engine(pool.submit, lambda: pool.count, deaths=(BrokenExecutor,), renew=pool.renew)
    if engine == "ray":
        return _ray(_imported("ray", "Ray", "ray"))
    if isinstance(engine, str) and "://" in engine:
        return _dask(_client_of(engine))
    if isinstance(engine, Executor):  # the user's own: one that is broken stays so, as the caller made it
        threads = int(getattr(engine, "_max_workers", processors()))
        return Engine(engine.submit, lambda: threads, hopeless=(BrokenExecutor,))
    return engine if isinstance(engine, Engine) else _of_library(engine)


def _of_library(engine: Any) -> Engine:  # noqa: ANN401
    """Return the engine of an object of Dask or Ray; whoever made it has imported the library."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(engine, distributed.Client):
        return _dask(engine)
    if engine is not None and engine is sys.modules.get("ray"):
        return _ray(engine)
    msg = (
        f"engine={engine!r}: give 'processes', a dask.distributed Client or the address of its scheduler, the module "
        "ray, or a concurrent.futures executor"
    )
    raise TypeError(msg)


class _Processes:
    """Processes of this machine, started afresh, so that threads and locks of this one do not matter to them.

    The pool is made anew when a process dies, which ends all of a pool's calls.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = self._new()

    def submit(self, function: Callable[..., T], /, *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        """Return the future result of a call in one of the processes."""
        try:
            return self._pool.submit(function, *given)
        except BrokenExecutor:
            self.renew()
            return self._pool.submit(function, *given)

    def renew(self) -> None:
        """End the processes and start others: calls that run are lost."""
        before, self._pool = self._pool, self._new()
        processes = list((before._processes or {}).values())
        before.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.count, mp_context=multiprocessing.get_context("spawn"))


def _dask(client: Any) -> Engine:  # noqa: ANN401 - a client of distributed
    """Return the workers of a Dask cluster. Its scheduler gives a lost worker's calls to others by itself."""
    from distributed.scheduler import KilledWorker

    executor = client.get_executor(pure=False)  # not pure: a copy of a slow call is a call of its own

    # one slot if there are no workers yet; killed: several workers died, perhaps of another call
    return Engine(executor.submit, lambda: max(1, sum(client.nthreads().values())), deaths=(KilledWorker,))


def _client_of(address: str) -> Any:  # noqa: ANN401 - a client of distributed
    """Return a client of the Dask scheduler at an address."""
    distributed = _imported("distributed", f"{address}: a Dask scheduler", "cluster")
    try:
        return distributed.Client(address)
    except (OSError, ValueError) as error:
        msg = f"{address}: no Dask scheduler answers there ({error})"
        raise HtagraphError(msg) from error


def _ray(ray: Any) -> Engine:  # noqa: ANN401 - the module
    """Return the workers of Ray as the program has started it, or as it starts by itself."""
    if not ray.is_initialized():
        ray.init()
    call = ray.remote(max_retries=0, num_cpus=1)(_call)  # the caller tries again

    def submit(function: Callable[..., T], *given: Any) -> Future[T]:  # noqa: ANN401 - the function's
        future: Future[T] = call.remote(function, *given).future()
        return future

    deaths = (ray.exceptions.WorkerCrashedError,)
    return Engine(submit, lambda: max(1, int(ray.cluster_resources().get("CPU", 1))), deaths=deaths)


def _call(function: Callable[..., T], *given: Any) -> T:  # noqa: ANN401 - the function's
    return function(*given)


def _imported(name: str, what: str, extra: str) -> Any:  # noqa: ANN401 - the module
    try:
        return importlib.import_module(name)
    except ImportError as error:
        msg = f"{what} needs a package: pip install 'htagraph[{extra}]'"
        raise HtagraphError(msg) from error
