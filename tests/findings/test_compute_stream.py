"""Whether collectives on the stream of computation are named, and what running beside it gains at most."""

from __future__ import annotations

import pytest

from htagraph.findings.compute_stream import COMPUTE_STREAM, ComputeStreamClaim
from htagraph.findings.finding import claims_that_are
from htagraph.findings.results import Results
from tests.findings.claims_by_hand import gained
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, op, runtime


def rank_of(stream: int) -> list[Json]:
    """Return five products of 100 µs with an all-reduce of 60 µs behind each, on a stream."""
    events: list[Json] = []
    for place in range(5):
        at = 200 * place
        events += [
            op("aten::mm", at, 10),
            launch(at + 2, 3, 2 * place + 1),
            kernel(COMPUTE, at + 20, 100, 2 * place + 1),
        ]
        events += [op("c10d::allreduce_", at + 12, 8), launch(at + 14, 3, 2 * place + 2)]
        events.append(kernel(COMMUNICATE, at + 120, 60, 2 * place + 2, stream))
    return [*events, runtime("cudaDeviceSynchronize", 900, 85)]


def test_collectives_behind_computation_on_its_stream_are_named() -> None:
    results = Results(load({0: rank_of(7), 1: rank_of(7)}))
    (claim,) = claims_that_are(ComputeStreamClaim, COMPUTE_STREAM.when(results))
    assert claim.count == 10
    assert claim.figure == pytest.approx(300, abs=1)
    assert {results.graph.names[results.graph.activities.name[row]] for row in claim.rows} == {COMMUNICATE}


@pytest.mark.parametrize("streams", [(20, 20), (20, 21)])
def test_collectives_on_a_stream_of_their_own_are_not(streams: tuple[int, int]) -> None:
    assert COMPUTE_STREAM.when(Results(load({rank: rank_of(stream) for rank, stream in enumerate(streams)}))) == []
    assert COMPUTE_STREAM.when(Results(graph_of(DATA / "demo"))) == []


def test_advice_needs_a_gain_and_no_gain_is_sure() -> None:
    claim = ComputeStreamClaim("compute_stream", "communication", 300.0, "us", count=10)
    assert COMPUTE_STREAM.whole(claim) == "10 collectives run on the stream of computation, for 300.0 µs on a rank."
    assert not COMPUTE_STREAM.advice(claim)
    gaining = ComputeStreamClaim("compute_stream", "communication", 300.0, "us", count=10, gain=gained(90.0, 9.0))
    assert "async_op=True" in COMPUTE_STREAM.advice(gaining)
    assert COMPUTE_STREAM.whole(gaining).endswith("Beside it, the job would take 90.0 µs less (9 %) at most.")
    for found in COMPUTE_STREAM.when(Results(load({0: rank_of(7), 1: rank_of(7)}))):
        assert found.gain is None or found.gain.low_us <= 0
