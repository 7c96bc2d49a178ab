from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.change import scenario_of, usual_us
from htagraph.findings.changes import changes_of
from htagraph.findings.plan import offers_of, plan_of
from htagraph.findings.results import Results
from htagraph.queries.weights import ChangeError
from tests.findings.test_start_up import starting
from tests.reach import DATA, DATASETS, JOBS, REAL, graph_of, label
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime, step


def test_a_plan_says_what_its_changes_save() -> None:
    plan = hg.plan(graph_of(DATA / "demo"))
    said = plan.sentences(["data/demo"])
    assert said[0].startswith("3 changes together save 3.27 ms per step (38 %; 90 %: ")
    assert "no waiting for the device in aten::item, 1.27 ms more" in said[0]
    assert said[0].endswith(" ".join(plan.options))
    assert said[1].startswith("Not in the set, as it mostly shortens the same time once more: a data loader")
    assert said[2].startswith("Changes with a known way come first. ")
    assert plan.interval_us[0] <= plan.saved_us <= plan.interval_us[1]


def test_one_change_is_said_in_the_singular() -> None:
    said = hg.plan(graph_of(DATA / "demo"), budget=1).sentences(["data/demo"])
    assert said[0].startswith("1 change saves 1.36 ms per step")
    assert "rank 2 as fast as its peers" in said[0]  # the simulated fault


@pytest.mark.parametrize("path", [*DATASETS, *(path for path in REAL if path.stat().st_size < 400_000)], ids=label)
def test_what_to_do_first_is_the_first_plan_and_no_plan_saves_less(path: Path) -> None:
    results = Results(graph_of(path))
    first = changes_of(results).first
    if first is None or first.change is None:
        return
    assert plan_of(results, 1).options == first.options
    assert first.gain is not None
    assert plan_of(results, 3).saved_us >= first.gain.per_step_us - 0.01


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_a_plan_prints_one_interval(path: Path) -> None:
    said = " ".join(hg.plan(graph_of(path)).sentences(["job"]))
    assert said.count("90 %") <= 1
    assert "speedup" not in said


def test_one_kernel_in_place_of_many_is_compared_with_other_changes() -> None:
    """A step of many small kernels of an optimizer, which one kernel replaces."""
    events: list[Json] = []
    for number in range(4):
        begin = 20_000 * number
        events += [step(number, begin, 20_000), annotation("Optimizer.step#SGD.step", begin + 10, 19_000)]
        for place in range(100):
            at = begin + 20 + 150 * place
            correlation = 1_000 * number + place + 1
            events += [op("aten::add_", at - 5, 20)]
            events += [launch(at, 10, correlation), kernel(COMPUTE, at + 15, 4, correlation)]
    plan = hg.plan(load(events))
    assert not plan.left_out
    said = " ".join(plan.sentences(["job"]))
    assert "the optimizer as one kernel" in said
    assert plan.titles["plan"].startswith("The best")
    assert any("--fuse" in each for each in plan.options)
    for is_more in (False, True):
        other = replace(plan, left_out=("other",), left_out_us=(plan.saved_us + (1.0 if is_more else -1.0),))
        assert ("more than these together" in " ".join(other.sentences(["job"]))) == is_more
        assert other.titles["plan"].startswith("The best") != is_more
        assert all(title.endswith(", per step") for title in other.titles.values())


def test_start_up_is_nothing_that_a_plan_saves() -> None:
    """Half of the job is a first call in `aten::empty`, 100 ms are its rest, and 200 ms another operator."""
    plan = hg.plan(load(starting()))
    saved = dict(zip(plan.changes["change"], plan.changes["adds_us"], strict=True))
    assert saved == pytest.approx(
        {"half the time of operator aten::mm": 100_000, "half the time of operator aten::empty": 25_000}, rel=0.01
    )
    assert plan.curve["saved_percent"].iloc[-1] <= 50
    assert plan.sentences(["x"])[0].startswith("Apart from start-up, 2 changes together save")


def test_each_number_of_changes_saves_more() -> None:
    curve = hg.plan(graph_of(DATA / "demo"), budget=16).curve
    assert curve["saved_us"].is_monotonic_increasing
    assert (curve["possible_us"] >= curve["saved_us"]).all()


@pytest.mark.parametrize("budget", [0, 17, 2.5, True, "3"])
def test_a_budget_is_a_whole_number(budget: int) -> None:
    with pytest.raises(ChangeError, match="whole number of changes from 1 to 16"):
        hg.plan(graph_of(DATA / "demo"), budget=budget)


def test_a_plan_claims_no_more_than_was_compared() -> None:
    """Faster code is put beside changes with a known way, so that a set of it may save more than the plan."""
    plan = hg.plan(graph_of(DATA / "demo"))
    known = [row for row in plan.proposed if row.is_known]
    assert 0 < len(known) < len(plan.proposed)
    assert any(sentence.startswith("Changes with a known way come first") for sentence in plan.sentences(["x"]))
    several = replace(plan, proposed=tuple(known), among_known=len(known), budget=len(known))
    assert any(f"These are all {len(known)} for which a way is known" in text for text in several.sentences(["x"]))
    fewer = replace(several, among_known=len(known) + 1)
    assert any(f"of the {len(known) + 1} for which a way is known save more" in text for text in fewer.sentences(["x"]))
    alike = replace(plan, among_known=0)
    assert any(text.startswith("No other 3 changes of the ") for text in alike.sentences(["x"]))


def test_a_plan_names_what_shortens_the_same_time_once_more() -> None:
    """Half of an operator and half of one of its kernels are partly one time: half of that half was not compared."""
    events: list[Json] = []
    for number in range(1, 9):
        events += [op("aten::mm", 10 * number, 8), launch(10 * number + 1, 2, number)]
        events += [launch(10 * number + 4, 2, 100 + number)]
        events += [kernel("long_kernel", 2000 * number, 1000, number)]
        events += [kernel("short_kernel", 2000 * number + 1000, 1000, 100 + number)]
    plan = hg.plan(load(events))
    assert plan.changes["change"].tolist() == ["half the time of operator aten::mm"]
    assert sorted(plan.meeting) == ["half the time of kernel long_kernel", "half the time of kernel short_kernel"]
    said = plan.sentences(["x"])
    assert any(text.startswith("Not in the set, as they mostly shorten the same time once more: ") for text in said)


@pytest.mark.parametrize("path", [*DATASETS, *(path for path in REAL if path.stat().st_size < 400_000)], ids=label)
def test_no_plan_leaves_out_a_change_that_adds_more_than_it_says(path: Path) -> None:
    """Of what is neither in the plan nor said to shorten the same time, nothing adds a digit of the report."""
    plan = hg.plan(graph_of(path))
    if plan.how != "optimal" or len(plan.changes) in {0, plan.budget}:
        return
    said = {*plan.changes["change"], *plan.meeting, *plan.left_out}
    for offer in offers_of(Results(graph_of(path))):
        if offer.name in said:
            continue
        scenario = scenario_of(plan.outcome.baseline, (*plan.options, *offer.options))
        further_us = usual_us(scenario.run()) - usual_us(plan.outcome)
        assert 100 * further_us <= plan.outcome.baseline_ns / 1000, offer.name


def pausing(pause_us: int) -> dict[int, list[Json]]:
    """Return two ranks, of which one does something that is not recorded before each of its collectives."""
    job: dict[int, list[Json]] = {}
    for rank, own_us in enumerate((0, pause_us)):
        events: list[Json] = []
        for number in range(6):
            begin = (650 + pause_us) * number
            at = begin + 500 + own_us
            talk = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 20, pause_us - own_us + 100, number + 1, 20)
            talk["args"] |= {"In msg nelems": 1000, "dtype": "Float", "Collective name": "allreduce"}
            talk["args"] |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
            events += [step(number, begin, 650 + pause_us), op("aten::mm", begin + 5, 460)]
            events += [op("aten::add", at - 30, 20), launch(at, 5, number + 1), talk]
            events += [runtime("cudaDeviceSynchronize", at + 10, pause_us - own_us + 115)]
        job[rank] = events
    return job


def test_time_that_the_plan_takes_away_is_not_said_to_have_no_change() -> None:
    """A rank as fast as its peers has no pause any more."""
    plan = hg.plan(load(pausing(20_000)))
    assert "rank 1 as fast as its peers" in set(plan.changes["change"])
    assert not any("without any event" in text for text in plan.sentences(["x"]))
    alone = replace(plan, unknown_us=5.0)
    assert any(text.startswith("No further change is known for ") for text in alone.sentences(["x"]))


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_command_makes_the_changes_in_the_order_of_the_plan(path: Path) -> None:
    plan = hg.plan(graph_of(path))
    assert plan.options == tuple(word for options in plan.changes["options"] for word in shlex.split(options))


def test_an_operator_that_is_mostly_transfers_is_no_code_to_make_faster() -> None:
    """The all-reduce runs inside a node of autograd, which takes no time of its own."""
    names = hg.changes(graph_of(DATA / "demo")).to_frame()["change"]
    assert not names.str.contains("AccumulateGrad").any()
    assert names.str.contains("transfers of process group").any()
