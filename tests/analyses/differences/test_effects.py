"""Effects of changed work, on jobs whose answer is obvious."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.analyses.differences.alignment import align
from htagraph.analyses.differences.compared_parts import parts_of
from htagraph.analyses.differences.effects import Effects, effects
from htagraph.simulate import Job, simulate
from tests.strategies import COMPUTE, Json, annotation, complete, kernel, launch, load, op, runtime, step, traces

COLUMNS = ["name", "kind", "before_us", "after_us", "change_us", "effect_us"]


def between(before: DependencyGraph, after: DependencyGraph, count: int = 10) -> Effects:
    return effects(align(before, after), parts_of(before, after, None, None, None), count)


def in_a_row(**durations: int) -> list[Json]:
    """Return operators of one thread, each starting when the one before ends."""
    events, at = [], 0
    for name, duration in durations.items():
        events.append(op(name, at, duration))
        at += duration
    return events


def test_on_one_thread_an_effect_is_the_change_of_the_operators_own_time() -> None:
    result = between(load(in_a_row(a=10, b=20, c=5)), load(in_a_row(a=10, b=50, c=2)))
    assert result.to_frame()[COLUMNS].to_numpy().tolist() == [
        ["b", "op", 20.0, 50.0, 30.0, 30.0], ["c", "op", 5.0, 2.0, -3.0, -3.0]
    ]  # fmt: skip
    assert result.explained_us == pytest.approx(27)


def test_an_operator_beside_a_longer_one_has_no_effect() -> None:
    def job(aside: int) -> DependencyGraph:
        return load([op("main", 0, 100), op("aside", 0, aside, tid=77)])

    (row,) = between(job(10), job(40)).to_frame().to_dict("records")
    assert (row["name"], row["change_us"], row["effect_us"]) == ("aside", 30.0, 0.0)


def test_a_thread_that_takes_no_part_neither_causes_a_change_nor_hides_one() -> None:
    def job(wait: int) -> DependencyGraph:
        idle = complete("python_function", "_recv", 0, 110 + wait, 77)
        return load([launch(0, 5, 1), kernel(COMPUTE, 5, wait, 1), runtime("cudaDeviceSynchronize", 6, wait, 2), idle])

    rows = between(job(100), job(400)).to_frame().set_index("name")
    assert "_recv" not in rows.index
    assert rows["effect_us"].sum() == pytest.approx(300)


def test_transfers_that_are_cut_anew_are_compared_by_their_sum() -> None:
    def job(*pieces: tuple[int, int]) -> DependencyGraph:
        calls = [launch(5 * i, 2, i) for i in range(len(pieces) + 1)]
        sent = [kernel("ncclDevKernel_AllReduce", start, us, i, stream=20) for i, (start, us) in enumerate(pieces, 1)]
        wait = runtime("cudaDeviceSynchronize", 90, sum(pieces[-1]) - 88, 9)
        return load([*calls, kernel(COMPUTE, 5, 95, 0), *sent, wait])

    overlapped = between(job((100, 90)), job((20, 30), (50, 30), (100, 31)))
    # it is shorter by what waits for what; the kernel beside holds up the last piece, and counts for a part of it
    assert overlapped.explained_us == pytest.approx(0, abs=4)


def test_only_the_operators_that_changed_most_are_replayed_one_by_one_but_all_together() -> None:
    result = between(load(in_a_row(a=10, b=20, c=5)), load(in_a_row(a=11, b=50, c=2)), count=1)
    assert result.to_frame()["name"].tolist() == ["b"]
    assert result.explained_us == pytest.approx(28)


def test_an_empty_job_has_no_effects() -> None:
    result = between(load([]), load(in_a_row(a=10)))
    assert (len(result.to_frame()), result.explained_us) == (0, 0.0)
    full = between(load(in_a_row(a=1)), load(in_a_row(a=2)))
    assert result.to_frame().dtypes.to_dict() == full.to_frame().dtypes.to_dict()


@pytest.mark.slow
@settings(max_examples=15)
@given(traces(), traces())
def test_the_other_way_round_effects_have_the_other_sign(first: Any, second: Any) -> None:
    before, after = load(first), load(second)
    there, back = between(before, after, 0), between(after, before, 0)
    assert there.explained_us == pytest.approx(-back.explained_us, abs=0.01)


def named(change_us: float, *rows: tuple[str, str, float, float, float]) -> Effects:
    """Return effects of rows (name, kind, change, effect, change of the rank that changed most)."""
    full = [
        (name, kind, 100.0, 100.0 + own, own, effect, 0, most, False, 0.5) for name, kind, own, effect, most in rows
    ]
    return Effects(full, sum(row[5] for row in full), change_us)


def test_an_effect_against_the_change_is_no_cause_of_it() -> None:
    found = named(-20, ("wait", "host_communication", -15, 18, -30), ("work", "op", -1, -19, -8))
    assert found.to_frame()["name"].tolist() == ["work", "wait"]


def test_where_the_change_may_be_chance_the_work_that_changed_most_comes_first() -> None:
    rows = ("less", "op", -12, -0.1, -12), ("longer", "op", 11, 4, 11)
    assert named(0, *rows).to_frame()["name"].tolist() == ["less", "longer"]


def test_work_that_changed_within_its_noise_comes_last() -> None:
    found = named(-12, ("noise", "op", -0.4, -9, -0.4), ("work", "op", -3, -3, -3))
    assert found.to_frame()["name"].tolist() == ["work", "noise"]


def test_the_noise_of_a_row_is_that_of_the_steps_both_ways_round() -> None:
    def job(*durations: int) -> DependencyGraph:
        begins = [sum(durations[:i]) for i in range(len(durations))]
        marks = [
            (step(i + 1, at, us), op("a", at, us)) for i, (at, us) in enumerate(zip(begins, durations, strict=True))
        ]
        return load([event for pair in marks for event in pair])

    jobs = job(100, 90, 110, 95, 105, 100, 90), job(140, 160, 150, 155, 145, 150, 150)
    there, back = (hg.diff(*sides).causes().set_index("name").loc["a"] for sides in (jobs, jobs[::-1]))
    assert there["plus_minus_us"] == pytest.approx(back["plus_minus_us"])
    assert 5 < there["plus_minus_us"] < there["change_us"] == pytest.approx(51, abs=3)


def test_the_rank_whose_own_time_changed_most_is_named() -> None:
    def job(slow: int) -> DependencyGraph:
        return load({0: [op("a", 0, 10)], 1: [op("a", 0, slow)]})

    (row,) = between(job(10), job(50)).to_frame().to_dict("records")
    assert (row["change_us"], row["rank"], row["rank_change_us"]) == (20.0, 1, 40.0)
    (row,) = between(job(10), load([op("a", 0, 90)])).to_frame().to_dict("records")
    assert (row["rank"], row["rank_change_us"]) == (-1, 0.0)


def test_calls_that_wait_for_the_same_go_together(tmp_path: Path) -> None:
    """Without `.item()`, neither its copy nor its synchronization waits; one of them alone would wait as long."""
    graphs = {}
    for item in ("pageable", "none"):
        job = Job(ranks=1, steps=4, layers=1, item=item, jitter=0, host_us_per_op=15)
        simulate(job).write(tmp_path / item, suffix=".json", truth=False)
        graphs[item] = hg.load(tmp_path / item)
    gone = hg.diff(graphs["pageable"], graphs["none"])
    first = gone.causes().iloc[0]
    assert gone.change_us < -50
    assert (first["name"], first["after_us"]) == ("aten::item", 0)
    assert first["effect_us"] == pytest.approx(gone.change_us, rel=0.1)
    assert "nothing waits in it any more" in gone.sentences()[1]
    new = hg.diff(graphs["none"], graphs["pageable"])
    assert new.causes()["name"].iloc[0] == "aten::item"
    assert "the host waits in it" in new.sentences()[1]


def with_new_call() -> DependencyGraph:
    """Return a call of 610 µs around thirty operators of 20 µs that differ in name, behind an operator."""
    parts = [op(f"part {i}", 1005 + 20 * i, 20) for i in range(30)]
    return load([step(1, 0, 1610), op("main", 0, 1000), op("outer", 1000, 610), *parts])


def test_times_and_effect_of_a_row_are_of_the_same() -> None:
    before = load([step(1, 0, 1000), op("main", 0, 1000)])
    for sides, sign in (((before, with_new_call()), 1), ((with_new_call(), before), -1)):
        found = hg.diff(*sides).effects()
        row = found.to_frame().iloc[0]
        assert (row["name"], row["whole"], row["change_us"]) == ("outer", True, 610 * sign)
        assert row["effect_us"] == pytest.approx(610 * sign)
        assert not found.to_frame()["name"].str.startswith("part").any()  # what lies inside has no rows of its own
        assert found.replayed([("outer", "op", True), ("outer", "op", False)]) == pytest.approx(610 * sign)


def test_the_own_time_of_a_loader_is_how_long_it_was_waited_for() -> None:
    """Its workers prepare the next batch meanwhile, and take longer than that."""
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

    def job(batch: int) -> DependencyGraph:
        marks = [step(i, batch * i, batch) for i in range(6)]
        waits = [annotation(name, batch * i, batch - 10_000) for i in range(6)]
        return load([*marks, *waits, *(op("aten::mul", batch * (i + 1) - 10_000, 10_000) for i in range(6))])

    result = between(job(40_000), job(20_000))
    row = next(each for each in result.to_frame().to_dict("records") if each["name"].startswith("enumerate"))
    assert (row["before_us"], row["after_us"]) == (30_000, 10_000)
    assert row["effect_us"] == pytest.approx(-20_000, rel=0.1)


def test_a_call_that_waits_for_many_kernels_takes_its_time_once() -> None:
    """A cudaFree after kernels of three streams has four edges of its length; it took 100 µs all the same."""

    def job(long: int) -> DependencyGraph:
        events = [op("aten::conv", 0, 300 + long), runtime("cudaFree", 150, long, correlation=99)]
        for stream in (7, 8, 9):
            events += [launch(10 * stream, 2, stream), kernel("k", 10 * stream + 5, 20, stream, stream=stream)]
        return load(events)

    rows = between(job(10), job(110)).to_frame()
    call = rows.loc[rows["name"] == "cudaFree", ["before_us", "after_us", "change_us"]]
    assert call.to_numpy().tolist() == [[10.0, 110.0, 100.0]]
