"""Engine: what calls a function on workers. They are processes of this machine, or of an executor, Dask or Ray.

`run_each` calls a function with many files: answers as they come, with another try where a worker was lost or is slow.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from htagraph.core.computing import processors
from htagraph.core.errors import HtagraphError

__all__ = ["Engine", "Failed", "Patience", "engine_of", "run_each"]

S = TypeVar("S")
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


_LOOK_S: Final = 0.25
"""Seconds after which slow calls are looked for if no call ends. Doubled, they are noticed that much later."""
_TIMES_LONGEST: Final = 5
"""A call is slow only if it takes this many times longer than the longest that was answered, too. Chosen: ranks of one
job differ by less. Doubled, a worker that hangs in a job of long calls is noticed that much later."""


@dataclass(frozen=True)
class Failed:
    """Why there is no answer for a file."""

    why: str
    may_mend: bool = False
    """True if another try may succeed: memory was short, a store did not answer, a worker was lost."""


@dataclass(frozen=True)
class Patience:
    """How long and how often to try."""

    tries: int = 3
    """Calls for each file, at most. Chosen: more than one is lost only with workers that are; doubled, a file that no
    worker can read costs twice the time."""
    slow_s: float = 600.0
    """Seconds after which a call is given to another worker too, and after twice which it is given up. Chosen: the
    largest ranks take a minute. Doubled, a job with a worker that hangs is answered that much later."""


def run_each(
    engine: Engine,
    function: Callable[..., T | Failed],
    items: Sequence[S],
    *given: Any,  # noqa: ANN401 - the function's
    patience: Patience | None = None,
) -> Iterator[tuple[S, T | Failed]]:
    """Yield each item with the function's result for it, or why there is none, in any order; every item once.

    The function takes an item and what is `given`, and returns `Failed` for what it expects to go wrong.
    """
    run: _Run[T] = _Run(engine, lambda number: engine.submit(function, items[number], *given), patience or Patience())
    try:
        for number, answer in run.answers(len(items)):
            yield items[number], answer
    finally:
        run.cancel()


class _Run(Generic[T]):
    """What is under way; items go by their numbers."""

    def __init__(self, engine: Engine, submit: Callable[[int], Future[Any]], patience: Patience) -> None:
        self._engine, self._submit, self._patience = engine, submit, patience
        self._waiting: deque[int] = deque()
        self._suspects: deque[int] = deque()
        """Items that were under way as a worker died. Each runs alone, so that the guilty one is known."""
        self._alone = -1
        """The item that runs alone."""
        self._running: dict[Future[Any], tuple[int, float]] = {}
        """By call, its item and when it was made."""
        self._open: set[int] = set()
        self._tries: Counter[int] = Counter()
        self._answered_s, self._longest_s = time.monotonic(), 0.0

    def answers(self, count: int) -> Iterator[tuple[int, T | Failed]]:
        """Yield each item's number and answer."""
        self._waiting.extend(range(count))
        self._open.update(range(count))
        while self._open:
            self._fill()
            ended, _ = wait(self._running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for future in ended:
                yield from self._ended(future)
            yield from self._overdue()

    def cancel(self) -> None:
        """Drop the calls that nobody waits for any more."""
        for future in self._running:
            future.cancel()

    def _fill(self) -> None:
        if self._suspects:
            if not self._running:
                self._alone = self._suspects.popleft()
                self._start(self._alone)
            return
        # one call runs per slot, one waits for it to end
        room = 2 * self._engine.slots() - len(self._running) if self._waiting else 0
        for _ in range(min(room, len(self._waiting))):
            self._start(self._waiting.popleft())

    def _start(self, number: int) -> None:
        self._tries[number] += 1
        try:
            future = self._submit(number)
        except Exception as error:  # noqa: BLE001 - each engine has errors of its own
            future = Future()
            future.set_exception(error)
        self._running[future] = (number, time.monotonic())

    def _ended(self, future: Future[Any]) -> Iterator[tuple[int, T | Failed]]:
        number, since = self._running.pop(future)
        if number not in self._open:  # a copy of the call ended first
            return
        answer, is_death = self._outcome(future)
        was_alone, self._alone = number == self._alone, -1
        if isinstance(answer, Failed):
            if self._is_running(number):
                return
            if answer.may_mend and self._tries[number] < self._patience.tries and not (is_death and was_alone):
                (self._suspects if is_death else self._waiting).append(number)
                return
        self._answered_s = time.monotonic()
        self._longest_s = max(self._longest_s, self._answered_s - since)
        self._open.discard(number)
        yield number, answer

    def _outcome(self, future: Future[Any]) -> tuple[Any, bool]:
        """Return (the answer of a call that ended, True if a worker died, perhaps of it)."""
        if future.cancelled():
            return Failed("the engine dropped the call", may_mend=True), False
        error = future.exception()
        if error is None:
            return future.result(), False
        why = f"{type(error).__name__}: {error}"
        return Failed(why, not isinstance(error, self._engine.hopeless)), isinstance(error, self._engine.deaths)

    def _is_running(self, number: int) -> bool:
        return any(each == number for each, _ in self._running.values())

    def _may_copy(self, number: int) -> bool:
        """Return whether a call that nobody has answered may be made again beside the one that runs."""
        has_tries = number in self._open and self._tries[number] < self._patience.tries
        return has_tries and sum(each == number for each, _ in self._running.values()) == 1

    def _overdue(self) -> Iterator[tuple[int, T | Failed]]:
        """Copy the calls that are slow, give up those that are twice as slow, or all if no worker answers at all."""
        now, slow_s = time.monotonic(), max(self._patience.slow_s, _TIMES_LONGEST * self._longest_s)
        given_up, hangs = [], False
        for future, (number, since) in list(self._running.items()):
            if now - since > 2 * slow_s:
                del self._running[future]
                hangs |= not future.cancel()
                if number in self._open and not self._is_running(number):
                    given_up.append(number)
            elif now - since > slow_s and self._may_copy(number):
                self._start(number)
        if hangs:
            self._engine.renew()
        if now - self._answered_s > 3 * slow_s:
            given_up = sorted(self._open)
        for number in given_up:
            self._open.discard(number)
            yield number, Failed(f"no worker answered within {2 * slow_s:.0f} s")
