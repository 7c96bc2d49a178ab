"""Two jobs in one tree of call paths: against chains of names, and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.analyses.differences.alignment import align
from htagraph.core.naming import stable_name
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op, runtime, step, traces


def operators(*names: str, kernel_name: str = COMPUTE) -> list[Any]:
    """Return a step with one operator per name, one after the other, each launching a kernel."""
    events = [step(1, 0, 100)]
    for i, name in enumerate(names):
        at = 5 + 11 * i
        events += [op(name, at, 8), launch(at + 1, 2, i + 1), kernel(kernel_name, at + 4, 3, i + 1)]
    return events


@pytest.mark.slow
@settings(max_examples=15)
@given(traces(), traces())
def test_the_tree_is_that_of_names(first: Any, second: Any) -> None:
    """The slow version: the chain of names around each activity, and how many equal siblings were called before."""
    found = hg.diff(load(first), load(second))
    tree = found.alignment
    for graph, path in zip(tree.graphs, tree.path, strict=True):
        for i in range(len(graph.activities)):
            chain, at = [], int(path[i])
            while at >= 0:
                chain.append(tree.names[at])
                at = int(tree.parent[at])
            name = graph.names[graph.activities.name[i]]
            assert chain[0] == stable_name(name) or tree.renamed[int(path[i])] == name
            assert chain[1:] == levels(graph, i, tree.graphs)


def levels(graph: DependencyGraph, activity: int, graphs: tuple[DependencyGraph, DependencyGraph]) -> list[str]:
    acts = graph.activities
    both = set.intersection(
        *({g.names[g.activities.name[i]] for i in g.select(kind="annotation").activities} for g in graphs)
    )
    above = graph.tree.parent
    at, found = int(above[activity]), []
    while at >= 0:
        word, name = hg.ActivityKind(acts.kind[at]).label, graph.names[acts.name[at]]
        if word in ("op", "host_communication") or (word == "annotation" and name in both):
            found.append(name)
        at = int(above[at])
    return found


@pytest.mark.slow
@settings(max_examples=15)
@given(traces(), traces())
def test_a_place_has_one_path_and_at_most_one_activity_per_rank_and_step(first: Any, second: Any) -> None:
    tree = align(load(first), load(second))
    paths: dict[int, int] = {}
    for graph, path, place in zip(tree.graphs, tree.path, tree.place, strict=True):
        for one, other in zip(place.tolist(), path.tolist(), strict=True):
            assert paths.setdefault(one, other) == other
        if graph.ranks == (0,) and not graph.steps:
            recorded = graph.select().activities
            assert len(np.unique(place[recorded])) == len(recorded)


def test_a_job_aligned_with_itself_is_the_same_twice() -> None:
    graph = graph_of(DATA / "demo")
    tree = align(graph, graph)
    assert np.array_equal(tree.path[0], tree.path[1])
    assert np.array_equal(tree.place[0], tree.place[1])
    assert tree.renamed == {}
    assert len(tree) == len(tree.names) == len(tree.kinds) == len(tree.texts) == len(tree.on_device)


def test_the_kernel_of_one_operator_is_renamed_and_not_added() -> None:
    before, after = load(operators("a", "b")), load(operators("a", "b", kernel_name="other_kernel"))
    tree = align(before, after)
    assert set(tree.renamed.values()) == {"other_kernel"}
    assert {tree.names[path] for path in tree.renamed} == {COMPUTE}
    assert [set(path[before.select(kind="kernel").activities].tolist()) for path in tree.path] == [
        set(tree.renamed)
    ] * 2


def test_annotations_that_only_one_job_has_move_nothing() -> None:
    plain = operators("a", "b")
    found = hg.diff(load(plain), load([*plain, annotation("## forward ##", 4, 30)]))
    assert found.added["path"].tolist() == ["## forward ##"]
    assert not len(found.removed)
    assert "a > ampere_sgemm_128x64_nn" in found.alignment.texts


def test_annotations_of_both_are_levels() -> None:
    events = [*operators("a", "b"), annotation("## forward ##", 4, 30)]
    assert any(path.startswith("## forward ## > a") for path in hg.diff(load(events), load(events)).alignment.texts)


def test_equal_siblings_are_told_apart_by_order() -> None:
    found = hg.diff(load(operators("a", "a")), load(operators("a", "a", "a")))
    tree = found.alignment
    places = [set(each[part.activities].tolist()) for each, part in zip(tree.place, found.parts, strict=True)]
    assert places[0] < places[1]
    assert found.to_frame().query("name == 'a'")["change"].tolist()[:1] == ["more"]


def one_operator(*kernels: str, elsewhere: tuple[str, ...] = ()) -> DependencyGraph:
    """Return an operator that launches some kernels, and another that launches others."""
    events: list[Any] = []
    for at, name, launched in ((0, "op", kernels), (500, "elsewhere", elsewhere)):
        events.append(op(name, at, 10 * len(launched) + 10))
        for i, each in enumerate(launched):
            number = at + i + 1
            events += [launch(at + 10 * i + 1, 2, number), kernel(each, at + 10 * i + 4, 3, number)]
    return load(events)


def replaced(before: DependencyGraph, after: DependencyGraph) -> list[list[str]]:
    return hg.diff(before, after).renamed[["before", "after"]].to_numpy().tolist()


def test_kernels_are_paired_by_their_names_and_not_by_order() -> None:
    before = one_operator("ampere_sgemm_64x32_nt", "ampere_sgemm_128x64_nn", "softmax_forward")
    after = one_operator("volta_sgemm_128x64_nn", "softmax_forward", "volta_sgemm_64x32_nt")
    assert sorted(replaced(before, after)) == [
        ["ampere_sgemm_128x64_nn", "volta_sgemm_128x64_nn"], ["ampere_sgemm_64x32_nt", "volta_sgemm_64x32_nt"]
    ]  # fmt: skip


def test_unlike_kernels_are_not_paired_unless_one_of_each_is_left() -> None:
    assert not replaced(one_operator("flash_fwd", "add_vectorized"), one_operator("triton_poi_0", "triton_red_1"))
    assert replaced(one_operator("gelu_vectorized"), one_operator("triton_poi_0")) == [
        ["gelu_vectorized", "triton_poi_0"]
    ]


def test_unlike_kernels_launched_outside_operators_or_not_equally_often_are_gone_and_new() -> None:
    def in_a_region(name: str) -> DependencyGraph:
        return load([annotation("forward", 0, 90), launch(1, 2, 1), kernel(name, 5, 3, 1)])

    assert not replaced(in_a_region("gelu_vectorized"), in_a_region("triton_poi_0"))
    assert replaced(in_a_region("gelu_vectorized_4"), in_a_region("gelu_vectorized_2"))
    assert not replaced(one_operator("gelu_vectorized"), one_operator("triton_poi_0", "triton_poi_0"))


def test_words_that_all_kernels_have_make_no_kernels_alike() -> None:
    before = one_operator("at::native::reduce_kernel", "at::native::index_kernel")
    after = one_operator("at::native::fill_kernel", "at::native::sort_kernel")
    assert not replaced(before, after)


def test_a_kernel_that_both_jobs_run_is_no_other_kernels_new_name() -> None:
    before = one_operator("gemm_128x64_nn", elsewhere=("gemm_64x64_nn",))
    after = one_operator("gemm_64x64_nn", elsewhere=("gemm_64x64_nn",))
    assert not replaced(before, after)
    assert not replaced(after, before)


def test_calls_of_other_makers_that_do_the_same_are_one_path() -> None:
    jobs = [
        load([op("op", 0, 9), runtime(name, 1, 2)]) for name in ("cudaLaunchKernelExC", "hipLaunchKernel", "hipFree")
    ]
    assert not len(hg.diff(*jobs[:2]).added)
    assert hg.diff(*jobs[::2]).added["name"].tolist() == ["hipFree"]
