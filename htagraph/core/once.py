"""Results that several questions to one object need: the first computes them, and they are kept as long as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

__all__ = ["once"]

Subject = TypeVar("Subject")
Result = TypeVar("Result")


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
