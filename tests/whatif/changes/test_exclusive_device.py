from __future__ import annotations

import htagraph as hg
from tests.strategies import COMPUTE, kernel, launch, load


def test_work_that_waited_for_other_work_starts_as_soon_as_its_own_stream_is_free() -> None:
    events = [launch(0, 5, 1), kernel(COMPUTE, 10, 100, 1), launch(15, 5, 2), kernel(COMPUTE, 5000, 100, 2)]
    outcome = hg.what_if(load(events)).exclusive_device().run()
    assert outcome.makespan_ns == 211_000, "a pause of 1 µs is usual"
