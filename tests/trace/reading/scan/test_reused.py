"""Memory is lent again only if nobody can see it."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.trace.reading.scan import reused
from htagraph.trace.reading.scan.reused import Reused


def test_what_is_still_looked_at_is_not_lent_again() -> None:
    memory = Reused(np.int64)
    whole = memory.lend(10)
    part = whole.reshape(2, 5).T[1:, :1]
    part[...] = 7
    del whole
    memory.lend(10)[:] = 0
    assert (part == 7).all()


def test_what_nobody_looks_at_is_lent_again() -> None:
    memory = Reused(np.uint8)
    address = memory.lend(100).ctypes.data
    assert [memory.lend(size).ctypes.data for size in (100, 1, 50)] == [address] * 3


def test_larger_memory_takes_the_place_of_smaller() -> None:
    memory = Reused(np.uint8)
    memory.lend(1)
    assert len(memory.lend(5)) == 5
    assert len(memory.lend(3)) == 3


def test_memory_for_one_huge_event_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reused, "_MAX_BYTES", 64)
    memory = Reused(np.uint8)
    assert len(memory.lend(65)) == 65
    assert len(memory._kept) == 0
