"""Whether a prediction has both times, its direction and what bounds the job then."""

from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph.findings.verbs.what_if import path_note, sentences, stays_note, sweep_sentences
from htagraph.output.reports.changes import what_if_report
from htagraph.queries.path_segments import Batches, Bound
from htagraph.whatif.asked import asked_text
from htagraph.whatif.options import CHANGES
from tests.reach import DATA, graph_of
from tests.strategies import load, op


def bound(cause: str) -> Bound:
    share = {cause: 80.0}
    return Bound(cause, share, share, ranks={0: 100.0}, by_workers=False, batches=Batches(0, 0), unexplained={})


def test_slower_and_faster_are_told_apart() -> None:
    scenario = hg.what_if(graph_of(DATA / "demo"))
    slower, faster = (scenario.scale(kind="computation", factor=factor).run() for factor in (2, 0.5))
    before, now = bound("computation"), bound("communication")
    assert "times as long" in sentences(slower, before, now)[0]
    assert "times as fast" in sentences(faster, before, now)[0]
    assert sentences(faster, before, now)[2] == (
        "The largest part of the critical path would be transfers between ranks (80 % instead of 0 %), no longer "
        "computation (0 % instead of 80 %)."
    )
    assert "takes as long" not in sentences(faster, before, now)[0]
    assert "as long as before" in sentences(scenario.run(), before, now)[0]
    assert ", a usual step " in sentences(faster, before, now)[0]
    assert sentences(faster, before, before)[2].startswith(
        "The largest part of the critical path would still be computation: 80 %, as before"
    )


def test_the_answer_begins_with_the_changes_in_words() -> None:
    after = hg.what_if(graph_of(DATA / "demo")).network("2x").run()
    before = bound("computation")
    asked = asked_text(CHANGES["network"].read("2x"), "--network 2x")
    assert sentences(after, before, before, texts=[asked])[0].startswith(
        "With transfers twice as fast (--network 2x), the job would take "
    )
    assert sentences(after, before, before, texts=[asked] * 3)[0].startswith("With these changes, the job would take ")


def test_where_nearly_nothing_is_left_no_ratio_is_said() -> None:
    graph = load([op("aten::mm", 0, 1_000), op("aten::relu", 1_000, 0.5)])
    after = hg.what_if(graph).scale(factor=0, name="aten::mm").run()
    assert sentences(after, bound("host"), bound("host"))[0] == (
        "The job would take 500 ns instead of 1.00 ms: nearly no time."
    )


def test_points_and_the_shortest_step_are_said() -> None:
    table = pd.DataFrame({"factor": [2.0, 0.5, 1.0], "mean_step_us": [20.0, 9.0, 10.0]})
    assert sweep_sentences(table, "network", 10.0) == [
        "Tried: 3 factors from 0.5 to 2 for network, each replayed.",
        "The shortest step takes 9.0 µs at 0.5; recorded: 10.0 µs.",
    ]


def test_more_ranks_are_told_as_samples_per_second() -> None:
    scenario, computes = hg.what_if(graph_of(DATA / "demo")), bound("computation")
    for more, samples in (({"n": 16}, 4), ({"n": 16, "strong": True}, 1)):
        after = scenario.scale_ranks(**more).run()  # type: ignore[call-overload] # n or strong
        done = f"With 4 times the ranks, {samples * after.speedup:.2f} times the samples per second"
        efficiency = f"{100 * samples * after.speedup / 4:.0f} % efficiency"
        found = sentences(after, computes, computes)[1]
        assert found.startswith(f"{done} (90 %: {samples * after.low:.2f} to {samples * after.high:.2f}): {efficiency}")


def test_one_interval_is_told_the_wider_one() -> None:
    """Two steps that differ much: another run may save much more or less than this one."""
    outcome = hg.what_if(graph_of(DATA / "gloo_ddp")).network("2x").run()
    report = what_if_report([outcome], ["--network 2x"])
    assert outcome.doubts
    assert " ".join(report.sentences).count("(90 %") == 1


def test_a_kernel_that_is_not_changed_is_told_where_the_path_holds_another_part_of_it() -> None:
    graph = graph_of(DATA / "demo")
    slower = hg.what_if(graph).network("2").run()
    paths = hg.critical_path(graph), slower.critical_path()
    assert "takes as long as before, but another part of it is on the path" in path_note(*paths)
    assert not path_note(paths[0], paths[0])


def test_waits_that_stay_are_named_with_their_options() -> None:
    after = hg.what_if(graph_of(DATA / "demo")).infinite_host().run()
    assert "--free-dataloader" in stays_note(after.critical_path())
