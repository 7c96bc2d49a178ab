"""A comment for a pull request is true, short and made of data that cannot act; a job must not become slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph import assert_no_slower
from htagraph.analyses.differences.step_change import StepChange, change_of_runs
from htagraph.output.regressions import comment, plain
from htagraph.simulate import Job, ScaleKernels, simulate
from tests.reach import REPOSITORY, graph_of

DEMO = graph_of(REPOSITORY / "data" / "demo")
SLOWER = StepChange(100.0, 110.0, 10.0, 2.0, (1, 1), (9, 9))


def test_it_has_a_verdict_a_table_a_figure_and_the_causes() -> None:
    result = hg.diff(DEMO, DEMO, steps=[5], steps_after=[6])
    text = comment(result, SLOWER, ["step_time>+5%"], limits=["step_time>+5%"])
    first, *_ = text.splitlines()
    assert first == "### ❌ Slower than allowed: +10.0 % ± 2.0 % (step\\_time&gt;+5%)"
    assert "| **step time** | 100.0 µs | 110.0 µs | **+10.0 % ± 2.0 %** |" in text
    assert text.count("```") == 2
    assert "allowed: host " in comment(result, SLOWER, ["host>+1us"]), "what the limit is about"
    assert plain(result.sentences()[0]) in text


def test_the_longest_bar_is_that_of_the_largest_change() -> None:
    result = hg.diff(DEMO, DEMO, steps=[5], steps_after=[6])
    rows = result.summary().query("group == 'category'").set_index("key")["change_us"].abs()
    bars = {line[:15].strip(): line.count("█") + line.count("░") for line in comment(result, SLOWER, []).splitlines()}
    bars = {key: length for key, length in bars.items() if length}
    assert max(bars, key=lambda key: bars[key]) == rows.idxmax()
    assert max(bars.values()) == 24


def test_no_change_is_said_to_be_none() -> None:
    result = hg.diff(DEMO, DEMO)
    text = comment(result, change_of_runs(result, [DEMO], [DEMO]), [], limits=["step_time>+5%"])
    assert text.startswith("### ⚪ No change beyond noise, within the limits: +0.0 %")


def test_names_neither_notify_nor_link_nor_format() -> None:
    evil = "@octocat fixes #12 <img src=x> [a](https://evil.example) `rm` www.evil.example | *b*\n# title\x1b[2J"
    text = plain(evil)
    assert text.isprintable() or "\u200b" in text
    for live in ("@octocat", "#12", "<img", "https://", "www.evil", "\n"):
        assert live not in text
    assert all(text[at - 1] == "\\" for at, letter in enumerate(text) if letter in "`*[]|")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a job, another run of it, and one whose kernels take half as long again."""
    folder = tmp_path_factory.mktemp("jobs")
    job = Job(ranks=1, steps=6, layers=1)
    slower = {"changes": (ScaleKernels(name="*", factor=1.5),)}
    for name, changed in (("before", {}), ("again", {"seed": 5}), ("after", slower)):
        simulate(job.model_copy(update=changed)).write(folder / name, level=1, truth=False)
    return folder


def test_a_slower_job_fails_and_says_what_to_run(jobs: Path) -> None:
    with pytest.raises(AssertionError, match=r"step time: \+\d.* \(limit \+5 %\); why: htagraph diff "):
        assert_no_slower(jobs / "before", jobs / "after", percent=5)


def test_a_faster_job_passes(jobs: Path) -> None:
    assert assert_no_slower(jobs / "after", jobs / "before").percent < -5


def test_another_run_passes_without_any_limit(jobs: Path) -> None:
    assert assert_no_slower(jobs / "before", jobs / "again").is_noise


def test_two_steps_that_differ_as_steps_of_other_jobs_fail_only_if_strict(jobs: Path) -> None:
    assert not assert_no_slower(jobs / "before", jobs / "before", steps=[5, 6]).is_known
    with pytest.raises(AssertionError, match="too few steps"):
        assert_no_slower(jobs / "before", jobs / "before", steps=[5, 6], strict=True)


def test_two_steps_that_differ_more_than_steps_of_other_jobs_fail(jobs: Path) -> None:
    with pytest.raises(AssertionError, match="more than steps of other jobs differ"):
        assert_no_slower(jobs / "before", jobs / "after", steps=[5, 6])


def test_the_example_of_the_page_compares_two_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(hg, "assert_no_slower", lambda *jobs, **limits: compared.append((jobs, limits)))
    demo = str(REPOSITORY / "data" / "demo")
    page = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0].replace("data/demo", demo)
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_training_is_no_slower_than_last_week"]()
    assert compared == [((demo, demo), {"percent": 5})]
    assert_no_slower(demo, demo, percent=5)


def test_a_job_of_which_nothing_was_recorded_does_not_pass(jobs: Path, tmp_path: Path) -> None:
    empty = tmp_path / "rank-0.json"
    empty.write_text('{"traceEvents": [], "distributedInfo": {"rank": 0}}')
    for sides in ((jobs / "before", empty), (empty, jobs / "before")):
        with pytest.raises(AssertionError, match="nothing was recorded in one of the jobs"):
            assert_no_slower(*sides)
