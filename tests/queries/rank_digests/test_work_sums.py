from __future__ import annotations

import zlib

import numpy as np

import htagraph as hg
from htagraph.queries.rank_digests.work_sums import ALL_NAMES, work_sums
from tests.reach import DATASETS
from tests.strategies import kernel, launch, load, op, step


def test_work_is_summed_by_name_and_step() -> None:
    graph = load([
        step(1, 0, 100), op("aten::mm", 10, 30), launch(15, 2, 1), kernel("gemm", 40, 20, 1),
        step(2, 200, 100), op("aten::mm", 210, 30), op("aten::add", 250, 1), launch(215, 2, 2),
        kernel("gemm", 240, 25, 2),
    ])  # fmt: skip
    sums = work_sums(graph)
    code = zlib.crc32(b"gemm")
    rows = np.flatnonzero((sums.device == 1) & (sums.name == code))
    assert sums.step[rows].tolist() == [1, 2]
    assert sums.total[rows].tolist() == [20_000, 25_000]
    assert sums.calls[rows].tolist() == [1, 1]
    assert dict(zip(sums.program.tolist(), sums.instances.tolist(), strict=True)) == {
        zlib.crc32(b"aten::mm"): 2, zlib.crc32(b"aten::add"): 1,
    }  # fmt: skip
    assert sums.steps == 2


def test_small_names_count_in_the_sum_of_all_names_only() -> None:
    events = [step(1, 0, 900), op("aten::big", 1, 800)] + [op(f"aten::n{at}", 802 + at, 1) for at in range(9)]
    sums = work_sums(load(events))
    host = sums.device == 0
    assert sums.name[host].tolist() == [zlib.crc32(b"aten::big"), ALL_NAMES]
    assert sums.total[host].tolist() == [800_000, 809_000]


def test_sums_of_a_rank_are_small() -> None:
    sums = work_sums(hg.load(DATASETS[0], ranks=[0]))
    assert len(sums.name) < 200
