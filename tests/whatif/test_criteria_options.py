"""Criteria as text: every one of `select`, and nothing else."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

import htagraph as hg
from htagraph.graph.selection import Criteria
from htagraph.whatif.criteria_options import KEYS, amount, criteria
from tests.reach import DATA, graph_of


def test_the_keys_are_those_of_select_and_two_more() -> None:
    assert set(KEYS) == {*get_type_hints(Criteria), "after", "before"}


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("step_index=-1", {"step_index": -1}), ("step_index=0,-1", {"step_index": [0, -1]}),
        ("step_index=0-2", {"step_index": [0, 1, 2]}), ("min_us=10", {"min_us": 10.0}),
        ("max_us=1.5ms", {"max_us": 1500.0}),
        ("time=1ms..2500", {"time": (1000.0, 2500.0)}), ("regex=^a.*$,depth=0", {"regex": "^a.*$", "depth": 0}),
    ],
)  # fmt: skip
def test_what_is_no_name_has_its_own_form(text: str, given: dict[str, Any]) -> None:
    assert criteria(text) == given


@pytest.mark.parametrize("text", ["time=1ms", "time=a..b", "min_us=x", "step_index=a", "depth=-1", "size=3"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is n|choose from"):
        criteria(text)


def test_a_selection_takes_them_all() -> None:
    graph = graph_of(DATA / "demo")
    wanted = criteria("kind=kernel,category=kernel,regex=gemm,min_us=100,step_index=-1,time=0..1s,depth=0-9")
    chosen = graph.select(**wanted)
    assert 0 < len(chosen.activities) < len(graph.select(kind="kernel").activities)
    assert hg.what_if(graph).scale(factor=0.5, **wanted).run().speedup > 1


def test_an_amount_needs_its_unit() -> None:
    with pytest.raises(ValueError, match="a time"):
        amount("5", {"s": 1.0}, "a time")
