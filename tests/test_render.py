from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.render import FORMATS, render_summary, render_validation
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, step, write

LONG = "void at::native::" + "very_" * 20 + "long_kernel<float>(float*)"


def small() -> hg.Summary:
    return hg.summarize(load([step(4, 0, 90), launch(5, 2, 1), kernel(COMPUTE, 10, 20, 1), kernel(LONG, 50, 20_000)]))


@pytest.mark.parametrize("form", FORMATS)
@given(job=jobs())
@settings(deadline=None, max_examples=15)
def test_any_summary_can_be_shown_in_any_form(form: str, job: dict[int, list[Json]]) -> None:
    assert render_summary(hg.summarize(load(job)), form).strip()


def test_json_is_the_envelope() -> None:
    summary = small()
    shown = json.loads(render_summary(summary, "json"))
    assert shown.keys() == summary.to_dict().keys()


def test_csv_has_a_block_per_table_with_full_names_and_µs() -> None:
    blocks = render_summary(small(), "csv").split("\n\n")
    kernels = next(block for block in blocks if block.startswith("# kernels"))
    rows = list(csv.DictReader(io.StringIO(kernels.split("\n", 1)[1])))
    assert {row["name"] for row in rows} == {COMPUTE, LONG}
    assert float(rows[0]["total_us"]) == 20_000


def test_a_terminal_shows_short_names_and_units_that_suit_the_numbers() -> None:
    text = render_summary(small(), "table", width=120)
    assert "float" not in text
    assert "…" in text
    assert "total" in text
    assert " 20.0 " in text
    assert "Verdict" in text
    assert "\x1b" not in text


def test_color_is_shown_where_wanted() -> None:
    assert "\x1b[" in render_summary(small(), "table", color=True)


def test_no_line_is_wider_than_the_terminal() -> None:
    text = render_summary(small(), "table", width=100)
    tables = text.split("Verdict")[0]
    assert max(len(line) for line in tables.splitlines()) <= 100


def test_markdown_has_a_table_per_result_and_escapes_bars() -> None:
    text = render_summary(hg.summarize(load([kernel("a|b", 0, 5)])), "md")
    assert "| --- |" in text
    assert r"a\|b" in text
    assert "## Verdict" in text


@pytest.mark.parametrize("form", FORMATS)
def test_a_validation_can_be_shown_in_any_form(form: str, tmp_path: Path) -> None:
    validation = hg.validate(write([kernel(COMPUTE, 0, 5, 77)], tmp_path / "rank-0.json"))
    text = render_validation(validation, form)
    assert "launch_missing" in text
    if form == "json":
        assert json.loads(text)["usable"] is True
