"""The numbers of HTA 0.6.1 (`pip install traceinsight==0.6.1`) on the same traces.

The table holds HTA's own output, as `benchmarks/hta_baseline.py TRACE --what values` prints it, for HTA's default
window (the last ProfilerStep dropped) and for all steps. The traces have whole µs, so HTA's rounding changes nothing.
HTA keeps what the host began before its window ended and the device work correlated to that; in these two files this is
the work of the steps in the window, `load(steps=...)`: nothing was launched between steps.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.reach import SHARED

HTA = SHARED / "hta"

pytestmark = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")

LAUNCHES = ["cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"]
"""The only launches that HTA's launch statistics know."""

EXPECTED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("against_hta.json").read_text("utf-8"))
"""What HTA says of each trace and window, µs. ``kernel_sums`` are the number of names, and the sums over names of HTA's
sum, max, min, mean and stddev, which ``kernels`` has by name. ``launches`` are the number of rows, and the sums of
correlation, cpu_duration, gpu_duration and launch_delay."""
every_window = pytest.mark.parametrize("key", EXPECTED)


@cache
def graph_of(trace: str, steps: tuple[int, ...] | None = None) -> DependencyGraph:
    return hg.load({0: HTA / "trace_diff" / trace / f"{trace}.json.gz"}, steps=steps)


def case(key: str) -> tuple[dict[str, Any], DependencyGraph]:
    return EXPECTED[key], graph_of(EXPECTED[key]["trace"], tuple(EXPECTED[key]["steps"]))


@every_window
def test_the_temporal_breakdown_is_htas(key: str) -> None:
    hta, graph = case(key)
    (row,) = hg.temporal_breakdown(graph, begin="first").to_dict("records")  # HTA knows no earlier work
    assert [row[f"{part}_us"] for part in ("window", "idle", "computation")] == hta["window_idle_compute"]
    exposed = row["exposed_communication_us"] + row["exposed_memory_us"] + row["other_us"]
    assert exposed == hta["non_compute"]


@every_window
def test_the_overlap_is_htas(key: str) -> None:
    hta, graph = case(key)
    assert round(hg.overlap(graph)["overlap_percent"].iloc[0], 2) == hta["overlap_percent"]


@every_window
def test_the_kernel_types_are_htas(key: str) -> None:
    hta, graph = case(key)
    table = hg.kernel_types(graph)
    assert dict(zip(table["kinds"], table["total_us"], strict=True)) == hta["types"]


@every_window
def test_the_kernel_breakdown_is_htas(key: str) -> None:
    # asked for 1000 names, HTA aggregates once: with fewer its mean, max and min become sums (HTA.md D4)
    hta, graph = case(key)
    columns = ["total_us", "max_us", "min_us", "mean_us", "std_us"]
    table = hg.kernel_breakdown(graph).set_index("name")[columns]
    assert (len(table), *table.sum()) == pytest.approx(hta["kernel_sums"])
    ours = table.to_dict("index")
    for name, expected in hta["kernels"].items():
        assert tuple(ours[name].values()) == pytest.approx(expected), name


@every_window
def test_the_launch_statistics_are_htas_for_the_launches_it_knows(key: str) -> None:
    hta, graph = case(key)
    table = hg.launch_stats(graph)
    table = table[table["launch_name"].isin(LAUNCHES)]
    sums = table[["correlation", "launch_us", "work_us", "delay_us"]].sum()
    assert [len(table), *(int(each) for each in sums)] == hta["launches"]


@every_window
def test_the_idle_time_of_a_stream_is_htas_but_for_overlapping_kernels(key: str) -> None:
    # HTA measures each pause from the end of the previous kernel in order of start, so that overlaps on one stream
    # count as negative idle time (D19: stream 7 of test has 115 µs of it); and by another definition of the causes, so
    # that only the sums over the causes can be compared
    hta, graph = case(key)
    table = hg.idle_breakdown(graph)
    theirs = {int(stream): us for stream, us in hta["idle_by_stream"].items()}
    idle = {stream: table.loc[table["stream"] == stream, "idle_us"].sum() for stream in theirs}
    assert sum(idle.values()) == table["idle_us"].sum()
    signed = {}
    for stream in idle:
        frame = graph.select(kind="device", stream=stream).to_frame().sort_values("start_us", kind="stable")
        ends = (frame["start_us"] + frame["duration_us"]).to_numpy()
        signed[stream] = (frame["start_us"].to_numpy()[1:] - ends[:-1]).sum()
    assert signed == theirs
    overlaps = {"test, last step dropped": {7: 114}, "test, all steps": {7: 115}}
    more = {stream: us - theirs[stream] for stream, us in idle.items()}
    assert {stream: us for stream, us in more.items() if us} == overlaps.get(key, {})


def test_the_launches_that_hta_does_not_know_are_the_graph_launches() -> None:
    # D8: cudaGraphLaunch is in no list of HTA's
    names = hg.launch_stats(graph_of("test"))["launch_name"].value_counts().to_dict()
    assert {name: count for name, count in names.items() if name not in LAUNCHES} == {"cudaGraphLaunch": 5046}


def test_without_a_choice_of_steps_work_launched_before_the_window_stays() -> None:
    # HTA drops work whose launch is not in the file: 614 kernels of test, which run at the head of its window
    graph = graph_of("test")
    assert [issue.count for issue in graph.issues if issue.what == "launch_missing"] == [614]
    assert (
        len(graph.select(kind="device")) - len(graph_of("test", tuple(range(1009, 1015))).select(kind="device")) == 614
    )
    assert hg.temporal_breakdown(graph)["window_us"].iloc[0] == 745239


# what HTA's own tests assert


def test_inference_of_mtia_has_no_steps_and_keeps_every_event() -> None:
    path = HTA / "small" / "mtia_inference_rank_0.json.gz"
    graph, analysis = hg.load({0: path}), TraceAnalysis({0: str(path)})
    assert (graph.steps, analysis.get_profiler_steps()) == ((), [])
    assert len(graph.activities) == len(analysis.job.frame(0)) == 14178


def test_the_collective_kernels_of_nccl_data_carry_their_arguments() -> None:
    graph = hg.load({0: HTA / "nccl" / "nccl_data.json.gz"})
    frame = graph.select(name="*ncclKernel*").to_frame()
    assert len(frame) == 21
    args = graph.event(int(frame.index.to_numpy()[frame["duration_us"].to_numpy().argmax()])).args.model_dump(
        by_alias=True
    )
    assert (args["Collective name"], args["In msg nelems"], args["Out msg nelems"]) == ("allreduce", 2049000, 2049000)
    assert (args["Process Group Name"], args["Process Group Description"]) == ("0", "default_pg")
    assert (args["Process Group Ranks"], args["In split size"]) == ("[0, 1]", "[]")


def test_the_triton_operator_and_the_start_of_its_trace() -> None:
    path = HTA / "small" / "triton_example.json.gz"
    graph, analysis = hg.load({0: path}), TraceAnalysis({0: str(path)})
    (operator,) = graph.select(kind="op", name="triton_poi_fused_add_cos_sin_0")
    args = graph.event(operator).args.model_dump()
    assert args["kernel_backend"] == "triton"
    assert args["kernel_hash"] == "cqaokwf2bph4egogzevc22vluasiyuui4i54zpemp6knbsggfbuu"
    for start in (graph.origin_ns, analysis.t.get_trace_start_unixtime_ns(0)):
        assert abs(start - (1727743122000000000 + 2413669096090100)) <= 1000
    # D5: HTA takes that operator, which has a `stream` argument, for 94 µs of device work; the kernel lasts 1 µs
    assert hg.temporal_breakdown(graph)["computation_us"].iloc[0] < 2


def test_the_header_of_a_trace_without_devices() -> None:
    graph = hg.load(HTA / "small" / "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz")
    facts = graph.traces[34].facts
    # its ``pg_count`` says 10
    assert (facts.backend, facts.rank, facts.world_size, len(facts.groups)) == ("gloo", 34, 300, 11)


def test_a_kernel_that_htas_rounding_makes_empty_has_its_duration() -> None:
    # D1, D2: HTA rounds this copy to 0 µs, and under pandas 3.1 it then belongs to no annotation
    table = hg.launch_stats(hg.load({0: next((HTA / "ns_resolution").glob("*.json.gz"))})).set_index("correlation")
    assert table.loc[135139, "work_name"] == "Memcpy DtoD (Device -> Device)"
    assert table.loc[135139, "work_us"] == 1.28
    assert "multi_tensor_apply_kernel" in str(table.loc[164926, "work_name"])


def test_a_stray_cpu_event_of_a_cuda_sync_is_no_device_work() -> None:
    # D5: HTA counts the 41 cuda_sync rows of this trace as busy device time
    graph = hg.load({0: HTA / "critical_path" / "simple_add.json.gz"})
    assert len(graph.select(kind="device")) == 98
