"""A function over many files on workers: answers as they come, with another try where a worker was lost or is slow."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from htagraph.cluster.engines import Engine

__all__ = ["Failed", "Patience", "run_each"]

S = TypeVar("S")
T = TypeVar("T")

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
