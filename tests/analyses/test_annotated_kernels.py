from __future__ import annotations

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import ActivityKind
from tests.graph import slow_tree
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Json, annotation, complete, jobs, kernel, launch, load, step


def on_device(name: str, start: int, duration: int, stream: int = 7) -> Json:
    return complete("gpu_user_annotation", name, start, duration, stream) | {"pid": 0}


def test_a_kernel_belongs_to_the_innermost_annotation_around_its_launch_and_the_shortest_over_it() -> None:
    events = [
        step(1, 0, 50), annotation("forward", 1, 30), annotation("layer", 2, 10),
        launch(3, 1, 1), kernel(COMPUTE, 60, 5, 1), launch(20, 1, 2), kernel(COMPUTE, 70, 5, 2),
        launch(40, 1, 3), kernel(COMPUTE, 80, 5, 3), kernel(COMPUTE, 90, 5, 9, stream=20),
        on_device("forward", 60, 15), on_device("layer", 60, 5), on_device("ProfilerStep#1", 60, 25),
    ]  # fmt: skip
    table = hg.annotated_kernels(load(events))
    assert table["stream"].tolist() == [7, 7, 7, 20]
    assert table["annotation"].tolist() == ["layer", "forward", "ProfilerStep#1", ""]
    assert table["device_annotation"].tolist() == ["layer", "forward", "ProfilerStep#1", ""]


def test_annotations_are_of_their_own_rank_and_stream() -> None:
    job = {
        0: [kernel(COMPUTE, 0, 5), kernel(COMPUTE, 0, 5, stream=20), on_device("a", 0, 5)],
        1: [kernel(COMPUTE, 0, 5)],
    }
    assert hg.annotated_kernels(load(job))["device_annotation"].tolist() == ["a", "", ""]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_every_work_has_one_row_with_the_first_annotation_above_its_launch(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    acts = graph.activities
    table = hg.annotated_kernels(graph)
    assert sorted(table["work"]) == list(graph.select(kind="device"))
    ways, regions = slow_tree.ancestors(graph), (ActivityKind.ANNOTATION, ActivityKind.STEP)
    for work, ours in zip(table["work"], table["annotation"], strict=True):
        around = [graph.names[acts.name[each]] for each in ways[work] if acts.kind[each] in regions]
        assert ours == (around[0] if around else "")


def test_by_annotation_the_durations_of_its_kernels_are_summed() -> None:
    graph = graph_of(DATA / "demo")
    kernels = hg.annotated_kernels(graph)
    table = hg.annotated_kernels(graph, by="annotation").set_index(["rank", "annotation"]).sort_index()
    groups = kernels.groupby(["rank", "annotation"])["duration_us"]
    assert table["total_us"].tolist() == pytest.approx(groups.sum().tolist())
    assert table["count"].tolist() == groups.size().tolist()
    assert (table["min_us"].tolist(), table["max_us"].tolist()) == (groups.min().tolist(), groups.max().tolist())
