"""Whether what bounds the job is said first, with its share, its rank and what else is on the path."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.kinds import Category
from htagraph.findings.bound import BOUND, BoundClaim, LateStart
from htagraph.findings.ceilings import RankAlone
from htagraph.findings.change import usual_us
from htagraph.findings.changes import changes_of
from htagraph.findings.finding import claims_that_are
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of, sentences
from htagraph.queries.path_segments import HOST_CATEGORIES
from tests.findings.claims_by_hand import bound
from tests.reach import DATASETS, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, OTHER, Json, annotation, kernel, launch, load, op, runtime


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_the_figure_is_the_share_of_the_path_and_nothing_else_gains_more(path: Path) -> None:
    graph = graph_of(path)
    results = Results(graph)
    table = results.path.summary()
    shares = table[table["group"] == "category"].set_index("key")["share_percent"]
    (claim,) = claims_that_are(BoundClaim, BOUND.when(results))
    of_host = shares[shares.index.isin(HOST_CATEGORIES)].sum()
    assert claim.figure == pytest.approx(of_host if claim.about == "host" else shares[claim.about])
    scenario = hg.what_if(graph).shared_link(on=False)
    changes: dict[str, Callable[[], hg.Scenario]] = {
        "host": scenario.infinite_host,
        "computation": lambda: scenario.scale(factor=0, kind="computation"),
        "communication": lambda: scenario.scale_network(factor=0),
        "data_loading": scenario.free_dataloader,
        "outside": scenario.free_outside,
    }
    gains = {}
    for cause, change in changes.items():
        with suppress(hg.SelectionError):
            gains[cause] = 1000 * usual_us(change().run())
    assert claim.about == max(gains, key=lambda each: gains[each]) or claim.by_workers
    assert claim.gain is not None
    assert claim.gain.value_us * 1000 == pytest.approx(gains[claim.about], abs=1)


def test_a_path_of_a_part_of_the_job_has_no_gain() -> None:
    graph = graph_of(DATASETS[0])
    part = Results(graph, path=hg.critical_path(graph, graph.steps[0]))
    assert part.free == {}
    assert BOUND.when(part)[0].gain is None


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("computation", "Bound by computation: 80 % of the critical path"),
        ("communication", "Bound by transfers between ranks: 80 %"),
        ("data_loading", "Bound by the data loader: 80 %"),
        ("gap", "Bound by unexplained pauses: 80 %"),
        ("other_work", "Bound by other work of the device (inferred, not recorded): 80 %"),
    ],
)
def test_the_first_words_say_what_bounds_the_job(part: Category, words: str) -> None:
    sentence = BOUND.whole(bound(part))
    assert sentence.startswith(words)
    assert sentence.endswith("; then launch calls 19 %.")


def test_in_short_other_categories_stand_behind_it() -> None:
    shares = {"computation": 70.0, "communication": 20.0, "head": 8.0}
    assert BOUND.short(bound("computation", 70.0, ranks={2: 99.0}, shares=shares)) == (
        "Bound by computation: 70 % of the critical path, on rank 2; then transfers between ranks 20 %, what came "
        "before the recording 8 %."
    )


def test_a_host_that_computes_is_no_host_code() -> None:
    events = [op("aten::mm", 0, 60), op("aten::add", 60, 30), op("my::loop", 90, 10)]
    (claim,) = BOUND.when(Results(load(events)))
    assert isinstance(claim, BoundClaim)
    assert BOUND.why(claim) == "Bound by computation on the CPU: 100 % of the critical path, 60 % in aten::mm."
    (listed,) = BOUND.when(Results(load([*events, launch(100, 5, 1), kernel("gemm", 110, 1, 1)])))
    assert "computation on the CPU" not in BOUND.why(listed)


def test_time_without_an_event_is_no_computation() -> None:
    events = [op("aten::mm", 0, 60), op("aten::add", 80, 20)]
    (claim,) = BOUND.when(Results(load(events)))
    assert isinstance(claim, BoundClaim)
    assert BOUND.why(claim) == (
        "Bound by computation on the CPU: 80 % of the critical path, 60 % in aten::mm; in 20 %, no event is recorded."
    )


def test_calls_of_the_allocator_are_a_part_of_their_own() -> None:
    events = [op("aten::empty", 0, 100), runtime("cudaMalloc", 10, 80), launch(100, 5, 1), kernel("gemm", 110, 10, 1)]
    (claim,) = BOUND.when(Results(load(events)))
    assert claim.about == "allocator"
    assert BOUND.why(claim).startswith("Bound by calls of the allocator: 67 % of the critical path")
    assert claim.gain is not None
    assert claim.gain.value_us == 80.0


def test_a_recording_that_begins_late_is_named_by_its_rank() -> None:
    shares = {"computation": 62.0, "head": 36.0}
    late = bound("computation", 62.0, ranks={7: 100.0}, shares=shares, late=LateStart(7, 7500.0, 36.0))
    assert BOUND.whole(late).endswith(", on rank 7. Rank 7's recording begins 7.50 ms late (36 %).")


@pytest.mark.parametrize(
    ("ranks", "without", "words"),
    [
        ({3: 84.0, 0: 16.0}, 100.0, " (84 % on rank 3)"),
        ({2: 100.0}, 100.0, ", on rank 2"),
        ({0: 97.0, 1: 3.0}, 1.1, "; speeding up rank 0 alone gains 1 %, rank 1 is next"),
        ({0: 97.0, 1: 3.0}, 22.6, " (97 % on rank 0)"),
    ],
)  # fmt: skip
def test_a_rank_is_named_unless_the_job_would_be_as_long_without_it(
    ranks: dict[int, float], without: float, words: str
) -> None:
    claim = bound("computation", ranks=ranks, alone=RankAlone(next(iter(ranks)), without))
    assert words in BOUND.short(claim)


def test_where_workers_set_the_pace_only_the_loader_is_advised() -> None:
    claim = bound("data_loading", 25.0, by_workers=True)
    assert BOUND.short(claim).endswith(". It waits for 4 of 10 batches: only a faster loader helps.")


def test_waiting_for_absent_ranks_may_look_like_transfer() -> None:
    claim = bound("communication", absent="recorded")
    assert BOUND.short(claim).startswith("Bound by transfers between ranks, or waiting for ranks not recorded: 80 %")
    assert BOUND.advice(claim) == "Load all ranks, to split waiting from transfer."


def test_the_largest_of_what_bounds_it_is_shown() -> None:
    results = Results(graph_of(DATASETS[0]))
    (claim,) = BOUND.when(results)
    evidence = BOUND.evidence(results, claim)
    times = evidence.rows.frame["time_us"].tolist()
    assert times == sorted(times, reverse=True)
    assert evidence.meaning is hg.CriticalPath.summary


def test_host_time_without_events_beside_communication_may_be_a_wait_for_it() -> None:
    busy = annotation("gloo:all_reduce", 40, 9_900, OTHER)
    alone = [op("a", 0, 30), op("b", 10_000, 30)]
    assert BOUND.when(Results(load(alone)))
    assert not BOUND.when(Results(load([*alone, busy])))


def test_the_kernels_of_a_cause_are_of_its_kind() -> None:
    results = Results(
        load([launch(0, 5, 1), kernel(COMMUNICATE, 10, 900, 1), launch(20, 5, 2), kernel("gemm", 920, 990, 2)])
    )
    (claim,) = BOUND.when(results)
    kernels = BOUND.evidence(results, claim).rows.frame["name"].tolist()
    assert (claim.about, kernels) == ("computation", ["gemm"])


def shared_device(pause_us: int, count: int = 24) -> list[Json]:
    """Return a job whose host launches in time, and whose stream starts every third kernel late, in 2 ms turns."""
    events, now = [], 0
    for number in range(1, count + 1):
        late = pause_us * (number % 3 == 0)
        events += [op("aten::addmm", now, 20), launch(now + 5, 4, number), kernel(COMPUTE, now + 13 + late, 12, number)]
        if late:
            events.append(runtime("cudaStreamSynchronize", now + 22, late + 10))
        now += 22 + late + 12 * (late > 0)
    return events


def test_a_device_that_serves_another_process_is_no_work_of_the_host_and_no_earlier_work() -> None:
    results = Results(load(shared_device(pause_us=2000)))
    (claim,) = BOUND.when(results)
    assert claim.about == "other_work"
    assert claim.figure > 90
    assert results.free["host"] < 0.06 * results.makespan_ns
    claims = claims_of(results)
    first = changes_of(results).first
    assert first is not None
    assert "nvidia-smi" in first.action
    assert not any("earlier" in sentence for sentence in sentences(claims))
