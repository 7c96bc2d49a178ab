"""``htagraph.assert_no_slower``: a job must not become slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from htagraph import assert_no_slower
from htagraph.simulate import Job, ScaleKernels, simulate
from tests.reach import REPOSITORY


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


def test_two_steps_fail_only_if_strict(jobs: Path) -> None:
    assert not assert_no_slower(jobs / "before", jobs / "after", steps=[5, 6]).is_known
    with pytest.raises(AssertionError, match="too few steps"):
        assert_no_slower(jobs / "before", jobs / "after", steps=[5, 6], strict=True)


def test_the_example_of_the_page_runs() -> None:
    page = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0].replace("data/demo", str(REPOSITORY / "data" / "demo"))
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_training_is_no_slower_than_last_week"]()


def test_a_job_of_which_nothing_was_recorded_does_not_pass(jobs: Path, tmp_path: Path) -> None:
    empty = tmp_path / "rank-0.json"
    empty.write_text('{"traceEvents": [], "distributedInfo": {"rank": 0}}')
    for sides in ((jobs / "before", empty), (empty, jobs / "before")):
        with pytest.raises(AssertionError, match="nothing was recorded in one of the jobs"):
            assert_no_slower(*sides)
