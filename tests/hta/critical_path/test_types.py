"""HTA's environment variables, and its words."""

from __future__ import annotations

import pytest

from htagraph.hta.critical_path.overlay import is_zero_weight_launch_edge
from htagraph.hta.critical_path.types import CPEdgeType
from tests.hta.critical_path.made import (
    MEASURE,
    SIMPLE_ADD,
    ZERO_LAUNCHES,
    analysed,
    shared,
)


@shared
def test_flags_are_asked_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTA reads them once (L5)."""
    count = {}
    for value in ("0", "1"):
        monkeypatch.setenv(ZERO_LAUNCHES, value)
        count[value] = sum(
            is_zero_weight_launch_edge(data["object"])
            for _, _, data in analysed(SIMPLE_ADD, MEASURE, 1).edges(data=True)
        )
    assert count["0"] == 0 < count["1"]


def test_the_words_are_htas() -> None:
    assert [kind.value for kind in CPEdgeType] == [
        "critical_path_operator", "critical_path_dependency", "critical_path_kernel_launch_delay",
        "critical_path_kernel_kernel_delay", "critical_path_sync_dependency",
    ]  # fmt: skip
