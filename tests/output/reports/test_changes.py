"""``htagraph what-if --sweep``."""

from __future__ import annotations

import json
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.reports.changes import by_step, sweep_report
from htagraph.whatif.options import CHANGES, read_sweep
from tests.reach import DATA, REPOSITORY, graph_of
from tests.strategies import load, op, step

DEMO = str(REPOSITORY / "data" / "demo")


def test_a_row_is_what_the_command_predicts_for_that_factor(run: Any) -> None:
    swept = json.loads(run("what-if", DEMO, "--sweep", "network=0.5,1", "-f", "json").out)["results"]["sweep"]
    alone = json.loads(run("what-if", DEMO, "--network", "0.5", "-f", "json").out)["results"]["prediction"][0]
    assert swept[0]["mean_step_us"] == alone["predicted_step_us"]
    assert (swept[0]["low"], swept[0]["high"]) == (alone["low"], alone["high"])
    assert (swept[1]["speedup"], swept[1]["saved_us"]) == (1.0, 0.0)


def test_changes_come_before_every_factor() -> None:
    graph = graph_of(DATA / "demo")
    change = CHANGES["scale"].read("kind=computation:0.5")
    both = sweep_report(graph, read_sweep("network=1,2"), [change], ["--scale kind=computation:0.5"])
    alone = sweep_report(graph, read_sweep("network=1,2"))
    assert both.tables["sweep"]["makespan_us"][0] < alone.tables["sweep"]["makespan_us"][0]
    assert "after --scale kind=computation:0.5" in both.sentences[0]


def test_the_shortest_step_is_that_of_the_table() -> None:
    report = sweep_report(graph_of(DATA / "demo"), read_sweep("network=0,1,2"))
    step = (report.tables["sweep"]["mean_step_us"] / 1000).tolist()
    assert report.sentences[1].startswith(f"The shortest step takes {min(step):.2f} ms at 0;")


@pytest.mark.parametrize("text", ["network", "network=2..1", "size=1..2"])
def test_what_is_no_sweep_is_wrong_usage(text: str, run: Any) -> None:
    assert run("what-if", DEMO, "--sweep", text).code == 2


def test_the_usual_steps_of_the_table_are_on_average_the_usual_step_of_the_answer() -> None:
    for job in ("demo", "gloo_ddp"):
        after = hg.what_if(graph_of(DATA / job)).fix_straggler(rank="auto").run()
        table = by_step(after)
        usual = table[table["usual"]]
        assert usual["recorded_us"].mean() == pytest.approx(after.baseline_step_ns / 1000)
        assert usual["predicted_us"].mean() == pytest.approx(after.step_ns / 1000, rel=0.01)


def test_steps_without_usual_ones_are_one_after_the_other() -> None:
    steps = [step(number, 100 * number, 100) for number in range(2)]
    after = hg.what_if(load([*steps, op("aten::mm", 10, 50), op("aten::mm", 110, 50)])).run()
    assert "usual" not in by_step(after) or by_step(after)["usual"].any()


def test_twice_as_fast_and_twice_as_long_are_opposites_for_every_factor() -> None:
    for option in ("network", "host-factor"):
        assert CHANGES[option].read("2x").options["factor"] == 0.5
        assert CHANGES[option].read("2").options["factor"] == 2.0
    assert CHANGES["scale"].read("op=aten::mm:2x").options == {"factor": 0.5, "op": "aten::mm"}
