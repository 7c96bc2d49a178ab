"""Whether the host's longest pauses are named where they matter, with what is around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from htagraph.findings.finding import claims_that_are
from htagraph.findings.host_pause import HOST_PAUSE, HostPauseClaim
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, kernel, launch, load, op, runtime


def pause(about: str, **more: Any) -> HostPauseClaim:
    made = HostPauseClaim(
        "host_pause",
        about,
        22.0,
        "percent",
        ranks=(0,),
        inside="src/train.py(42): augment",
        before="",
        after="",
        count=20,
        total_us=2e5,
        longest_us=12e3,
    )
    return replace(made, **more)


def test_a_pause_is_told_with_the_function_around_it() -> None:
    sleep = pause("<built-in function sleep>")
    assert HOST_PAUSE.short(sleep) == (
        "On the critical path, most host time is: <built-in function sleep> in train.py(42): augment, 20 times, "
        "200.0 ms (22 %)."
    )
    on_both = HOST_PAUSE.whole(pause("sleep", ranks=(1, 0), has_several_ranks=True))
    assert "sleep in train.py(42): augment on ranks 0 and 1, 20 times" in on_both


def test_pauses_of_few_steps_are_told_with_these_and_how_to_see_what_they_are() -> None:
    saving = pause("", inside="", in_steps=(4, 7), count=2, has_stacks=False)
    assert "untraced time in steps 4 and 7, 2 times, 200.0 ms" in HOST_PAUSE.short(saving)
    assert HOST_PAUSE.advice(saving) == "Record with with_stack=True, to see what runs in that time."
    assert not HOST_PAUSE.advice(pause("", in_steps=(4,), has_stacks=True))


def test_untraced_time_is_told_by_what_is_around_it() -> None:
    sentence = HOST_PAUSE.whole(pause("", inside="step", before="aten::mm", count=1))
    assert "untraced time in step before aten::mm, 200.0 ms (22 %)" in sentence


@pytest.mark.parametrize(("after_us", "named"), [(3000, True), (1000, False), (900, False)])
def test_a_long_pause_is_named_though_the_device_bounds_the_job(after_us: int, *, named: bool) -> None:
    events = [
        launch(0, 5, 1), kernel(COMPUTE, 10, 6000, 1), runtime("cudaDeviceSynchronize", 6, 6010),
        op("aten::mul", 6016 + after_us, 20), launch(6020 + after_us, 5, 2), kernel(COMPUTE, 6030 + after_us, 3000, 2),
    ]  # fmt: skip
    results = Results(load(events))
    assert results.bound.cause == "computation"
    after = [claim.after for claim in claims_that_are(HostPauseClaim, HOST_PAUSE.when(results))]
    assert after == (["cudaDeviceSynchronize"] if named else [])
