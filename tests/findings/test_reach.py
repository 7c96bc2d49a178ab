"""Whether the gain of a remedy is in its interval, and the interval holds what may stay of the replaced time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.findings.change import Gain
from htagraph.findings.finding import claims_that_are
from htagraph.findings.reach import MODELLED, REACH, Reach, within
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from tests.reach import DATA, graph_of


@pytest.mark.parametrize("reach", [MODELLED, *REACH.values()])
def test_each_reach_has_its_source_and_its_likely_share_between_the_ends(reach: Reach) -> None:
    assert -1 < reach.least <= reach.likely <= reach.most <= 1
    assert reach.likely >= 0, "a prediction takes away what it names, and no more"
    assert reach.source


@given(st.floats(1, 1e6), st.sampled_from([MODELLED, *REACH.values()]))
def test_the_gain_is_in_its_interval_and_no_gain_is_longer_than_the_job(us: float, reach: Reach) -> None:
    gain = within(Gain(us, us, us, steps=0, makespan_us=1.5 * us), reach)
    assert 0 <= gain.low_us <= gain.value_us <= gain.high_us <= 1.5 * us
    assert within(gain, MODELLED) == gain


def test_the_interval_of_a_fused_optimizer_holds_its_measured_range() -> None:
    (claim,) = claims_that_are(RemedyClaim, REMEDY.when(Results(graph_of(DATA / "gpu_demo" / "train"))))
    assert claim.about == "optimizer"
    assert claim.interval is not None
    low, high = claim.interval
    assert low < claim.figure < high
