from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.fetches import loader_time
from htagraph.whatif.layout import (
    Axis,
    groups_of_axis,
    in_groups,
    known_groups,
    pattern_of,
    stages_of,
    with_shared_work,
    works_of,
)
from tests.whatif.changes.simulated import recorded, small


def staged(**settings: object) -> DependencyGraph:
    return recorded(small("gpu_bound").model_copy(update={"pp": 2, "ranks": 2, "microbatches": 4, **settings}))[0]


def grid(labels: tuple[str, str] = ("dp", "tp")) -> DependencyGraph:
    """Return a job of data and tensor parallel groups that are labelled so."""
    graph = recorded(small("tensor").model_copy(update={"tp": 2, "ranks": 4}))[0]
    assert graph.matches is not None
    names = tuple(each.replace("dp", labels[0]).replace("tp", labels[1]) for each in graph.matches.group)
    return replace(graph, matches=replace(graph.matches, group=names))


def without_operators_of_passes(graph: DependencyGraph) -> DependencyGraph:
    """Return a job that does not show which operators have a backward operator."""
    return graph.replace(edges=graph.edges.take(np.flatnonzero(graph.edges.kind != EdgeKind.AUTOGRAD)))


@pytest.mark.parametrize(
    ("labels", "axis"),
    [(("dp", "tp"), "data"), (("mesh_dp", "mesh_tp"), "tensor"), (("DATA_PARALLEL_GROUP", "x"), "data"),
     (("x", "TENSOR_MODEL_PARALLEL_GROUP"), "tensor")],
)  # fmt: skip
def test_labels_name_an_axis(labels: tuple[str, str], axis: Axis) -> None:
    graph = grid(labels)
    assert graph.matches is not None
    found = {graph.matches.group[at] for at in np.flatnonzero(groups_of_axis(graph, axis))}
    assert len(found) == 2
    assert all(labels[axis == "tensor"] in each for each in found)


@pytest.mark.parametrize(
    ("labels", "axis"),
    [(("a", "b"), "data"), (("a", "b"), "tensor"), (("TENSOR_AND_DATA_PARALLEL_GROUP", "b"), "data"),
     (("MODEL_PARALLEL_GROUP", "b"), "tensor")],
)  # fmt: skip
def test_labels_that_name_no_axis_or_two_are_refused(labels: tuple[str, str], axis: Axis) -> None:
    blind = without_operators_of_passes(grid(labels))
    with pytest.raises(SelectionError, match="groups= says it"):
        groups_of_axis(blind, axis)
    assert groups_of_axis(blind, axis, f"*{labels[1]}*").any()


def labelled(graph: DependencyGraph, *labels: str) -> DependencyGraph:
    """Return a job whose groups have other labels, in the order of theirs."""
    assert graph.matches is not None
    other = dict(zip(sorted({*graph.matches.group}), labels, strict=True))
    return replace(graph, matches=replace(graph.matches, group=tuple(other[each] for each in graph.matches.group)))


@pytest.mark.parametrize("label", ["0 default_pg [0, 1, 2, 3]", "ranks 0, 1", "3 [0, 1]", "a[b]*?c"])
def test_a_label_and_the_pattern_that_is_proposed_for_it_name_its_group(label: str) -> None:
    matches = labelled(recorded(small("gpu_bound"))[0], label).matches
    assert matches is not None
    assert in_groups(matches, label).all()
    assert in_groups(matches, pattern_of(label)).all()
    assert not set(" ,[]") & set(pattern_of(label))


def test_groups_that_reduce_in_the_forward_pass_are_tensor_parallel() -> None:
    job = small("tensor").model_copy(update={"tp": 2, "ranks": 4, "with_stack": True})
    graph = labelled(recorded(job)[0], "a", "b", "c", "d")  # data parallel in a and b, tensor parallel in c and d
    assert graph.matches is not None
    assert {graph.matches.group[at] for at in np.flatnonzero(known_groups(graph, "tensor"))} == {"c", "d"}
    assert not known_groups(graph, "data", "pipeline").any()


def test_a_pattern_that_matches_nothing_names_the_groups() -> None:
    matches = grid().matches
    assert matches is not None
    with pytest.raises(SelectionError, match="the graph has"):
        in_groups(matches, "nothing")


@pytest.mark.parametrize(("settings", "stages"), [({}, 2), ({"pp": 4, "ranks": 4, "layers": 4}, 4), ({"ranks": 4}, 2)])
def test_stages_and_microbatches_are_counted(settings: dict[str, int], stages: int) -> None:
    assert stages_of(staged(**settings)) == (stages, 4)


def test_messages_in_a_ring_are_no_line_of_stages() -> None:
    graph = staged(pp=4, ranks=4, layers=4)
    ring = graph.activities.rank.copy()
    ring[ring == 3] = 0  # the last stage is the first one, too
    with pytest.raises(SelectionError, match="rings"):
        stages_of(replace(graph, activities=replace(graph.activities, rank=ring)))


def test_tensor_parallel_ranks_each_normalize_all_activations() -> None:
    graph, _ = recorded(small("gpu_bound"))
    state = hg.what_if(graph).state
    norms = np.array(["layer_norm" in name for name in graph.names])[graph.activities.name]
    norms &= graph.activities.kind == ActivityKind.COMPUTATION
    changed = {
        axis: graph.edges.activity[with_shared_work(state, 0.5, axis).lag != state.lag]
        for axis in ("tensor", "pipeline")
    }
    assert norms[changed["pipeline"]].any()
    assert not norms[changed["tensor"]].any()


def test_shared_work_takes_its_part_and_leaves_the_optimizer() -> None:
    graph, _ = recorded(small("gpu_bound"))
    state = hg.what_if(graph).state
    works, all_works = works_of(graph, optimizer=False)[:-1], works_of(graph, optimizer=True)[:-1]
    assert works.sum() < all_works.sum() == (graph.activities.kind == ActivityKind.COMPUTATION).sum()
    halved = with_shared_work(state, 0.5, "data")
    own = graph.edges.activity
    rows = np.flatnonzero((own >= 0) & (halved.lag != state.lag))
    rows = np.setdiff1d(rows, loader_time(state, {}).edges)
    works |= np.array(["HtoD" in each for each in graph.names])[graph.activities.name]
    assert works[own[rows]].all()
    assert halved.lag[rows].sum() == pytest.approx(state.lag[rows].sum() / 2, rel=1e-3)
    (unsure,) = halved.unsure
    assert (unsure.low < 1).all()
    assert (unsure.high > 1).all()
