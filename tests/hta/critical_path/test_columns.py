"""The path of most weight, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.critical_path.columns import NOBODY, Columns, View, heaviest_path


@st.composite
def dags(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    count = draw(st.integers(2, 12))
    names = draw(st.permutations(range(count)))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    chosen = draw(st.lists(pairs, min_size=1, max_size=30, unique=True))
    return [(names[u], names[v], draw(st.integers(0, 3))) for u, v in chosen]


@given(edges=dags())
def test_the_heaviest_path_is_networkxs_choice_among_equals(edges: list[tuple[int, int, int]]) -> None:
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from(edges)
    source, target, weight = np.array(edges).T
    blank = np.zeros(12, np.int64)
    columns = Columns.of(source, target, 0, weight, NOBODY)
    view = View(blank, blank, blank, blank, blank, blank, columns)
    path = heaviest_path(view, weight)
    assert path is not None
    assert path.tolist() == nx.dag_longest_path(oracle)


def test_a_cycle_has_no_path() -> None:
    blank = np.zeros(2, np.int64)
    columns = Columns.of(np.array([0, 1]), np.array([1, 0]), 0, 1, NOBODY)
    assert heaviest_path(View(blank, blank, blank, blank, blank, blank, columns), np.ones(2, np.int64)) is None
