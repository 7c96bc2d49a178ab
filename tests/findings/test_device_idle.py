"""What is said of idle devices, and of time in which they look busy but wait."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import htagraph as hg
from htagraph.findings.device_idle import DEVICE_IDLE, DeviceIdleClaim, HostReason, idle_chart, idle_times
from htagraph.findings.finding import NO_CHART, claims_that_are
from htagraph.findings.results import Results
from htagraph.graph.measures.pauses import IdleCause
from htagraph.graph.measures.waits import waiting_devices
from htagraph.queries.host_time import LateLaunches
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime, step


def idle(
    cause: IdleCause, host: HostReason = "", waits: float = 0.0, *, behind_other_work: bool = False
) -> DeviceIdleClaim:
    return DeviceIdleClaim(
        "device_idle",
        cause,
        30.0,
        "percent",
        rank=1,
        rank_percent=35.0,
        has_several_devices=True,
        host=host,
        in_collectives_percent=waits,
        scope="In the steps",
        behind_other_work=behind_other_work,
    )


@pytest.mark.parametrize(
    ("cause", "host", "words"),
    [
        ("host_wait", "launches", "many small pieces of work"),
        ("host_wait", "pauses", "a few long pauses"),
        ("host_wait", "loader", "the data loader"),
        ("host_wait", "ranks", "for other ranks or transfers"),
        ("kernel_wait", "", "devices pause 30 %"),
        ("other", "", "are idle 30 %"),
    ],
)
def test_a_long_idle_time_is_told_with_advice_that_fits(cause: IdleCause, host: HostReason, words: str) -> None:
    claim = idle(cause, host)
    assert words in DEVICE_IDLE.short(claim)
    assert "30 % of the time (rank 1: 35 %)" in DEVICE_IDLE.short(claim)
    assert ("CUDA graph" in DEVICE_IDLE.advice(claim)) == (host == "launches" or cause == "kernel_wait")


def loading() -> list[Json]:
    """Return three steps of 100 short kernels that the host launches late, each behind 3 ms in the data loader."""
    events: list[Json] = []
    for number in range(3):
        begin = 10_000 * number
        events += [step(number, begin, 10_000)]
        events += [annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin + 10, 3_000)]
        for place in range(100):
            at = begin + 3_100 + 60 * place
            correlation = 1_000 * number + place + 1
            events += [
                op("aten::add", at, 40),
                launch(at + 5, 5, correlation),
                kernel(COMPUTE, at + 12, 4, correlation),
            ]
    return events


def test_the_part_of_the_waiting_that_the_data_loader_explains_is_named_and_no_gain_of_the_launches() -> None:
    results = Results(load(loading()))
    idle_claims = claims_that_are(DeviceIdleClaim, DEVICE_IDLE.when(results))
    (claim,) = [claim for claim in idle_claims if claim.about == "host_wait"]
    assert claim.loading is not None
    assert claim.loading.us == pytest.approx(9_000, rel=0.01)
    assert "9.00 ms of this in 3 waits for the data loader; beside that, the host launches" in DEVICE_IDLE.short(claim)
    change = claim.change
    assert change is not None
    assert "beyond a faster data loader" in change.sentence
    gains = results.free
    assert change.gain.value_us == pytest.approx((gains["host"] - gains["data_loading"]) / 1000)


def test_idle_time_behind_other_work_is_called_what_it_is() -> None:
    claim = idle("other", behind_other_work=True)
    assert DEVICE_IDLE.short(claim).endswith("an unrecorded stream, probably had the device (check nvidia-smi).")


def test_waiting_in_collectives_stands_beside_waiting_for_the_host() -> None:
    claim = idle("host_wait", "pauses", 57.0)
    assert "devices wait 57 % in collectives for late ranks and 30 % for the host (rank 1: 35 %): a few long" in (
        DEVICE_IDLE.short(claim)
    )
    assert "collectives" not in DEVICE_IDLE.short(idle("host_wait", "pauses", 1.0))


def test_its_share_is_that_of_the_same_windows() -> None:
    graph = graph_of(DATA / "demo")
    summary = hg.summarize(graph)
    (claim,) = claims_that_are(DeviceIdleClaim, summary.claims)
    window = idle_times(Results(graph)).groupby("rank")["window_us"].first().sum()
    share = 100 * sum(waiting_devices(graph).values()) / 1000 / window
    assert claim.in_collectives_percent == pytest.approx(share)


@pytest.mark.parametrize(
    ("name", "pieces", "host"), [("cudaGraphLaunch", 4, "graphs"), ("cudaLaunchKernel", 1, "launches")]
)
def test_graphs_are_no_advice_where_they_are_used(name: str, pieces: int, host: str) -> None:
    """Devices wait for launches of graphs: the sentence is about these, not advice to make graphs."""
    events: list[Json] = []
    for number in range(40):
        at = 300 * number
        events.append(runtime(name, at, 200, number + 1))
        events += [kernel("work", at + 210 + 20 * i, 10, number + 1) for i in range(pieces)]
    claims = claims_that_are(DeviceIdleClaim, hg.summarize(load(events)).claims)
    (claim,) = [each for each in claims if each.about == "host_wait"]
    assert claim.host == host


def test_idle_time_is_drawn_where_there_is_any() -> None:
    table = pd.DataFrame({"rank": range(3), "cause": "host_wait", "idle_us": 5.0})
    chart = idle_chart(table)
    assert [(word, parts[0].value) for word, parts in chart.stacks] == [(f"rank {rank}", 5.0) for rank in range(3)]
    assert idle_chart(table.assign(idle_us=0.0)) is NO_CHART


@pytest.mark.parametrize(
    ("name", "words"), [("ProfilerStep#1", "nothing is launched then (690.0 µs after its last)"), ("other", "")]
)
def test_idle_time_begins_with_the_steps_and_ends_with_them(name: str, words: str) -> None:
    """The device works from 5 to 310 µs, with a pause of 105 µs; the recording goes on."""
    events = [annotation(name, 0, 1000), launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), launch(202, 3, 2)]
    claims = DEVICE_IDLE.when(Results(load([*events, kernel(COMPUTE, 210, 100, 2)])))
    assert words in " ".join(DEVICE_IDLE.short(claim) for claim in claims)
    assert [round(claim.figure) for claim in claims] == [80 if words else 34]


def test_of_launches_that_are_late_at_some_places_the_places_are_named() -> None:
    late = LateLaunches(86, 798, 0)
    claim = replace(idle("host_wait", "some"), late=late, late_places=("quantize", "permute"))
    assert "which launches 86 of 798 pieces of work too late, mostly in quantize and permute" in DEVICE_IDLE.short(
        claim
    )
    assert "launches some pieces of work too late, mostly in quantize and permute." in DEVICE_IDLE.why(claim)
    assert "each" not in DEVICE_IDLE.whole(claim)


def test_one_long_pause_is_not_a_few() -> None:
    claim = replace(idle("host_wait", "pauses"), late=LateLaunches(3, 4, 1))
    assert ": one long pause of the host, not many launches" in DEVICE_IDLE.why(claim)


def test_launches_are_late_at_some_places_where_most_work_was_queued() -> None:
    events: list[Json] = []
    for number in range(40):  # of six kernels, the first finds its device idle
        at = 1000 * number
        calls = [launch(at + 300 + 10 * each, 5, 6 * number + each + 1) for each in range(6)]
        works = [kernel(COMPUTE, at + 320 + 100 * each, 100, 6 * number + each + 1) for each in range(6)]
        events += [op("my::prepare", at, 299), *calls, *works]
    (claim,) = claims_that_are(DeviceIdleClaim, DEVICE_IDLE.when(Results(load(events))))
    assert claim.host == "some"
    assert claim.late is not None
    assert (claim.late.late, claim.late.launched) == (39, 240)
