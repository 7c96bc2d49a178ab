"""Whether unexplained pauses on the critical path are told with their kind, and shown."""

from __future__ import annotations

from htagraph.findings.results import Results
from htagraph.findings.unexplained import UNEXPLAINED
from tests.strategies import COMPUTE, kernel, launch, load


def test_a_late_kernel_that_nothing_explains_is_told() -> None:
    events = [launch(0, 5, 1), kernel(COMPUTE, 10, 100, 1), kernel(COMPUTE, 600, 100)]
    results = Results(load(events))
    (claim,) = UNEXPLAINED.when(results)
    assert claim.figure == results.bound.unexplained_percent > 50
    assert UNEXPLAINED.whole(claim).startswith("70 % of the critical path is unexplained")
    evidence = UNEXPLAINED.evidence(results, claim)
    ((_, parts),) = evidence.chart.stacks
    assert sum(part.value for part in parts) == 700
    assert evidence.place == evidence.rows.places[0]
    assert UNEXPLAINED.when(Results(load(events[:2]))) == []
