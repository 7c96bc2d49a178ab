from __future__ import annotations

import numpy as np

import htagraph as hg
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op
from tests.whatif.changes.made import CALL_NS, LATENCY_NS, Piece, made


def test_a_kernel_takes_a_multiple_of_its_time() -> None:
    graph = made([Piece("gemm", 7, 100), Piece("other", 7, 50)])
    outcome = hg.what_if(graph).scale(factor=3, name="gemm").run()
    assert outcome.baseline_ns == LATENCY_NS + 150
    assert outcome.makespan_ns == LATENCY_NS + 350


def test_another_path_takes_over() -> None:
    graph = made([Piece("gemm", 7, 100), Piece("other", 8, 50)])
    outcome = hg.what_if(graph).scale(factor=0, name="gemm").run()
    assert outcome.makespan_ns == CALL_NS + LATENCY_NS + 50


def test_one_stream_or_rank() -> None:
    pieces = [Piece("gemm", stream, 100, rank=rank) for rank in (0, 1) for stream in (7, 8)]
    graph = made(pieces)
    changed = hg.what_if(graph).scale(factor=2, stream=8, rank=1).state.lag - graph.edges.lag
    assert sorted(changed[changed > 0].tolist()) == [100]


def test_a_name_scales_all_inside_an_annotation() -> None:
    graph = load([
        op("before", 0, 4), annotation("phase", 4, 16), op("a", 6, 4), launch(12, 2, 1), kernel(COMPUTE, 15, 40, 1),
    ])  # fmt: skip
    predicted = hg.what_if(graph).scale(factor=0.5, name="phase").run().graph
    acts = predicted.activities
    durations = dict(zip([graph.names[name] for name in acts.name], acts.duration.tolist(), strict=True))
    assert durations == {"before": 4_000, "phase": 8_000, "a": 2_000, "cudaLaunchKernel": 1_000, COMPUTE: 20_000}


def test_rounding_is_to_the_nearest_ns() -> None:
    graph = made([Piece("gemm", 7, 7)])
    assert hg.what_if(graph).scale(factor=1.5, kind="computation").run().makespan_ns == LATENCY_NS + 10
    lag = hg.what_if(graph).scale(factor=0.3).state.lag
    assert np.issubdtype(lag.dtype, np.int64)
