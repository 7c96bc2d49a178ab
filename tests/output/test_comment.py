"""A comment for a pull request: true, short, and made of data that cannot act."""

from __future__ import annotations

import htagraph as hg
from htagraph.analyses.differences.step_change import StepChange, change_of_runs
from htagraph.output.comment import comment, plain
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
