from __future__ import annotations

import statistics
from collections import defaultdict

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.output.report import columns_of, wording_of
from tests import oracles
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, traces


def test_kernels_of_one_name_are_counted_together() -> None:
    events = [kernel(COMPUTE, 0, 2), kernel(COMPUTE, 10, 6), kernel("other", 20, 2)]
    assert hg.kernel_breakdown(load(events)).to_dict("records") == [
        {"rank": 0, "kind": "computation", "name": COMPUTE, "count": 2, "total_us": 8.0, "mean_us": 4.0, "min_us": 2.0,
         "max_us": 6.0, "std_us": pytest.approx(2.8284271247461903), "share_percent": 80.0},
        {"rank": 0, "kind": "computation", "name": "other", "count": 1, "total_us": 2.0, "mean_us": 2.0, "min_us": 2.0,
         "max_us": 2.0, "std_us": 0.0, "share_percent": 20.0},
    ]  # fmt: skip


def test_a_rank_without_device_work_has_its_operators_by_self_time() -> None:
    table = hg.kernel_breakdown(load([op("outer", 0, 30), op("inner", 10, 5), op("gloo:all_reduce", 50, 3)]))
    assert table[["kind", "name", "total_us"]].to_numpy().tolist() == [
        ["op", "outer", 25.0], ["op", "inner", 5.0], ["host_communication", "gloo:all_reduce", 3.0],
    ]  # fmt: skip


def test_kernels_are_summed_by_family_and_communication_is_a_collective_whatever_its_name() -> None:
    events = [
        kernel("ampere_sgemm_128x64_tn", 0, 8),
        kernel("cutlass_80_tensorop_gemm", 10, 4),
        kernel("void moe_align_block_size_kernel<int>(int*)", 20, 2),
        kernel("void dpsk::ep::internode::dispatch<int>(int*)", 30, 6),
    ]
    table = hg.kernel_breakdown(load(events), by="family")
    assert table[["kind", "name", "count", "total_us"]].to_numpy().tolist() == [
        ["computation", "GEMM", 2, 12.0],
        ["communication", "collective", 1, 6.0],
        ["computation", "MoE routing", 1, 2.0],
    ]


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_statistics_are_those_of_the_durations_in_the_file(events: list[Json]) -> None:
    took = defaultdict(list)
    for event in events:
        if event.get("cat") in oracles.DEVICE:
            took[event["name"]].append(event["dur"])
    if not took:
        return
    for row in hg.kernel_breakdown(load(events)).to_dict("records"):
        each = took.pop(row["name"])
        spread = statistics.stdev(each) if len(each) > 1 else 0
        expected = (len(each), sum(each), statistics.mean(each), min(each), max(each), spread)
        ours = [row[key] for key in ("count", "total_us", "mean_us", "min_us", "max_us", "std_us")]
        assert ours == pytest.approx(expected, abs=1e-6)
    assert not took


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_shares_of_a_rank_sum_to_a_hundred(events: list[Json]) -> None:
    table = hg.kernel_breakdown(load(events))
    if table["total_us"].sum():
        assert table["share_percent"].sum() == pytest.approx(100)


def test_by_job_a_kernel_is_one_row_over_all_ranks() -> None:
    graph = load({0: [kernel(COMPUTE, 0, 5)], 1: [kernel(COMPUTE, 0, 9), kernel(COMPUTE, 20, 1)]})
    assert hg.kernel_breakdown(graph, by="job").to_dict("records") == [
        {"kind": "computation", "name": COMPUTE, "ranks": 2, "count": 3, "total_us": 15.0, "mean_us": 5.0,
         "min_us": 1.0, "max_us": 9.0, "share_percent": 100.0}
    ]  # fmt: skip


def test_a_duration_that_was_cut_is_an_upper_bound_and_leads_no_table() -> None:
    cut = kernel("impossible", 0, 1_500_000, 1)
    others = [kernel(COMPUTE, 50_000 + 100 * number, 30, 2 + number) for number in range(5)]
    launches = [launch(10 * number, 5, 1 + number) for number in range(6)]
    graph = load([*launches, cut, *others])
    table = hg.kernel_breakdown(graph)
    assert table["name"].tolist() == [COMPUTE, "impossible"]
    assert table["at_most_us"].tolist() == [0.0, 50_000.0]
    assert table["share_percent"].tolist() == [100.0, 0.0]
    assert hg.kernel_breakdown(graph, by="job")["name"].tolist() == [COMPUTE, "impossible"]
    kernels = hg.summarize(graph).tables["kernels"]
    assert kernels["name"].tolist() == [COMPUTE, "impossible"]
    shown = {column.name: column.cells for column in columns_of(table, wording_of("kernels"))}
    assert [cell.startswith("≤") for cell in shown["total_us"]] == [False, True]
    assert "at_most_us" not in shown
    assert hg.kernel_distribution(graph)["name"].tolist() == [COMPUTE, "impossible"]


def test_a_table_without_cut_durations_has_no_column_for_them() -> None:
    assert "at_most_us" not in hg.kernel_breakdown(load([launch(0, 5, 1), kernel(COMPUTE, 10, 20, 1)]))
