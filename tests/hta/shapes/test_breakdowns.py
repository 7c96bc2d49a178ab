"""HTA's breakdowns: its own output where it is right, the right numbers where it is not.

`breakdowns.json` holds what HTA 0.6.1 (`pip install traceinsight==0.6.1`) returned for files of the shared traces whose
times are whole µs, in its default window: of kernels the names (30 letters) and sums, since its other statistics are
over sums (D4).
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.reach import SHARED
from tests.strategies import COMMUNICATE, COMPUTE, COPY, Json, annotation, complete, kernel, launch, op, step, write

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("breakdowns.json").read_text(encoding="utf-8"))
STATISTICS: Any = {"visualize": False, "show_idle_interval_stats": True}
FLOAT, INT = "float64", "int64"

every_job = pytest.mark.parametrize("name", RECORDED)
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")


@cache
def job_of(name: str) -> TraceAnalysis:
    return TraceAnalysis({int(rank): str(SHARED / file) for rank, file in RECORDED[name]["files"].items()})


def columns(table: pd.DataFrame | None) -> dict[str, list[Any]]:
    """Return a table's columns, with None where nothing is."""
    assert table is not None
    return {str(name): list(each) for name, each in table.astype(object).where(table.notna(), None).items()}


def small(tmp_path: Path, events: list[Json], rank: int = 0) -> TraceAnalysis:
    return TraceAnalysis({rank: str(write(events, tmp_path / "a.json", rank))})


# against HTA's own output


@pytest.mark.slow
@shared
@pytest.mark.parametrize("name", [name for name in RECORDED if "temporal" in RECORDED[name]])
def test_the_temporal_breakdown_is_htas(name: str) -> None:
    table = job_of(name).get_temporal_breakdown(visualize=False)
    assert columns(table) == RECORDED[name]["temporal"][0]["columns"]
    assert [str(each) for each in table.dtypes] == [INT] + [FLOAT] * 7


@shared
@every_job
def test_the_idle_time_is_htas(name: str) -> None:
    times, statistics = job_of(name).get_idle_time_breakdown(list(map(int, RECORDED[name]["files"])), **STATISTICS)
    assert statistics is not None
    hta_times, hta_statistics = (table["columns"] for table in RECORDED[name]["idle"])
    if name == "test":  # D19: works of stream 7 overlap, which HTA counts as −114 µs of idle time
        assert hta_times["idle_time"][4] == 42372
        hta_times["idle_time"][4] = 42486
        assert (hta_statistics["mean"][4], hta_statistics["std"][4], hta_statistics["min"][4]) == (3.51, 3.03, -13)
        hta_statistics["mean"][4], hta_statistics["std"][4], hta_statistics["min"][4] = 3.52, 3.01, 0
    assert columns(times) == hta_times
    assert columns(statistics) == hta_statistics
    assert list(times.index) == RECORDED[name]["idle"][0]["index"]
    assert (list(statistics.index), statistics.index.name) == (RECORDED[name]["idle"][1]["index"], "idle_category")


@shared
@every_job
def test_the_overlap_is_htas(name: str) -> None:
    assert columns(job_of(name).get_comm_comp_overlap(visualize=False)) == RECORDED[name]["overlap"][0]["columns"]


@shared
@every_job
def test_the_kernel_types_and_the_kernels_chosen_are_htas(name: str) -> None:
    types, kernels = job_of(name).get_gpu_kernel_breakdown(visualize=False)
    hta_types, hta_kernels = (table["columns"] for table in RECORDED[name]["kernels"])
    shown = [
        row for row, us in enumerate(hta_types["sum"]) if us
    ]  # of ends and starts at one moment HTA takes any first
    assert columns(types) == {column: [values[row] for row in shown] for column, values in hta_types.items()}
    assert [str(each) for each in types.dtypes] == ["str", INT, FLOAT]
    ours = columns(kernels.assign(name=kernels["name"].str[:30]))
    assert {column: ours[column] for column in hta_kernels} == hta_kernels
    assert list(kernels.columns) == [
        "name", "sum (us)", "max (us)", "min (us)", "stddev", "mean (us)", "kernel_type", "rank",
    ]  # fmt: skip


@shared
def test_the_annotations_of_the_host_are_htas() -> None:
    table = job_of("control").get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False)
    assert table is not None
    ours = columns(table.assign(name=table["name"].str[:30]))
    for column, expected in RECORDED["control"]["cpuann"][0]["columns"].items():
        assert ours[column] == (pytest.approx(expected) if column in ("stddev", "mean (us)") else expected)


@pytest.mark.slow
@shared
def test_the_annotations_of_kernels_are_htas(tmp_path: Path) -> None:
    # the traces that have annotations on the device have ns, which HTA rounds away (D2): both read a copy in whole µs
    source = next((SHARED / "hta" / "ns_resolution").glob("*.json.gz"))
    trace = json.loads(gzip.decompress(source.read_bytes()))
    for event in trace["traceEvents"]:
        if "dur" in event:
            end = int(float(event["ts"]) + float(event["dur"]))
            event["dur"] = max(1, end - int(event["ts"]))
        if "ts" in event:
            event["ts"] = int(event["ts"])
    (tmp_path / "a.json").write_text(json.dumps(trace), encoding="utf-8")
    table = TraceAnalysis({0: str(tmp_path / "a.json")}).get_gpu_kernels_with_user_annotations(0)
    assert table is not None
    assert Counter(table["s_user_annotation"]) == {
        "": 2991, "DistributedDataParallel.forward": 1840, "Optimizer.step#SGD.step": 27, "## backward ##": 18,
    }  # fmt: skip
    assert (table["end"] == table["ts"] + table["dur"]).all()


@cache
def ns_trace() -> TraceAnalysis:
    return TraceAnalysis({0: str(next((SHARED / "hta" / "ns_resolution").glob("*.json.gz")))})


@shared
@pytest.mark.parametrize(("on_gpu", "rows"), [(True, 3), (False, 12)])
def test_annotations_of_the_ns_trace_have_the_sums_and_means_of_their_events(*, on_gpu: bool, rows: int) -> None:
    table = ns_trace().get_gpu_user_annotation_breakdown(use_gpu_annotation=on_gpu, visualize=False, num_kernels=1000)
    assert table is not None
    assert len(table) == rows
    frame, symbols = ns_trace().job.frame(0), ns_trace().t.symbol_table
    chosen = frame[frame["cat"] == symbols.sym_index["gpu_user_annotation" if on_gpu else "user_annotation"]]
    durations = chosen.groupby(chosen["name"].map(dict(enumerate(symbols.sym_table))))["dur"]
    assert table.set_index("name")["sum (us)"].to_dict() == pytest.approx(durations.sum().to_dict())
    assert table.set_index("name")["mean (us)"].to_dict() == pytest.approx(durations.mean().to_dict())


@shared
def test_annotations_of_the_ns_trace_on_the_list_are_not_lumped() -> None:
    table = ns_trace().get_gpu_user_annotation_breakdown(
        use_gpu_annotation=False, visualize=False, num_kernels=5, allowlist_patterns=["Optimizer"]
    )
    assert table is not None
    assert (len(table), table["name"].str.contains("Optimizer").sum()) == (8, 2)


@shared
def test_the_kernels_of_the_ns_trace_have_their_annotations() -> None:
    table = ns_trace().get_gpu_kernels_with_user_annotations(0)
    assert table is not None
    assert (len(table), table["s_user_annotation"].nunique()) == (4876, 4)
    by_correlation = table.set_index("correlation")[["s_user_annotation", "s_name"]]
    # D1, D2: HTA rounds this copy to 0 µs, and finds no annotation for it under pandas 3.1
    assert tuple(by_correlation.loc[135139]) == ("DistributedDataParallel.forward", "Memcpy DtoD (Device -> Device)")
    assert tuple(by_correlation.loc[164926]) == ("Optimizer.step#SGD.step", "at::native::::multi_tensor_apply_kernel")
    assert (table["s_user_annotation"] == "Optimizer.step#SGD.step").sum() == 27


# where HTA is wrong


def test_statistics_are_over_kernels_beyond_the_cut_too(tmp_path: Path) -> None:
    # D4: HTA gives a kernel that stays its total as mean, and of the others statistics over the totals of names
    events = [kernel("a", 0, 100), kernel("a", 200, 50), *(kernel(f"k{i}", 300 + 20 * i, i + 1) for i in range(5))]
    table = small(tmp_path, events).get_gpu_kernel_breakdown(num_kernels=2, visualize=False)[1]
    rows = table.drop(columns=["stddev", "kernel_type", "rank"]).to_numpy().tolist()
    assert rows == [["a", 150, 100, 50, 75], ["k4", 5, 5, 5, 5], ["others", 10, 4, 1, 2.5]]
    assert table["stddev"].tolist() == pytest.approx([35.35533905932738, 0, 1.2909944487358056])


def test_up_to_num_kernels_every_kernel_has_its_row_with_its_own_statistics(tmp_path: Path) -> None:
    events = [kernel("a", 0, 100), kernel("a", 200, 50), *(kernel(f"k{i}", 300 + 20 * i, i + 1) for i in range(5))]
    one = small(tmp_path, events)
    ours = one.get_gpu_kernel_breakdown(num_kernels=6, visualize=False)[1].set_index("name")
    native = hg.kernel_breakdown(one.job.graph).set_index("name").loc[ours.index]
    for column, of_native in (("sum (us)", "total_us"), ("mean (us)", "mean_us"), ("stddev", "std_us")):
        assert ours[column].tolist() == pytest.approx(native[of_native].tolist())


def test_the_quantile_of_the_running_total_cuts_too(tmp_path: Path) -> None:
    events = [kernel(name, 100 * i, us) for i, (name, us) in enumerate([("a", 90), ("b", 9), ("c", 5), ("d", 1)])]
    names = small(tmp_path, events).get_gpu_kernel_breakdown(duration_ratio=0.5, num_kernels=3, visualize=False)[1][
        "name"
    ]
    assert names.tolist() == ["a", "b", "others"]


def test_copies_may_be_left_out(tmp_path: Path) -> None:
    events = [kernel(COMPUTE, 0, 10), kernel(COPY, 5, 10, stream=20), kernel(COMMUNICATE, 8, 7, stream=21)]
    types, kernels = small(tmp_path, events).get_gpu_kernel_breakdown(include_memory_kernels=False, visualize=False)
    assert types.to_numpy().tolist() == [
        ["COMPUTATION", 8, 53.3], ["COMMUNICATION", 5, 33.3], ["COMPUTATION overlapping COMMUNICATION", 2, 13.3],
    ]  # fmt: skip
    assert "MEMORY" not in set(kernels["kernel_type"])


def test_waiting_for_the_device_is_no_device_time(tmp_path: Path) -> None:
    # D5: HTA counts the sync as 80 µs of other device time, and the operator with a `stream` argument as computation
    sync = complete("cuda_sync", "Stream Sync", 10, 80, 7, stream=7, correlation=9, cuda_sync_kind="Stream Sync")
    events = [kernel(COMPUTE, 0, 10), sync | {"pid": 0}, op("triton", 0, 90, stream=7), kernel(COMPUTE, 90, 10)]
    (row,) = small(tmp_path, events).get_temporal_breakdown(visualize=False).to_dict("records")
    assert (row["idle_time(us)"], row["compute_time(us)"], row["non_compute_time(us)"]) == (80, 20, 0)


def test_an_empty_kernel_has_the_annotation_that_it_starts_in(tmp_path: Path) -> None:
    # D1: under pandas 3.1 an empty interval overlaps nothing
    mark = complete("gpu_user_annotation", "forward", 0, 50, 7) | {"pid": 0}
    events = [launch(0, 1, 1), kernel(COMPUTE, 10, 0, 1), mark, kernel(COMPUTE, 50, 0, 2)]
    table = small(tmp_path, events).get_gpu_kernels_with_user_annotations(0)
    assert table is not None
    assert table["s_user_annotation"].tolist() == ["forward", ""]


# arguments and odd jobs


def test_annotations_on_the_allowlist_keep_their_rows(tmp_path: Path) -> None:
    events = [annotation(name, 20 * i, 10 - i) for i, name in enumerate("abcd")]
    job = small(tmp_path, events)
    table = job.get_gpu_user_annotation_breakdown(
        duration_ratio=1.0, num_kernels=1, allowlist_patterns=["c"], use_gpu_annotation=False, visualize=False
    )
    assert table is not None
    assert table[["name", "sum (us)", "rank"]].to_numpy().tolist() == [["a", 10, 0], ["c", 8, 0], ["others", 16, 0]]


def test_idle_time_of_chosen_streams_and_with_another_delay(tmp_path: Path) -> None:
    events = [launch(0, 1, 1), launch(1, 1, 2), kernel(COMPUTE, 5, 5, 1), kernel(COMPUTE, 20, 5, 2)]
    events += [kernel(COMPUTE, 5, 5, 3, stream=20)]
    job = small(tmp_path, events)
    table, nothing = job.get_idle_time_breakdown(streams=[7, 99], visualize=False)
    assert table.to_numpy().tolist() == [[0, 7, "kernel_wait", 10, 1], [0, 7, "other", 0, 0]]
    assert nothing is None
    table, _ = job.get_idle_time_breakdown(streams=[7], consecutive_kernel_delay=10, visualize=False)
    assert table["idle_category"].tolist() == ["other"]


def test_a_stream_number_from_the_thread_id_keeps_its_value(tmp_path: Path) -> None:
    """The type is the smallest for the streams in the arguments, as in HTA, and 801 is beyond that of 7."""
    bare = kernel(COMPUTE, 20, 5, 2, stream=801)
    del bare["args"]["stream"]
    job = small(tmp_path, [launch(0, 1, 1), launch(1, 1, 2), kernel(COMPUTE, 5, 5, 1), bare])
    table, _ = job.get_idle_time_breakdown(visualize=False)
    assert sorted(set(table["stream"])) == [7, 801]


def test_the_first_rank_is_asked_where_none_is_chosen(tmp_path: Path) -> None:
    # HTA's default is rank 0, which a job of rank 3 alone does not have (C7)
    table, _ = small(tmp_path, [kernel(COMPUTE, 0, 5)], 3).get_idle_time_breakdown(visualize=False)
    assert table["rank"].tolist() == [3]


@pytest.mark.parametrize("events", [[], [step(1, 0, 30), op("a", 2, 20)]], ids=["nothing", "host only"])
def test_a_job_without_device_work_has_empty_tables_and_a_reason(events: list[Json], tmp_path: Path) -> None:
    job, full = small(tmp_path, events), TraceAnalysis(trace_dir="data/demo")
    with pytest.warns(UserWarning, match="device"):
        assert columns(job.get_temporal_breakdown(visualize=False)) == {
            key: [] for key in full.get_temporal_breakdown(visualize=False)
        }
    with pytest.warns(UserWarning, match="device"):
        tables = job.get_idle_time_breakdown(**STATISTICS)
    for ours, theirs in zip(tables, full.get_idle_time_breakdown(**STATISTICS), strict=True):
        assert columns(ours) == {key: [] for key in columns(theirs)}
    with pytest.warns(UserWarning, match="device"):
        types, kernels = job.get_gpu_kernel_breakdown(visualize=False)
    assert (len(types), len(kernels)) == (0, 0)
    with pytest.warns(UserWarning, match="annotation"):
        assert job.get_gpu_user_annotation_breakdown(visualize=False) is None
    with pytest.warns(UserWarning, match="annotation"):
        assert job.get_gpu_kernels_with_user_annotations(0) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert job.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"].isna().all()
