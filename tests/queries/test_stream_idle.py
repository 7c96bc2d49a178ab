"""When a stream was free before each of its kernels and copies."""

from __future__ import annotations

from hypothesis import given, settings

from htagraph.queries.stream_idle import stream_pauses
from tests.strategies import Job, jobs, kernel, launch, load


def test_pauses_come_by_device_and_stream() -> None:
    graph = load([kernel("k", 10 * i, 5, stream=stream) for i in range(2) for stream in (20, 7)])
    assert stream_pauses(graph)[["stream", "pause_ns"]].to_numpy().tolist() == [[7, 5000], [20, 5000]]


def test_a_stream_is_free_when_all_its_earlier_work_has_ended() -> None:
    graph = load([launch(0, 1, 3), kernel("long", 0, 30), kernel("short", 5, 5), kernel("next", 32, 5, 3)])
    table = stream_pauses(graph)
    name = [graph.names[number] for number in graph.activities.name]
    assert [(name[a], name[b]) for a, b in zip(table["before"], table["after"], strict=True)] == [
        ("long", "short"),
        ("short", "next"),
    ]
    assert table["pause_ns"].tolist() == [0, 2000]
    free = table["free_ns"] - graph.activities.start[table["before"][0]]
    assert free.tolist() == [30_000, 30_000]
    assert [name[row] if row >= 0 else None for row in table["launch"]] == [None, "cudaLaunchKernel"]


@given(jobs())
@settings(max_examples=20)
def test_pauses_are_those_of_walking_along_each_stream(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    wanted = []
    streams: dict[tuple[int, int, int], list[int]] = {}
    for row in sorted(range(len(acts)), key=lambda row: (acts.start[row], row)):
        if acts.on_device[row]:
            lane = graph.lanes[acts.lane[row]]
            streams.setdefault((lane.rank, lane.device, lane.stream), []).append(row)
    for place in sorted(streams):
        free = 0
        for i, row in enumerate(streams[place]):
            if i:
                pause = max(0, int(acts.start[row]) - free)
                wanted.append([*place, streams[place][i - 1], row, int(acts.cause[row]), free, pause])
            free = max(free, int(acts.end[row]))
    table = stream_pauses(graph)
    assert table.to_numpy().tolist() == wanted
    assert set(table.dtypes.astype(str)) == {"int64"}
