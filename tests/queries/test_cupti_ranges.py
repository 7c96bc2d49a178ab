"""Which launch each counter range belongs to, and the operators around a launch."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings

from htagraph.core.kinds import ActivityKind
from htagraph.queries.cupti_ranges import counter_ranges, operators_around
from tests.strategies import OTHER, Job, Json, complete, jobs, launch, load, op, runtime


def _ranges(*starts: int) -> list[Json]:
    return [complete("cuda_profiler_range", f"k{at}", at, 1, 0, cycles=10 * at) for at in starts]


def test_the_nth_range_in_time_belongs_to_the_nth_launch_of_any_thread(tmp_path: Path) -> None:
    events = [*_ranges(502, 500, 501), launch(5, 1, 1), launch(3, 1, 2, OTHER), launch(9, 1, 3)]
    graph = load(events, tmp_path)
    table = counter_ranges(graph, 0)
    assert table["kernel"].tolist() == ["k500", "k501", "k502"]
    assert table["range"].tolist() == [1, 2, 0]  # places in the file
    assert table["cycles"].tolist() == [5000, 5010, 5020]
    start = graph.activities.start[table["launch"]]
    assert (start - graph.origin_ns).tolist() == [0, 2000, 6000]


def test_a_driver_call_inside_a_runtime_call_is_not_counted_again(tmp_path: Path) -> None:
    inner = complete("cuda_driver", "cuLaunchKernel", 2, 1, correlation=1)
    graph = load([runtime("cudaLaunchKernel", 1, 4, 1), inner, *_ranges(500)], tmp_path)
    (call,) = counter_ranges(graph, 0)["launch"].tolist()
    assert graph.names[graph.activities.name[call]] == "cudaLaunchKernel"


def test_with_more_ranges_than_launches_none_is_given_a_launch(tmp_path: Path) -> None:
    graph = load([launch(3, 1, 1), *_ranges(500, 501)], tmp_path)
    assert counter_ranges(graph, 0)["launch"].tolist() == [-1, -1]


def test_a_rank_without_ranges_has_a_table_without_rows(tmp_path: Path) -> None:
    graph = load({0: [launch(3, 1, 1), *_ranges(500)], 1: [op("a", 0, 1)]}, tmp_path)
    assert [len(counter_ranges(graph, rank)) for rank in (0, 1, 7)] == [1, 0, 0]
    assert counter_ranges(graph, 1).columns.tolist() == ["range", "kernel", "launch"]


@given(jobs())
@settings(max_examples=20)
def test_the_operators_around_are_those_met_on_the_way_up(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    every = [-1, *range(len(acts))]
    for activity, around in zip(every, operators_around(graph, every), strict=True):
        above: list[int] = []
        while activity >= 0:
            above = [activity, *above] if acts.kind[activity] == ActivityKind.OP else above
            activity = int(acts.parent[activity])
        assert around == above
