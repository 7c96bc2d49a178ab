"""The critical-path graph of HTA's own tests."""

from __future__ import annotations

import pytest

from htagraph.hta.analyzers.critical_path_analysis import CPGraph
from tests.hta.critical_paths import MEASURE, SIMPLE_ADD, ZERO_LAUNCHES, analysed


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> CPGraph:
    """Return the graph of HTA's own tests, which set this flag."""
    monkeypatch.setenv(ZERO_LAUNCHES, "1")
    return analysed(SIMPLE_ADD, MEASURE, 1)
