"""The panel predicts in the page what `hg.what_if` predicts, in a real browser; names in it do nothing."""

from __future__ import annotations

import base64
import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.findings.change import scenario_of
from htagraph.output.html.page import Section, page, script_of
from htagraph.output.html.what_if_panel import SCRIPTS, sliders, starts, what_if_section
from htagraph.whatif.options import CHANGES
from htagraph.whatif.outcome import Outcome
from tests.output.html.browsed import browsed
from tests.reach import DATA, graph_of
from tests.strategies import kernel, launch, load, op, step
from tests.test_house import ODD_JOBS

DRAWS = 12
HOSTILE = "</script><img src=x onerror=alert(1)>'\"$(id)\n\u202e" + "a" * 10_000


def section_of(graph: hg.DependencyGraph) -> Section:
    return what_if_section(graph, ["my job's traces"], hg.opportunities(graph))


def opened(text: bytes, folder: Path, script: str, argument: Any) -> Any:
    """Open a page with a panel, in which nothing may be said, and return what a function in it gives."""
    path = folder / "panel.html"
    path.write_bytes(text)
    with browsed(path, ready=".what-if", viewport={"width": 700, "height": 900}) as seen:
        result = seen.page.evaluate(script, argument)
        assert seen.said == []
    return result


def outcome_of(graph: hg.DependencyGraph, command: str) -> Outcome:
    """Return the prediction of a command that the panel shows."""
    words = shlex.split(command)
    assert words[:3] == ["htagraph", "what-if", "my job's traces"]
    scenario, rest = hg.what_if(graph), words[3:]
    while rest:
        form = CHANGES[rest[0].removeprefix("--")]
        value, rest = (rest[1], rest[2:]) if form.value == "required" else ("", rest[1:])
        scenario = form.read(value).apply(scenario)
    return scenario.run()


PREDICT = """async ([header, data, draws]) => {
  %s
  const panel = panelOf(JSON.parse(header), Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));
  const found = [];
  for (const [start, factors] of draws) {
    const job = await panel.jobOf(start);
    const { makespan, step, low, high } = answerOf(panel, job, factors);
    const path = pathTimes(panel, job, factors);
    const sums = [path.categories, path.byRank].map((each) => [...each.values()].reduce((sum, ns) => sum + ns, 0));
    found.push({ makespan, step, low, high, sums, command: commandOf(panel, job, factors) });
  }
  return found;
}"""


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
def test_the_page_predicts_what_the_command_does(job: str, tmp_path: Path) -> None:
    graph = graph_of(DATA / job)
    section = section_of(graph)
    header = json.loads(section.payload["what-if-header"])
    generator = random.Random(job)
    factors = [0, 0.25, 0.5, 0.63, 1, 1, 1, 1, 1.3, 2]
    draws = [
        [generator.randrange(len(header["jobs"])), [generator.choice(factors) for _ in header["classes"]]]
        for _ in range(DRAWS)
    ]
    inner = script_of(["page.js", *SCRIPTS]).removeprefix('"use strict";(() => {').removesuffix("})();\n")
    argument = [
        section.payload["what-if-header"].decode(), base64.b64encode(section.payload["what-if-data"]).decode(), draws,
    ]  # fmt: skip
    found = opened(page("A job", [section]), tmp_path, PREDICT % inner, argument)
    assert any("--scale" in each["command"] for each in found)
    for each in found:
        outcome = outcome_of(graph, each["command"])
        expected = outcome.makespan_ns, outcome.step_ns, outcome.low, outcome.high
        assert [each[name] for name in ("makespan", "step", "low", "high")] == pytest.approx(expected, rel=1e-3)
        assert each["sums"] == pytest.approx([each["makespan"]] * 2, rel=1e-6)


MOVE = """async () => {
  const slider = document.querySelector(".lever input");
  slider.value = 50;
  slider.dispatchEvent(new Event("input"));
  await new Promise((done) => setTimeout(done, 300));
  const texts = Object.fromEntries(["answer", "command", "curve", "steps", "path"].map(
    (name) => [name, document.querySelector(`.what-if .${name}`).textContent]));
  document.querySelector(".lever button").click();
  await new Promise((done) => setTimeout(done, 300));
  const { scrollWidth } = document.documentElement;
  return { ...texts, reset: document.querySelector(".what-if .command").textContent, scrollWidth };
}"""


def test_a_slider_shows_its_answer_and_its_command(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    seen = opened(page("A job", [section_of(graph)]), tmp_path, MOVE, None)
    outcome = hg.what_if(graph).scale(kind="computation", factor=0.5).run()
    assert f"{outcome.speedup:.3f} × as fast (90 %: {outcome.low:.3f} to {outcome.high:.3f})" in seen["answer"]
    assert seen["command"].endswith("""htagraph what-if 'my job'"'"'s traces' --scale kind=computation:0.5""")
    assert "All kernels" in seen["curve"]
    assert "step 5" in seen["steps"]
    assert "rank 2" in seen["path"]
    assert seen["reset"] == ""
    assert seen["scrollWidth"] <= 700


def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    events = [step(1, 0, 4000), op(HOSTILE, 10, 100), launch(20, 5, 1), kernel(HOSTILE, 40, 3000, 1)]
    graph = load({0: events, 1: events})
    section = section_of(graph)
    assert "<img" not in section.body
    seen = opened(page("A job", [section]), tmp_path, MOVE, None)
    outcome = outcome_of(graph, seen["command"].partition(":")[2])
    assert outcome.makespan_ns < outcome.baseline_ns


@pytest.mark.parametrize("job", sorted(ODD_JOBS))
def test_odd_jobs_have_a_panel_or_say_why_not(job: str) -> None:
    section = section_of(ODD_JOBS[job]())
    assert ("critical path" in section.body) or section.payload
    assert bool(section.payload) == ('data-key="what-if"' in section.body)


def test_the_option_of_a_slider_selects_its_time() -> None:
    graph = graph_of(DATA / "demo")
    found = sliders(graph, hg.opportunities(graph))
    assert [each.name for each in found][:2] == ["All kernels", "GEMM kernels"]
    for slider in found:
        option, which = slider.option
        by_option = CHANGES[option.removeprefix("--")].read(f"{which}0.5").apply(hg.what_if(graph)).run()
        assert by_option.makespan_ns == hg.what_if(graph).scale(factor=0.5, **slider.criteria).run().makespan_ns


def test_no_two_sliders_are_the_same_time_and_no_work_has_none() -> None:
    graph = graph_of(DATA / "demo")
    names = [each.name for each in sliders(graph, hg.opportunities(graph, top=20))]
    assert len(names) == len(set(names))
    assert not any(name.startswith("group") for name in names)  # all transfers are one group
    nothing = load([])
    assert sliders(nothing, hg.opportunities(nothing)) == []


def test_a_start_is_what_its_option_makes() -> None:
    graph = graph_of(DATA / "demo")
    first, *others = starts(graph, hg.changes(graph))
    assert first.option == ()
    assert ("--free-dataloader",) in [each.option for each in others]
    assert ("--remove-sync=op=aten::item",) in [each.option for each in others]  # where the host waits longest
    for start in others:
        expected = scenario_of(graph, start.option)
        assert (start.state.lag == expected.state.lag).all()


def test_the_starts_are_the_list_of_changes_and_then_the_usual_ones() -> None:
    graph = graph_of(DATA / "demo")
    known = [row.options for row in hg.changes(graph) if row.is_known and row.options]
    _, *others = starts(graph, hg.changes(graph))
    assert [start.option for start in others][: len(known)] == known[:5]
    assert len({start.option for start in others}) == len(others)
