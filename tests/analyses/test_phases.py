from __future__ import annotations

import math

import pytest

import htagraph as hg
from tests.reach import SHARED, graph_of
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op, runtime, step

BATCH = "execute_context_{}({})_generation_{}({})"


def test_batches_of_an_engine_are_grouped_by_phase() -> None:
    events = [
        annotation(BATCH.format(1, 512, 0, 0), 0, 20), launch(5, 1, 1), kernel(COMPUTE, 10, 30, 1),
        annotation(BATCH.format(0, 0, 8, 8), 50, 10), runtime("cudaGraphLaunch", 51, 1, 2),
        kernel(COMPUTE, 55, 3, 2), kernel(COMPUTE, 59, 11, 2),
        annotation(BATCH.format(0, 0, 9, 9), 100, 10), launch(101, 1, 3), kernel(COMPUTE, 102, 4, 3),
    ]  # fmt: skip
    prefill, decode = hg.phases(load(events)).to_dict("records")
    assert prefill == {
        "rank": 0, "phase": "prefill", "example": BATCH.format(1, 512, 0, 0), "count": 1, "tokens": 512,
        "host_us": 20.0, "wall_us": 40.0, "mean_wall_us": 40.0, "max_wall_us": 40.0, "busy_us": 30.0, "idle_us": 10.0,
        "idle_percent": 25.0, "kernels": 1, "launches": 1, "tokens_per_s": 512 / 40e-6,
    } | {"tokens_per_s": pytest.approx(512 / 40e-6)}  # fmt: skip
    assert {key: decode[key] for key in ("phase", "count", "tokens", "wall_us", "busy_us", "kernels", "launches")} == {
        "phase": "decode", "count": 2, "tokens": 17, "wall_us": 30.0, "busy_us": 18.0, "kernels": 3, "launches": 2,
    }  # fmt: skip


def test_regions_whose_work_is_enqueued_ahead_count_once() -> None:
    name = "decode toks=8"
    events = [
        annotation(name, 0, 10), launch(2, 2, 1), kernel(COMPUTE, 10, 100, 1),
        annotation(name, 20, 10), launch(22, 2, 2), kernel(COMPUTE, 110, 100, 2),
    ]  # fmt: skip
    (row,) = hg.phases(load(events)).to_dict("records")
    assert (row["wall_us"], row["busy_us"], row["idle_us"]) == (210, 200, 10)
    assert (row["mean_wall_us"], row["max_wall_us"]) == (150, 190)
    assert row["tokens_per_s"] == pytest.approx(16 / 210e-6)


def test_the_outermost_annotations_count_collectives_aside() -> None:
    events = [
        step(3, 0, 100), annotation("forward", 0, 50), annotation("layer", 10, 5), annotation("nccl:all_reduce", 60, 5)
    ]  # fmt: skip
    assert hg.phases(load(events))["phase"].tolist() == ["forward"]


def test_a_rank_without_annotations_has_its_steps() -> None:
    table = hg.phases(load([step(3, 0, 100), step(4, 100, 90), op("aten::mm", 5, 5)]))
    assert table[["phase", "example", "count"]].to_numpy().tolist() == [["ProfilerStep#*", "ProfilerStep#3", 2]]


def test_a_pattern_chooses_operators_too_and_of_nested_ones_the_outermost() -> None:
    events = [op("aten::linear", 0, 50), op("aten::mm", 5, 30), launch(10, 2, 1), kernel(COMPUTE, 40, 5, 1)]
    table = hg.phases(load(events), annotation="aten::*")
    assert table[["phase", "kernels", "wall_us"]].to_numpy().tolist() == [["aten::linear", 1, 50.0]]
    assert table["tokens"].tolist() == [-1]
    assert math.isnan(table["tokens_per_s"].iloc[0])


def test_backward_work_belongs_to_the_annotation_that_called_it() -> None:
    events = [
        annotation("## backward ##", 0, 50), op("autograd::engine::evaluate_function: MmBackward0", 5, 20, tid=2),
        launch(6, 1, 1, tid=2), kernel(COMPUTE, 9, 9, 1), op("aten::mm", 60, 5),
    ]  # fmt: skip
    assert hg.phases(load(events))["kernels"].tolist() == [1]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_the_phase_of_a_real_decode() -> None:
    (row,) = hg.phases(graph_of(SHARED / "tracelens" / "mi300_vllm_decode_graphs.json.gz")).to_dict("records")
    assert (row["phase"], row["tokens"], row["kernels"], row["launches"]) == ("decode", 32, 434, 14)
