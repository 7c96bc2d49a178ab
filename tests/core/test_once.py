from __future__ import annotations

import gc
import weakref

from htagraph.core.once import once


class Subject:
    """Something that results are about."""


def test_a_result_is_computed_once_per_subject() -> None:
    calls: list[Subject] = []

    def result_of(subject: Subject) -> object:
        calls.append(subject)
        return object()

    count = once(result_of)
    one, other = Subject(), Subject()
    assert count(one) is count(one)
    assert count(one) is not count(other)
    assert calls == [one, other]


def test_a_result_goes_with_its_subject() -> None:
    subject = Subject()
    kept = once(lambda _: Subject())(subject)
    result = weakref.ref(kept)
    del kept, subject
    gc.collect()
    assert result() is None
