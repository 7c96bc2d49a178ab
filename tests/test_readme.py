from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.render import render_summary

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_sample_output_is_what_the_command_prints() -> None:
    sample = README.split("prints this (shortened)")[1].split("```\n")[1].removesuffix("```")
    summary = hg.summarize(hg.load(ROOT / "data" / "demo"))
    lines = render_summary(summary, "table", width=80, inputs=["data/demo"]).splitlines()
    assert [line for line in sample.splitlines() if line not in (*lines, "...")] == []
    head = sample.split("\n\n")[0].splitlines()
    assert head == lines[: len(head)]


def test_ci_runs_the_readmes_own_test_command() -> None:
    assert "pip install '.[test]' && pytest" in README
    ran = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "install test '.[test]' && pytest -n auto" in ran


@pytest.mark.parametrize("folder", ["demo", "gloo_ddp"])
def test_each_data_set_is_described(folder: str) -> None:
    assert f"`{folder}/`" in (ROOT / "data" / "README.md").read_text(encoding="utf-8")
