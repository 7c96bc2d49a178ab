from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.core.errors import NothingMeetsError
from tests.strategies import load, op
from tests.whatif.changes.made import CALL_NS, LATENCY_NS, Piece, made
from tests.whatif.changes.simulated import recorded, small


def test_only_the_host_and_the_network_are_left() -> None:
    pieces = [Piece("gemm", 7, 1000), Piece("gemm", 7, 1000), Piece("nccl", 7, 40, collective=0)]
    assert hg.what_if(made(pieces)).infinite_gpu().run().makespan_ns == 2 * CALL_NS + LATENCY_NS + 40


def test_a_host_bound_job_hardly_notices() -> None:
    graph, _ = recorded(small("host_bound"))
    assert hg.what_if(graph).infinite_gpu().run().speedup < 1.1
    graph, _ = recorded(small("gpu_bound"))
    assert hg.what_if(graph).infinite_gpu().run().speedup > 3


def test_a_job_without_device_work_says_so() -> None:
    with pytest.raises(NothingMeetsError, match=r"^no device work was recorded$"):
        hg.what_if(load([op("aten::mm", 0, 10)])).infinite_gpu().run()
