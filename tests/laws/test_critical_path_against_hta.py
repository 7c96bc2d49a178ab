"""The critical paths of HTA 0.6.1 (`pip install traceinsight==0.6.1`) on the samples of its own tests, beside ours.

HTA's paths were written down from

    from hta.trace_analysis import TraceAnalysis
    graph, _ = TraceAnalysis(trace_files={0: FILE}).critical_path_analysis(0, ANNOTATION, INSTANCE)
    [(node.ev_idx, node.is_start) for node in map(graph.node_list.__getitem__, graph.critical_path_nodes)]

with `ANNOTATION=""` and `INSTANCE=None` for the whole trace. Events have their position in the file as number.
HTA's path is the longest by the sum of its edges' weights, ours the chain of what each moment waited for by time: it
contains all that HTA's does, but for the differences below, and besides it annotations, calls that took less than 1 µs
and what follows HTA's last edge that has a weight, none of which HTA has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.queries.paths import CriticalPath
from tests.reach import SHARED, graph_of, raw_events

SAMPLES = SHARED / "hta" / "critical_path"

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared traces are not here")

START, END = True, False
HOST = ("cpu_op", "cuda_runtime")
MEASURE = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
WARM_UP = "[param|pytorch.model.alex_net|0|0|0|warmup|forward]"
MODEL, CLEAR = "[param|pytorch.model.alex_net|0|0|0]", "[param|clear_cache]"
UPLOADS = (373, 381, 393, 401, 409, 417, 425, 433, 441, 449, 461, 469, 481, 489, 501, 509)
"""Copies of a model's 16 parameters from pageable memory: the call is two events after its copy, its stream's
synchronization six."""


@dataclass(frozen=True)
class Hta:
    """HTA's path through a whole trace: its host events of 1 µs or more, but for those beside it, and device work."""

    nodes: int
    """len(graph.critical_path_nodes)."""
    weight: int
    """Sum over graph.critical_path_edges_set, µs."""
    span: int
    """From its first node to its last, µs."""
    device: tuple[tuple[int, int], ...]
    """First and last position of stretches of device work on the path."""
    beside: tuple[tuple[int, int], ...]
    """First and last position of stretches of host events that are not on it."""
    started: tuple[int, ...]
    """Host events of which only the start is on it: the path goes on from a launch to its work."""
    returned: tuple[int, ...]
    """Host events of which only the end is on it: the path comes from what they waited for."""


WHOLE = {
    "cuda_event_sync_multi_stream": Hta(
        59, 1178, 19917, device=((84, 90),), beside=((88, 104),), started=(4, 5, 86), returned=()
    ),
    "cuda_event_sync": Hta(
        40, 2411, 2523, device=((33, 33),), beside=((37, 37), (51, 51)), started=(35,), returned=(41,)
    ),
    "alexnet": Hta(
        1002, 43355486, 43423378, device=((373, 509), (1089, 1335)),
        beside=((294, 366), (1095, 1337), (1365, 1365)),
        started=(290, 291, 292, 293, 1091, *(upload + 2 for upload in UPLOADS)),
        returned=(1341, *(upload + 6 for upload in UPLOADS)),
    ),
    "simple_add": Hta(
        1212, 41435012, 41577653, device=((373, 509), (1253, 1275)),
        beside=((360, 366), (1259, 1277), (1305, 1305)),
        started=(355, 359, 1255, *(upload + 2 for upload in UPLOADS)),
        returned=(1281, *(upload + 6 for upload in UPLOADS)),
    ),
}  # fmt: skip

WINDOWS = {
    ("alexnet", MEASURE, 0): 171, ("alexnet", MEASURE, 1): 149, ("alexnet", WARM_UP, 0): 448,
    ("alexnet", WARM_UP, 1): 428, ("alexnet", MODEL, 0): 621, ("alexnet", CLEAR, 0): 20,
    ("simple_add", MEASURE, 0): 337, ("simple_add", MEASURE, 1): 315, ("simple_add", WARM_UP, 0): 432,
    ("simple_add", WARM_UP, 1): 412, ("simple_add", MODEL, 0): 771, ("simple_add", CLEAR, 0): 20,
}  # fmt: skip
"""Number of nodes of HTA's path by sample, annotation and instance; each is the part of the whole's path there."""

ONLY_HTA = {
    # HTA takes the next kernel for waiting for this one, which ended in the microsecond in which that was launched
    "cuda_event_sync_multi_stream": {84},
    "cuda_event_sync": set[int](),
    "alexnet": set[int](),
    # HTA goes by the copy, which ended 1 µs after cudaStreamSynchronize had begun, and by the kernels that were over
    # 235 µs before cudaDeviceSynchronize began
    "simple_add": {1253, 1257, 1261, 1267, 1271, 1275},
}
ONLY_OURS = {
    # the launch right after the one that HTA follows, and what the thread did between them
    "cuda_event_sync_multi_stream": {86, 88, 92},
    # the copy for which its call, cudaMemcpyAsync, waited
    "cuda_event_sync": {23},
    "alexnet": set[int](),
    # the call instead of its copy, and what the host did while the last kernels ran
    "simple_add": {375, 379, 355, *range(359, 367), 1255, 1259, 1263, 1265, 1269, 1273, 1277, 1281},
}
CONTROL = SHARED / "hta" / "trace_diff" / "control" / "control.json.gz"
Vertices = frozenset[tuple[int, bool]]


def graph(sample: str) -> DependencyGraph:
    return graph_of(file(sample))


def file(sample: str) -> Path:
    return SAMPLES / f"{sample}.json.gz"


@cache
def path(sample: str) -> CriticalPath:
    return hg.critical_path(graph(sample))


def on_path(sample: str) -> Vertices:
    """Return the (position, whether its start) of what is on our path."""
    event, vertices = graph(sample).activities.event, path(sample).vertices.tolist()
    return frozenset((int(event[vertex // 2]), vertex % 2 == 0) for vertex in vertices)


@cache
def theirs(sample: str) -> Vertices:
    """Return the same of HTA's path."""
    found, hta = [], WHOLE[sample]
    for position, event in enumerate(raw_events(file(sample))):
        if event.get("cat") in HOST and event["dur"] > 0:
            keep = not any(first <= position <= last for first, last in hta.beside)
        else:
            keep = event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and any(
                first <= position <= last for first, last in hta.device
            )
        # what is met half is named, so that an event beside the path may lie in a stretch of others
        if (keep or position in hta.started) and position not in hta.returned:
            found.append((position, START))
        if (keep or position in hta.returned) and position not in hta.started:
            found.append((position, END))
    return frozenset(found)


def segments(sample: str) -> pd.DataFrame:
    """Return our path as a table, with ``event``: the position in the file."""
    table = path(sample).to_frame()
    return table.assign(event=graph(sample).activities.event[table["activity"]])


def bounds(sample: str, position: int) -> tuple[float, float]:
    """Return when an event began and ended, µs since the first one."""
    job = graph(sample)
    (row,) = np.flatnonzero(job.activities.event == position)
    start, end = ((job.time[[2 * row, 2 * row + 1]] - job.origin_ns) / 1000).tolist()
    return start, end


@pytest.mark.parametrize("sample", WHOLE)
def test_what_is_written_here_is_the_path_of_hta(sample: str) -> None:
    hta, vertices = WHOLE[sample], theirs(sample)
    assert len(vertices) == hta.nodes
    moments = [bounds(sample, position)[not is_start] for position, is_start in vertices]
    assert max(moments) - min(moments) == hta.span


@pytest.mark.parametrize("sample", WHOLE)
def test_all_of_it_is_on_ours_but_for_known_differences(sample: str) -> None:
    assert {position for position, _ in theirs(sample) - on_path(sample)} == ONLY_HTA[sample]


@pytest.mark.parametrize("sample", WHOLE)
def test_within_its_span_ours_has_no_more_than_what_hta_has_no_nodes_for(sample: str) -> None:
    events, more = raw_events(file(sample)), set()
    last = max(bounds(sample, position)[not is_start] for position, is_start in theirs(sample))
    for position, is_start in on_path(sample) - theirs(sample):
        if position >= 0 and events[position]["cat"] != "user_annotation" and events[position]["dur"] > 0:
            more |= {position} if bounds(sample, position)[not is_start] <= last else set()
    assert more == ONLY_OURS[sample]


@pytest.mark.parametrize(("sample", "annotation", "instance"), WINDOWS)
def test_windows_of_annotations_are_parts_of_it(sample: str, annotation: str, instance: int) -> None:
    """Our windows are steps, and these samples have none: ours is the part of the whole's path."""
    events = raw_events(file(sample))
    around = [i for i, event in enumerate(events) if event.get("name") == annotation and event["ph"] == "X"]
    begin, end = bounds(sample, around[instance])
    kept = [i for i, event in enumerate(events) if event.get("cat") in HOST and begin <= bounds(sample, i)[0] <= end]
    if events[kept[-1]]["name"] == "cudaDeviceSynchronize":  # HTA's edges to and through it have no weight
        ending = kept.pop()
        assert (ending, END) in on_path(sample)
    calls = {events[i]["args"].get("correlation") for i in kept} - {None}
    kept += [i for i, _ in theirs(sample) if events[i]["cat"] not in HOST and events[i]["args"]["correlation"] in calls]
    part = {vertex for vertex in theirs(sample) if vertex[0] in kept}
    assert len(part) == WINDOWS[sample, annotation, instance]
    assert {position for position, _ in part - on_path(sample)} == ONLY_HTA[sample] & set(kept)


def test_a_step_is_a_window_of_both() -> None:
    """HTA's path of `critical_path_analysis(0, "ProfilerStep", 0)` is that of the whole trace."""
    whole, step = path("cuda_event_sync"), hg.critical_path(graph("cuda_event_sync"), steps=100)
    assert step.vertices[: len(whole.vertices)].tolist() == whole.vertices.tolist()


@pytest.mark.parametrize("sample", WHOLE)
def test_ours_adds_up_to_the_window(sample: str) -> None:
    """HTA's weights do not add up to its path's span: what lies between operators of a thread has none."""
    assert WHOLE[sample].weight < WHOLE[sample].span
    table = segments(sample)
    assert table["duration_us"].sum() * 1000 == path(sample).makespan_ns
    ends = [(event["ts"] + event["dur"]) for event in raw_events(file(sample)) if event.get("cat") in HOST]
    begins = [event["ts"] for event in raw_events(file(sample)) if event.get("cat") in HOST]
    assert path(sample).makespan_ns / 1000 >= max(ends) - min(begins)


def test_the_18_ms_between_two_calls_are_on_the_path() -> None:
    """HTA's edge from aten::matmul to cudaEventRecord has weight 0: consecutive on a thread, outside of operators."""
    row = segments("cuda_event_sync_multi_stream").query("duration_us > 10000").iloc[0]
    assert (row["before"], row["duration_us"], row["category"]) == ("cudaEventRecord", 18558, "host")


def test_a_kernel_launched_when_the_stream_fell_idle_waits_for_its_launch() -> None:
    """HTA: Memset (Device) -> ampere_sgemm_128x64_nn, KERNEL_KERNEL_DELAY 15 µs.

    It asks whether the one before ended earlier than the launch began, and both are at 19 779 µs. The launch is the
    better reason: 15 µs are what launches take here, while pauses of streams take 1 or 2.
    """
    sample = "cuda_event_sync_multi_stream"
    assert bounds(sample, 84)[1] == bounds(sample, 92)[0] == 19779
    row = segments(sample).query("start_us == 19779").iloc[-1]
    assert (row["event"], row["edge"], row["duration_us"], row["category"]) == (90, "launch", 15, "launch")


@pytest.mark.parametrize(("sample", "last", "call"), [
    ("cuda_event_sync_multi_stream", 90, 104), ("cuda_event_sync", 47, 51), ("alexnet", 1361, 1365),
    ("simple_add", 1301, 1305),
])  # fmt: skip
def test_ours_ends_with_the_last_synchronization(sample: str, last: int, call: int) -> None:
    """HTA's path ends where the sum of weights stops growing, before the call that waits for the end of everything."""
    assert (call, END) not in theirs(sample)
    assert raw_events(file(sample))[call]["name"] == "cudaDeviceSynchronize"
    assert (call, END) in on_path(sample)
    assert bounds(sample, call)[1] > max(bounds(sample, position)[not start] for position, start in theirs(sample))
    assert (last, END) in on_path(sample)


def test_calls_that_did_not_wait_are_reached_along_their_thread() -> None:
    """The kernel before cudaDeviceSynchronize had ended 66 µs before the call began: HTA as well goes by the thread."""
    sample = "cuda_event_sync"
    assert bounds(sample, 51)[0] - bounds(sample, 33)[1] == 66
    chain = [41, 45, 47, 51]
    rows = segments(sample)
    after = rows[rows["start_us"] >= bounds(sample, 33)[1]]
    assert after[after["event"].isin(chain)]["event"].drop_duplicates().tolist() == chain
    for one, other in pairwise(chain):
        assert bounds(sample, one)[1] <= bounds(sample, other)[0]


@pytest.mark.parametrize(("sample", "call", "kernel", "idle_us"), [
    ("alexnet", 1001, 995, 33), ("simple_add", 971, 965, 73), ("simple_add", 1281, 1275, 235),
])  # fmt: skip
def test_kernels_that_were_over_before_a_synchronization_held_nobody_up(
    sample: str, call: int, kernel: int, idle_us: int
) -> None:
    """HTA adds an edge of weight 0 from the last kernel to the call's end whether the call waited or not.

    Of the three, its path takes the last, because those kernels weigh more than what the host did meanwhile, of which
    HTA does not count what lies between operators.
    """
    assert bounds(sample, call)[0] - bounds(sample, kernel)[1] == idle_us
    assert {(call, START), (call, END)} <= on_path(sample)
    assert not {(kernel, START), (kernel, END)} & on_path(sample)


def test_a_call_that_waited_is_reached_from_what_it_waited_for() -> None:
    """HTA: cudaDeviceSynchronize from the last kernel, weight 0; ours with the time until the call returns."""
    assert not {(1341, START)} & on_path("alexnet")
    row = segments("alexnet").query("event == 1341").iloc[0]
    assert (row["edge"], row["category"]) == ("host_sync", "sync")
    kernel, call = bounds("alexnet", 1335), bounds("alexnet", 1341)
    assert call[0] < kernel[1]
    assert row["duration_us"] == call[1] - kernel[1]


def test_a_pageable_copy_blocks_its_call() -> None:
    """HTA: cudaMemcpyAsync 29 µs of its own, though it lists the call as one that blocks (the edge is made elsewhere).

    Ours: 18 µs until the copy begins, 2 for the copy, 9 until the call returns.
    """
    rows = segments("cuda_event_sync").query("2917 <= start_us < 2946")
    assert rows["edge"].tolist() == ["launch", "body", "memcpy_sync"]
    assert rows["duration_us"].tolist() == [18, 2, 9]


def test_a_query_takes_its_time() -> None:
    """HTA takes cudaEventQuery for a call that blocks and gives it, and any call that synchronizes, no weight."""
    rows = segments("cuda_event_sync_multi_stream").query("name == 'cudaEventQuery'")
    assert rows["duration_us"].tolist() == [6, 5, 5]
    assert segments("cuda_event_sync").query("event == 29")["duration_us"].tolist() == [6]


@pytest.mark.slow
def test_the_caller_waits_for_the_thread_of_autograd() -> None:
    """HTA's path of trace_diff/control, rank 3, `"ProfilerStep"`, 1: 10 381 nodes, 10 197 of them on autograd's thread.

    It starts there, with nothing before it (event 19114 at 107 724 µs), goes along all that the thread did until the
    launch of event 93108 (at 141 121 µs), and ends on stream 7. HTA takes that thread for part of the main thread; ours
    comes from the main thread, which stands in `## backward ##` meanwhile, goes along autograd's, and back: that ends
    later than the kernels that HTA takes for heavier.
    """
    job, events = graph_of(CONTROL), raw_events(CONTROL)
    begin, end = events[19114]["ts"], events[93110]["ts"]
    on_thread = [
        position
        for position, event in enumerate(events)
        if event.get("cat") in HOST and event["tid"] == events[19114]["tid"] and event["dur"] > 0
        and begin <= event["ts"] <= end
    ]  # fmt: skip
    ending = {23255, 23256, 93110}  # begun, and not over, where HTA's path leaves the thread
    assert len(on_thread) == 5100
    theirs = {(position, side) for position in on_thread for side in (0, 1)} - {(position, 1) for position in ending}
    assert len(theirs) == 10197
    vertices = hg.critical_path(job, steps=1010).vertices
    ours = list(zip(job.activities.event[vertices // 2].tolist(), (vertices % 2).tolist(), strict=True))
    assert theirs <= set(ours)
    before = ours[ours.index((19114, 0)) - 1][0]
    assert events[before]["tid"] != events[19114]["tid"]
    assert events[before]["name"] == "aten::ones_like"
