"""Which time is whose, and what is said where nothing matches."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import COMMUNICATION, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import (
    NEVER,
    ChangeError,
    checked,
    edges_of,
    end_spread,
    initial,
    own_time,
    released,
    time_of,
    waiting,
)
from htagraph.whatif.changes.scale import scale
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, annotation, complete, kernel, launch, load, op, step


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    """A step: Python 0-2, `a` 2-20 with `b` 5-10 inside and a launch 12-13; `phase` 22-40 with `a` 25-30 inside."""
    return load([
        step(1, 0, 50), op("a", 2, 18), op("b", 5, 5), launch(12, 1, 1), kernel(COMPUTE, 15, 7, 1),
        annotation("phase", 22, 18), op("a", 25, 5), launch(33, 1, 2), kernel(COMPUTE, 36, 4, 2),
    ])  # fmt: skip


def _lasts(graph: DependencyGraph, **criteria: object) -> int:
    """Return what the selected time adds up to, µs."""
    time = own_time(initial(graph), dict(criteria))
    return int(graph.edges.lag[time.edges].sum() - time.fixed.sum() + graph.gap[time.gaps].sum()) // 1000


def test_an_operators_time_is_its_self_time(graph: DependencyGraph) -> None:
    assert _lasts(graph, name="a") == 18 - 5 - 1 + 5
    assert _lasts(graph, name="b") == 5


def test_op_means_everything_inside(graph: DependencyGraph) -> None:
    assert _lasts(graph, op="a") == 18 + 7 + 5


def test_the_name_of_an_annotation_means_everything_inside(graph: DependencyGraph) -> None:
    assert _lasts(graph, name="phase") == 18 + 4
    assert _lasts(graph, name="phase", kind="annotation") == 18 + 4
    assert _lasts(graph, kind="annotation") == 18 - 5 - 1  # without a name: the Python of regions


def test_host_means_python_between_operators_too(graph: DependencyGraph) -> None:
    assert _lasts(graph, kind="host") == 50
    assert _lasts(graph, kind="op") == 18 - 1 + 5
    assert _lasts(graph) == 50 + 7 + 4


def test_python_outside_any_region_counts_by_rank_and_step() -> None:
    graph = load({0: [op("a", 0, 5), op("a", 9, 1)], 1: [op("a", 0, 5), op("a", 7, 1)]})
    assert _lasts(graph, kind="host") == 12 + 6
    assert _lasts(graph, kind="host", rank=1) == 6 + 2
    assert _lasts(graph, kind="host", name="a") == 12


def test_the_time_of_chosen_activities_is_that_of_their_criteria(graph: DependencyGraph) -> None:
    chosen = np.zeros(len(graph.activities) + 1, np.bool_)
    chosen[graph.select(name="a").activities] = True
    time = time_of(initial(graph), chosen, loader=False, outside=np.zeros(len(graph.activities), np.bool_))
    assert np.array_equal(time.edges, own_time(initial(graph), {"name": "a"}).edges)


def test_an_empty_graph_says_so() -> None:
    with pytest.raises(SelectionError, match="no activities"):
        scale(initial(load({0: []})), factor=1)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "2", None, True])
def test_a_factor_that_is_none_is_refused(graph: DependencyGraph, value: object) -> None:
    with pytest.raises(ChangeError, match="factor="):
        scale(initial(graph), factor=value)  # type: ignore[arg-type]


def test_a_number_may_have_to_lie_above() -> None:
    assert checked(0.5, "x", above=True) == 0.5
    with pytest.raises(ValueError, match="above 0"):
        checked(0, "x", above=True)


def test_a_vertex_keeps_one_of_its_predecessors(graph: DependencyGraph) -> None:
    state = released(initial(graph), np.ones(len(graph.edges), np.bool_))
    assert (state.lag <= 0).all()
    assert (state.lag > NEVER).all()
    only = np.zeros(len(graph.edges), np.bool_)
    busy = np.flatnonzero(np.bincount(graph.edges.target) > 1)
    only[np.flatnonzero(graph.edges.target == busy[0])[0]] = True
    state = released(initial(graph), only)
    assert state.lag[only].tolist() == [NEVER]
    assert (predict(graph, state.lag) <= graph.time).all()


def test_a_change_leaves_its_input_alone(graph: DependencyGraph) -> None:
    before = initial(graph)
    lag, gap = before.lag.copy(), before.gap.copy()
    scale(before, factor=3.0)
    assert np.array_equal(before.lag, lag)
    assert np.array_equal(before.gap, gap)


def test_an_annotation_in_a_python_frame_has_the_frames_code_inside_it() -> None:
    frame = complete("python_function", "train", 5, 990)
    events = [step(1, 0, 1000), frame, annotation("augment", 100, 300), op("inner", 150, 50), op("later", 600, 100)]
    graph = load(events)
    for criteria in ({"name": "augment"}, {"op": "augment"}):
        assert hg.what_if(graph).scale(factor=0, **criteria).run().saved_ns == 300_000
    assert hg.what_if(graph).scale(factor=0, kind="annotation").run().saved_ns == 250_000


def test_members_of_a_collective_end_later_than_the_first_by_their_lag() -> None:
    state = initial(graph_of(DATA / "demo"))
    edges = state.graph.edges
    rows = np.flatnonzero((edges.kind == EdgeKind.COLLECTIVE) & (edges.activity >= 0))
    spread = end_spread(state, rows)
    for join in np.unique(edges.source[rows]).tolist():
        of_join = edges.source[rows] == join
        lag = edges.lag[rows[of_join]]
        assert spread[of_join].tolist() == np.minimum(lag - lag.min(), 5000).tolist()


def test_alone_the_shortest_of_a_name_and_size_is_transfer_and_the_rest_of_longer_ones_waiting() -> None:
    state = initial(hg.load(DATA / "demo", ranks=[1]))
    graph = state.graph
    acts = graph.activities
    talks = np.isin(acts.kind, COMMUNICATION)
    assert talks.any()
    rows = edges_of(graph, np.append(talks, False))
    fixed = waiting(state, np.arange(len(graph.edges)))
    assert not np.delete(fixed, rows).any()
    sizes = [acts.arg(column) for column in ("in_msg_nelems", "out_msg_nelems")]
    for row in rows.tolist():
        owner = int(graph.edges.activity[row])
        alike = talks & (acts.name == acts.name[owner])
        for size in sizes:
            alike &= size == size[owner]
        lag = int(graph.edges.lag[row])
        assert fixed[row] == max(lag - int(acts.duration[alike].min()), 0)
