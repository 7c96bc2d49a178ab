"""``htagraph what-if --sweep``."""

from __future__ import annotations

import json
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.reports.changes import by_step, sweep_report
from htagraph.whatif.options import CHANGES, read_sweep
from tests.reach import DATA, REPOSITORY, graph_of

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


def test_times_of_steps_add_up_to_the_time_of_all_steps_also_where_steps_overlap() -> None:
    after = hg.what_if(graph_of(DATA / "demo")).fix_straggler(rank="auto").remove_sync(op="aten::item").run()
    times = after.step_times()
    table = by_step(times)
    for end, start, column in (
        ("end_us", "start_us", "recorded_us"),
        ("predicted_end_us", "predicted_start_us", "predicted_us"),
    ):
        assert table[column].sum() == pytest.approx(times[end].max() - times[start].min())
    assert (table["speedup"] > 1).all()


def test_twice_as_fast_and_twice_as_long_are_opposites_for_every_factor() -> None:
    for option in ("network", "host-factor"):
        assert CHANGES[option].read("2x").options["factor"] == 0.5
        assert CHANGES[option].read("2").options["factor"] == 2.0
    assert CHANGES["scale"].read("op=aten::mm:2x").options == {"factor": 0.5, "op": "aten::mm"}
