"""Whether it is said that device work covers only a part of the recording."""

from __future__ import annotations

import pytest

from htagraph.findings.partly_device import PARTLY_DEVICE
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, kernel, launch, load, op


@pytest.mark.parametrize(("host_us", "figures"), [(1000, [pytest.approx(30.5)]), (310, [])])
def test_it_is_said_where_a_fifth_of_the_recording_is_of_the_host_alone(host_us: int, figures: list[float]) -> None:
    events = [op("a", 0, host_us), launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), launch(202, 3, 2)]
    results = Results(load([*events, kernel(COMPUTE, 210, 100, 2)]))
    claims = PARTLY_DEVICE.when(results)
    assert [claim.figure for claim in claims] == figures
    for claim in claims:
        (_, (device, rest)) = PARTLY_DEVICE.evidence(results, claim).chart.stacks[0]
        assert (device.value, rest.value) == (305.0, 695.0)
