"""Whether the host's time on a path is told by what ran and where."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.blocking import BlockingClaim
from htagraph.findings.finding import claims_that_are
from htagraph.queries.host_time import host_pauses, late_reason, longest_blocking
from tests.reach import DATASETS, graph_of
from tests.strategies import COMPUTE, Json, annotation, complete, kernel, launch, load, op, runtime


def frame(name: str, start: int, duration: int) -> Json:
    return complete("python_function", name, start, duration)


def test_a_sleep_is_told_with_the_function_that_calls_it() -> None:
    events = [frame("train.py(42): augment", 0, 1000), frame("<built-in function sleep>", 100, 300)]
    events += [frame("<built-in function sleep>", 500, 400), op("aten::add", 950, 20)]
    table = host_pauses(hg.critical_path(load(events)))
    first = table.iloc[0]
    assert (first["what"], first["inside"], first["count"]) == ("<built-in function sleep>", "train.py(42): augment", 2)
    assert (first["total_us"], first["longest_us"]) == (700, 400)
    assert first["share_percent"] == pytest.approx(70)


def test_time_that_no_event_covers_is_told_by_the_annotation_and_what_comes_next() -> None:
    events = [annotation("## forward ##", 0, 1000), op("aten::relu", 0, 100), op("aten::add", 800, 200)]
    first = host_pauses(hg.critical_path(load(events))).iloc[0]
    assert (first["what"], first["inside"], first["before"]) == ("", "## forward ##", "aten::add")
    assert first["after"] == "aten::relu"
    assert first["total_us"] == 700


def test_time_at_the_end_of_a_region_is_told_by_what_ran_before_it() -> None:
    first = host_pauses(hg.critical_path(load([annotation("## forward ##", 0, 1000), op("aten::relu", 0, 100)]))).iloc[
        0
    ]
    assert (first["inside"], first["before"], first["after"]) == ("## forward ##", "", "aten::relu")


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_all_rows_sum_to_the_hosts_part_of_the_path(path: Path) -> None:
    critical = hg.critical_path(graph_of(path))
    segments = critical.to_frame()
    host = segments.loc[segments["category"].isin(["host", "launch", "sync"]), "duration_us"]
    table = host_pauses(critical, len(segments) + 1)
    assert table["total_us"].sum() == pytest.approx(host.sum())
    assert (table["longest_us"] <= table["total_us"] + 1e-9).all()


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_a_pause_before_something_is_not_inside_it(path: Path) -> None:
    graph = graph_of(path)
    table = host_pauses(hg.critical_path(graph), 1000)
    untraced = table[(table["before"] != "") & (table["inside"] != "")]
    for row in untraced.to_dict("records"):
        around = [graph.names[graph.activities.name[each]] for each in ancestors(graph, row["activity"])]
        assert row["inside"] in around


def ancestors(graph: hg.DependencyGraph, activity: int) -> list[int]:
    above = []
    while (activity := int(graph.tree.parent[activity])) >= 0:
        above.append(activity)
    return above


def launches(every: int, between: list[Json], count: int = 10) -> list[Json]:
    """Return launches, so many µs apart, of kernels of 50 µs, and what else runs."""
    return [
        *chain.from_iterable(
            (launch(every * i, 10, i + 1), kernel(COMPUTE, every * i + 15, 50, i + 1)) for i in range(count)
        ),
        *between,
    ]


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("every", "between", "reason"),
    [
        (3000, [], "pauses"),  # code that no event covers
        (3000, [op("aten::mul", 3000 * i + 20, 2900) for i in range(10)], "pauses"),
        (3000, [op("aten::mul", 3000 * i + 20 + 290 * j, 280) for i in range(10) for j in range(10)], "few"),
        (3000, [annotation(LOADER, 3000 * i + 20, 2900) for i in range(10)], "loader"),
        (3000, [op("gloo:all_reduce", 3000 * i + 20, 2900) for i in range(10)], "ranks"),
        (20, [], ""),  # the device never waits
    ],
)
def test_it_is_what_the_host_does_while_the_device_waits(every: int, between: list[Json], reason: str) -> None:
    assert late_reason(load(launches(every, between)), 0) == reason


@pytest.mark.parametrize(("count", "reason"), [(5, "few"), (150, "launches")])
def test_few_late_launches_are_no_sign_of_many_small_pieces(count: int, reason: str) -> None:
    """A recording of five kernels launches few pieces, however late each is."""
    assert late_reason(load(launches(300, [], count)), 0) == reason


def test_small_pieces_are_no_reason_where_a_tenth_of_the_waits_is_most_of_the_time() -> None:
    small = [op("aten::mul", 300 * 60 + 90 * at, 80) for at in range(400)]
    late = [each | {"ts": each["ts"] + 90 * 400} for each in launches(300, [], 100)[120:]]
    assert late_reason(load(launches(300, small, 60) + late), 0) == "pauses"


def test_a_rank_without_device_work_launches_nothing() -> None:
    assert late_reason(load([op("aten::mul", 0, 100)]), 0) == ""


def waiting(*, operator: bool, python_us: int) -> list[Json]:
    """Return steps that launch 100 µs of work, wait for it (in an operator or not), and run Python after that."""
    events: list[Json] = []
    for number in range(5):
        at, call = (160 + python_us) * number, 10 * number + 1
        events += [launch(at, 1, call), kernel(COMPUTE, at + 5, 100, call)]
        events += [runtime("cudaStreamSynchronize", at + 20, 90, call + 1), op("python", at + 130, python_us)]
        if operator:
            events += [annotation("loss", at + 8, 110), op("aten::item", at + 10, 105), op("aten::inner", at + 15, 98)]
    return events


@pytest.mark.parametrize(("operator", "name"), [(True, "aten::item"), (False, "cudaStreamSynchronize")])
def test_the_outermost_operator_is_named_or_else_the_call(*, operator: bool, name: str) -> None:
    graph = load(waiting(operator=operator, python_us=80))
    place = longest_blocking(graph)
    assert place is not None
    assert (place.name, place.count, place.blocked_ns) == (name, 5, 5 * 90_000)
    assert place.criteria == {"op" if operator else "name": name}
    assert hg.what_if(graph).remove_sync(**place.criteria).run().saved_ns > 100_000


def test_calls_that_never_wait_or_whose_work_is_over_do_not_count() -> None:
    again = [runtime("cudaStreamSynchronize", 270 * number + 120, 3, 900 + number) for number in range(5)]
    steps = waiting(operator=False, python_us=110)
    assert longest_blocking(load([*steps, *again])) == longest_blocking(load(steps))
    assert longest_blocking(load([launch(0, 1, 1), kernel(COMPUTE, 5, 100, 1)])) is None
    assert longest_blocking(load([])) is None


def test_a_summary_says_it_only_where_it_gains() -> None:
    graph = load(waiting(operator=True, python_us=80))
    (claim,) = claims_that_are(BlockingClaim, hg.summarize(graph).claims)
    assert claim.figure == hg.what_if(graph).remove_sync(op="aten::item").run().saved_ns / 1000
    assert claim.target == "op=aten::item"
    last = load([launch(0, 1, 1), kernel(COMPUTE, 5, 100, 1), runtime("cudaStreamSynchronize", 20, 90, 2)])
    assert not [claim for claim in hg.summarize(last).claims if claim.says == "blocking"]


@pytest.mark.parametrize("holder", ["encoder.py(205): encode", "<built-in method sleep>"])
def test_python_that_is_blocked_far_longer_than_usual_waits_for_a_function_of_another_thread(holder: str) -> None:
    calls = [frame("<built-in function linear>", at, 20) for at in (0, 100, 200)]
    stuck = [*calls, frame("<built-in function linear>", 10_000, 60_000), op("aten::add", 71_000, 9_000)]
    graph = load([*stuck, complete("python_function", holder, 9_000, 70_000 - 8_000, 5)])
    without = hg.what_if(graph).scale(factor=0.0, name=holder).run()
    assert (without.makespan_ns < 30_000_000) == holder.endswith("encode"), "built-in functions may give it away"
    verdict = " ".join(hg.summarize(graph).verdict)
    assert ("for which other threads wait" in verdict) == holder.endswith("encode")
