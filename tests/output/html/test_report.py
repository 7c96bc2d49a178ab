"""The report as a whole: in a real browser, with hostile names, without scripts, on odd jobs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.findings.finding import Claim, Evidence, Place
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.verdict import stated
from htagraph.output.html.page import text
from htagraph.output.html.report import (
    PageResults,
    breakdown_section,
    collective_section,
    comparison_bytes,
    evidence_of,
    findings_section,
    glance_section,
    memory_section,
    steps_of_change,
    timeline_section,
)
from htagraph.output.html.timeline import timeline_of
from tests.output.html.browsed import browsed
from tests.reach import DATA, DATASETS, graph_of, label
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load, op, step
from tests.test_house import ODD_JOBS
from tests.trace.profiler_files.made import allocation

HOSTILE = [
    "</script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "<!--<script>", "a" * 10_000,
    "\u202eevil\u2066", "שלום عربي", "nul\0 bell\a esc\x1b[31m", "\ud800 lone", "{{7*7}}${7}`", "&lt;b&gt;&amp;",
    "]]>", "javascript:alert(3)", "\u2028\u2029",
]  # fmt: skip


def hostile_job() -> hg.DependencyGraph:
    """Return a job of two ranks whose names are all hostile."""
    events: list[Any] = [step(1, 0, 4000)]
    for number, name in enumerate(HOSTILE):
        at = 10 + 200 * number
        events += [op(name, at, 100), launch(at + 10, 5, number + 1), kernel(name, at + 20, 150, number + 1)]
    events += [launch(3000, 5, 99), kernel(f"{COMMUNICATE}<b>", 3010, 500, 99)]
    return load({0: events, 1: events})


def write(graph: hg.DependencyGraph, folder: Path) -> Path:
    return hg.report(graph, folder / "job.html")


@pytest.mark.slow
def test_a_page_opens_without_a_word_and_asks_for_nothing(tmp_path: Path) -> None:
    path = write(graph_of(DATA / "demo"), tmp_path)
    with browsed(path, viewport={"width": 700, "height": 900}) as seen:
        assert seen.said == []
        page = seen.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 700
        assert page.locator("section").count() == 6
        drawn = page.evaluate(
            "(() => { const c = document.querySelector('canvas');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "return new Set(new Uint32Array(d.buffer)).size; })()"
        )
        assert drawn > 20


@pytest.mark.slow
def test_links_select_the_activity_that_they_name(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    with browsed(write(graph, tmp_path), fragment="#on=job&event=1205") as seen:
        assert seen.said == []
        shown = seen.page.locator(".selected").inner_text()
        assert graph.names[graph.activities.name[1205]] in shown
        start = int(graph.time[2410]) - graph.origin_ns
        assert f"{start // 1000:,}.{start % 1000:03d} µs" in shown
        assert "4 members" in shown


@pytest.mark.slow
def test_links_of_findings_zoom_there_and_work_twice(tmp_path: Path) -> None:
    with browsed(write(graph_of(DATA / "demo"), tmp_path), reduced_motion="reduce") as seen:
        page = seen.page
        whole = page.locator(".range").inner_text()
        link = page.locator("#findings a", has_text="In the timeline").nth(4)
        for _ in range(2):  # the second time, the page's address does not change
            link.click()
            page.wait_for_timeout(100)
            assert page.evaluate("document.querySelector('.stage').getBoundingClientRect().top < innerHeight")
            assert page.locator(".range").inner_text() != whole
            page.locator(".whole").click()
            page.evaluate("scrollTo(0, 0)")
        assert seen.said == []


@pytest.mark.slow
def test_keys_select_and_zoom(tmp_path: Path) -> None:
    with browsed(write(graph_of(DATA / "demo"), tmp_path)) as seen:
        page = seen.page
        page.focus("canvas")
        names, ranges = [], [page.locator(".range").inner_text()]
        for key in (".", ".", ",", "f", "d", "ArrowLeft", "w", "s"):
            page.keyboard.press(key)
            page.wait_for_timeout(60)
            names.append(page.locator(".selected").inner_text())
            ranges.append(page.locator(".range").inner_text())
        assert names[0] == names[2] != names[1]
        assert len(set(ranges[3:])) > 3
        assert ranges[6] == ranges[4]  # to the right, and back to the left
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.className") == "find"
        assert seen.said == []


@pytest.mark.slow
def test_a_finding_is_tried_on_the_page(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    with browsed(write(graph, tmp_path)) as seen:
        page = seen.page
        links = page.locator("a.trial:visible")
        for number in range(links.count()):
            option, *value = json.loads(links.nth(number).get_attribute("data-trial"))
            links.nth(number).click()
            page.wait_for_timeout(300)
            assert page.locator(".what-if .command code").inner_text().endswith(" ".join([option, *value]))
        assert links.count() == 4
        assert seen.said == []


@pytest.mark.slow
def test_on_paper_all_of_a_table_is_shown_and_nothing_to_click(tmp_path: Path) -> None:
    options: dict[str, Any] = {"viewport": {"width": 700, "height": 900}, "color_scheme": "dark"}
    with browsed(write(graph_of(DATA / "demo"), tmp_path), **options) as seen:
        page = seen.page
        page.emulate_media(media="print")
        for hidden in (".controls", "nav", "th.show", ".lever", "a.trial"):
            assert not page.locator(hidden).first.is_visible(), hidden
        assert page.evaluate("document.documentElement.scrollWidth") <= 700
        corner = (
            "(() => { const c = document.querySelector('canvas'); const x = c.getContext('2d');"
            "return [...x.getImageData(c.width - 2, c.height - 2, 1, 1).data]; })()"
        )
        assert page.evaluate(corner) == [255, 255, 255, 255]  # paper is white, in the dark too


@pytest.mark.slow
def test_search_counts_and_goes_to_the_next(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    acts = graph.activities
    count = sum("nccl" in graph.names[name].lower() for name in acts.name[acts.lane >= 0].tolist())
    with browsed(write(graph, tmp_path)) as seen:
        seen.page.fill(".find", "NCCL")
        assert f"{count} found" in seen.page.locator(".found").inner_text()
        seen.page.press(".find", "Enter")
        assert "nccl" in seen.page.locator(".selected h4").inner_text()
        assert "event=" in seen.page.evaluate("location.hash")


@pytest.mark.slow
def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    path = write(hostile_job(), tmp_path)
    with browsed(path, viewport={"width": 700, "height": 900}) as seen:
        page = seen.page
        page.fill(".find", "script")
        for _ in range(3):
            page.press(".find", "Enter")
        page.mouse.move(350, 450)
        assert seen.said == []
        assert page.evaluate("document.scripts.length") == 5  # the four payloads and the page's own
        assert page.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 700
        assert "<script>alert(1)" in page.locator(".selected h4").inner_text()


@pytest.mark.slow
def test_without_scripts_findings_tables_and_charts_are_there(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    with browsed(write(graph, tmp_path), scripts=False) as seen:
        assert seen.said == []
        for sentence in hg.summarize(graph).verdict:
            assert seen.page.get_by_text(sentence).count() == 1
        assert seen.page.locator("figure.chart").first.is_visible()
        assert seen.page.get_by_text("The timeline needs scripts").is_visible()


@pytest.mark.parametrize("name", ODD_JOBS)
def test_odd_jobs_have_a_page(name: str, tmp_path: Path) -> None:
    path = write(ODD_JOBS[name](), tmp_path)
    assert b"Findings" in path.read_bytes()
    if name == "no events":
        with browsed(path) as seen:
            assert seen.said == []


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        hg.report(ODD_JOBS["host only"](), tmp_path / "absent" / "job.html")


@pytest.mark.slow
def test_the_same_job_gives_the_same_page(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    pages = [hg.report(graph, tmp_path / f"{i}.html").read_bytes() for i in range(2)]
    assert pages[0] == pages[1]
    header = pages[0].split(b'id="job-header">')[1].split(b"<")[0]
    import base64

    assert json.loads(base64.b64decode(header))["lanes"]


def job(length: int) -> hg.DependencyGraph:
    events = [step(n, 1000 * n, 900 + length) for n in range(3)]
    for n in range(3):
        events += [op("aten::mm", 1000 * n + 10, 50), launch(1000 * n + 20, 5, n + 1)]
        events += [kernel(COMPUTE, 1000 * n + 40, 300 + length, n + 1)]
    return load(events)


@pytest.mark.parametrize(("before", "after"), [(0, 60), (60, 0), (0, 0)])
def test_the_steps_of_a_waterfall_sum_to_the_change(before: int, after: int) -> None:
    diff = hg.diff(job(before), job(after))
    assert sum(us for _, us in steps_of_change(diff)) == pytest.approx(diff.change_us, abs=1e-6)


@pytest.mark.slow
def test_sentences_are_those_of_the_diff() -> None:
    diff = hg.diff(job(0), job(60))
    page = comparison_bytes(diff, ["a", "b"]).decode()
    for sentence in diff.sentences():
        assert text(sentence) in page
    assert "htagraph diff a b" in page


@pytest.mark.slow
def test_both_timelines_are_there(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    path = hg.report(hg.diff(graph, graph), tmp_path / "diff.html")
    with browsed(path, fragment="#on=after&event=1205") as seen:
        seen.page.wait_for_function("document.querySelectorAll('.timeline[data-ready]').length === 2")
        seen.page.wait_for_timeout(200)
        assert seen.said == []
        chosen = seen.page.locator(".selected").all_inner_texts()
        assert "Nothing is selected" in chosen[0]
        assert graph.names[graph.activities.name[1205]] in chosen[1]


def test_the_job_at_a_glance_says_what_was_read() -> None:
    body = glance_section(PageResults(graph_of(DATA / "demo"), ["x"])).body
    for words in ("<b>4</b><span>ranks read", "NVIDIA A100", "<b>3</b><span>steps", "15,492"):
        assert words in body


def test_of_many_ranks_those_with_the_longest_steps_are_shown() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["x"])
    steps = results.summary.tables["steps"]
    results.summary.tables["steps"] = pd.concat(
        [steps.iloc[:1].assign(rank=rank, median_us=100.0 * rank) for rank in range(64)], ignore_index=True
    )
    body = glance_section(results).body
    assert "The 16 with the largest median of 64 ranks" in body
    shown = re.findall(r'<td class="number">(\d+)</td><td class="number">3</td>', body)
    assert shown == [str(rank) for rank in range(63, 47, -1)]


def test_breakdowns_have_definitions() -> None:
    body = breakdown_section(PageResults(graph_of(DATA / "demo"), ["x"])).body
    assert body.count("What these numbers mean") == body.count("<h3>") > 0


def test_a_job_that_does_not_communicate_has_no_section_of_collectives() -> None:
    assert collective_section(PageResults(load([op("a", 0, 5)]), ["x"])) is None
    assert collective_section(PageResults(graph_of(DATA / "demo"), ["x"])) is not None


def test_memory_is_there_if_it_was_recorded() -> None:
    assert memory_section(PageResults(graph_of(DATA / "demo"), ["x"])) is None
    graph = load([op("a", 0, 50), allocation(5, 2_000_000, 2_000_000), allocation(9, -2_000_000, 0)])
    section = memory_section(PageResults(graph, ["x"]))
    assert section is not None
    assert "at most 2.0 MB in use" in section.body


def test_each_timeline_has_its_place_and_its_payload() -> None:
    timeline = timeline_of(hg.critical_path(load([op("a", 0, 1)])))
    section = timeline_section({"before": ("Before", timeline), "after": ("After", timeline)})
    assert list(section.payload) == ["before-header", "before-data", "after-header", "after-data"]
    assert section.body.count("<canvas") == 2
    assert 'data-key="before"' in section.body


def test_what_is_left_out_is_said() -> None:
    timeline = timeline_of(hg.critical_path(load([op("x" * 2000, 0, 1)])))
    assert "without their middle" in timeline_section({"job": ("", timeline)}).body


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_findings_are_the_verdict_with_commands_and_addresses(path: Path) -> None:
    results = PageResults(graph_of(path), [str(path)])
    body = findings_section(results).body
    places = [body.index(f"<p>{text(sentence)}</p>") for sentence in results.summary.verdict]
    assert places == sorted(places)
    assert all(shlex.split(command)[0] == "htagraph" for command in re.findall(r"<code>([^<]*)</code>", body))
    for address in re.findall(r'href="(#on=[^"]*)"', body):
        numbers = {key: int(number) for key, number in re.findall(r"(event|from|to)=(-?\d+)", address)}
        assert 0 <= numbers.get("event", 0) < len(results.graph.activities)
        assert -1 <= numbers.get("from", 0) <= numbers.get("to", 0) <= 1000 * results.summary.window_us + 1


def test_what_has_only_activities_leads_to_the_first_of_them() -> None:
    results = PageResults(graph_of(DATASETS[0]), ["job"])
    for finding, claims in stated(results.summary.claims):
        evidence = evidence_of(results, finding, claims)
        assert bool(evidence.place) == bool(evidence.look and results.address(evidence.place))
    none = Claim("ranks_missing", "", 1.0, "count")
    assert evidence_of(results, RANKS_MISSING, [none]) == Evidence()
    known = Claim("ranks_missing", "", 1.0, "count", rows=(7,))
    assert evidence_of(results, RANKS_MISSING, [known]).place == Place(7)


def test_the_summary_is_made_of_the_same_results() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["data/demo"])
    assert results.summary is results.summary
    assert results.summary.tables["interruptions"] is results.interruptions


def test_addresses_name_the_timeline_and_nanoseconds() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["x"], "before")
    assert results.address(Place(7)) == "#on=before&event=7"
    assert results.address(Place(3, 1.5, 2.0)) == "#on=before&from=1500&to=2000&event=3"
    assert results.address(None) == ""


@pytest.mark.slow
def test_a_selected_kernel_says_what_it_waited_for_and_leads_there_and_back(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    kernel = int(graph.select(kind="kernel", rank=0).activities[1])
    binding = graph.predecessors(kernel).query("moment == 'start' and binds").iloc[0]
    with browsed(write(graph, tmp_path), fragment=f"#on=job&event={kernel}", reduced_motion="reduce") as seen:
        page = seen.page
        assert binding["edge"] in page.locator(".known dd").first.inner_text()
        page.locator(".known button").first.click()
        assert f"event={binding['other_activity']}&" in page.evaluate("location.hash")
        page.go_back()
        page.wait_for_timeout(100)
        assert f"event={kernel}" in page.evaluate("location.hash")
        assert seen.said == []


@pytest.mark.slow
def test_an_address_opens_the_view_that_it_was_taken_from(tmp_path: Path) -> None:
    path = write(graph_of(DATA / "demo"), tmp_path)
    view = "#on=job&from=12600600&to=15289225&event=6394&pin=0.5&order=busy&area=13000000.14000000.0-1&view=1"
    with browsed(path, fragment=view, viewport={"width": 900, "height": 900}) as seen:
        page = seen.page
        page.wait_for_timeout(600)
        assert re.sub(r"&down=\d+", "", page.evaluate("location.hash")) == view
        assert "2 streams and threads" in page.locator(".area h4").inner_text()
        page.focus("canvas")
        page.keyboard.press("Escape")
        assert not page.locator(".area").is_visible()
        page.keyboard.press("Escape")
        assert "Nothing is selected" in page.locator(".selected").inner_text()
        assert seen.said == []
