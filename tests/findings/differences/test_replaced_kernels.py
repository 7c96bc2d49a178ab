"""Whether kernels that take the place of others are named."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.replaced_kernels import REPLACED_KERNELS
from tests.strategies import Json, kernel, launch, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [REPLACED_KERNELS.whole(claim) for claim in pair.claims(REPLACED_KERNELS.when)]


def job(name: str) -> list[Json]:
    return [op("aten::mm", 0, 10), launch(2, 2, 1), kernel(name, 15, 100, 1)]


def test_the_new_kernel_and_the_old_one_are_named() -> None:
    assert said(job("gemm_a"), job("gemm_b")) == ["1 kernel replaced: gemm_b instead of gemm_a."]
    assert said(job("gemm_a"), job("gemm_a")) == []
