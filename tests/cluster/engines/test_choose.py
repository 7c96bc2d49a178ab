"""What users give as an engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from htagraph.cluster.engines.choose import engine_of
from htagraph.cluster.engines.executor import OfExecutor
from htagraph.cluster.engines.processes import Processes


def test_words_numbers_executors_and_engines_are_engines() -> None:
    processes = engine_of(3)
    assert isinstance(processes, Processes)
    assert processes.slots() == 3
    assert isinstance(engine_of("processes"), Processes)
    assert engine_of(processes) is processes
    with ThreadPoolExecutor(1) as pool:
        assert isinstance(engine_of(pool), OfExecutor)


@pytest.mark.parametrize("engine", ["threads", 0, -1, True, 1.5, object()])
def test_all_else_is_refused_with_what_is_taken(engine: Any) -> None:
    with pytest.raises(TypeError, match=r"concurrent\.futures executor"):
        engine_of(engine)
