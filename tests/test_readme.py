from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.render import render_summary

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_sample_output_is_what_the_command_prints() -> None:
    sample = README.split("```\nTime by rank\n")[1].split("```")[0]
    table, sentences = sample.split("...\nVerdict\n")
    shown = render_summary(hg.summarize(hg.load(ROOT / "data" / "demo")), "table", width=140)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert [line for line in table.splitlines() if line not in lines] == []
    unwrapped = " ".join(shown.split("Verdict")[1].split())
    assert " ".join(sentences.split()) == unwrapped


def test_ci_runs_the_readmes_own_test_command() -> None:
    assert "pip install '.[test]' && pytest" in README
    ran = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "pip install --quiet --disable-pip-version-check '.[test]' && pytest" in ran


@pytest.mark.parametrize("folder", ["demo", "gloo_ddp"])
def test_each_data_set_is_described(folder: str) -> None:
    assert f"`{folder}/`" in (ROOT / "data" / "README.md").read_text(encoding="utf-8")
