from __future__ import annotations

import os

import pytest

from htagraph.core.processors import processors


def test_processors_that_this_process_may_not_use_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert processors() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors() == 8
