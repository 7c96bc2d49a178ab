"""The graph of HTA's own tests."""

from __future__ import annotations

import pytest

from htagraph.hta.critical_path.analysis import (
    CPGraph,
)
from tests.hta.critical_path.made import (
    MEASURE,
    SIMPLE_ADD,
    ZERO_LAUNCHES,
    analysed,
)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> CPGraph:
    """Return the graph of HTA's own tests, which set this flag."""
    monkeypatch.setenv(ZERO_LAUNCHES, "1")
    return analysed(SIMPLE_ADD, MEASURE, 1)
