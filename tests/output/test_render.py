from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.findings.phrases import Suggestion
from htagraph.output.render import FORMATS, csv_text, frames_of, render_report, render_summary, render_validation
from htagraph.output.report import Report
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, step, write

LONG = "void at::native::" + "very_" * 20 + "long_kernel<float>(float*)"


def small() -> hg.Summary:
    return hg.summarize(load([step(4, 0, 90), launch(5, 2, 1), kernel(COMPUTE, 10, 20, 1), kernel(LONG, 50, 20_000)]))


@pytest.mark.slow
@given(jobs())
@settings(max_examples=15)
def test_any_summary_can_be_shown_in_any_form(job: dict[int, list[Json]]) -> None:
    summary = hg.summarize(load(job))
    assert all(render_summary(summary, form).strip() for form in FORMATS)


def test_json_is_the_envelope_and_color_is_shown_where_wanted() -> None:
    summary = small()
    assert json.loads(render_summary(summary, "json")).keys() == summary.to_dict().keys()
    assert "\x1b[" in render_summary(summary, "table", color=True)


def test_csv_is_a_table_with_full_names_and_µs() -> None:
    kernels = csv_text(frames_of(small())["kernels"])
    rows = list(csv.DictReader(io.StringIO(kernels)))
    assert {row["name"] for row in rows} == {COMPUTE, LONG}
    assert float(rows[0]["total_us"]) == 20_000


def test_a_terminal_shows_short_names_and_units_that_suit_the_numbers() -> None:
    text = render_summary(small(), "table", width=120).split("Try\n")[0]
    assert not [word for word in ("float", "\x1b") if word in text]
    assert not [word for word in ("…", "total", " 20.0 ") if word not in text]


def test_a_summary_begins_with_its_head_and_ends_with_what_to_try_in_lines_that_fit() -> None:
    summary = small()
    text = render_summary(summary, "table", width=80, inputs=["my job"])
    head, _, _ = text.partition("\n\nTime by rank")
    assert " ".join(head.split()) == " ".join(str(summary).split())
    assert "Verdict\n" not in text
    assert text.index("Time by rank") < text.index("Try\n")
    assert text.endswith("    htagraph summary 'my job' --full\n")
    for shown in (text, render_summary(small(), "table", width=80, full=True)):
        assert max(len(line) for line in shown.splitlines() if "htagraph what-if" not in line) <= 80


def test_a_full_summary_has_every_table_and_the_whole_verdict() -> None:
    summary = small()
    text = " ".join(render_summary(summary, "table", width=200, full=True).split())
    assert all(" ".join(sentence.split()) in text for sentence in summary.verdict)
    assert all(title in text for title in ("Step times", "Launches", "Critical path", "Opportunities", "Traces read"))


def test_markdown_has_a_table_per_result_and_escapes_bars() -> None:
    summary = hg.summarize(load([kernel("a|b", 0, 5)]))
    text = render_summary(summary, "md")
    assert "| --- |" in text
    assert r"a\|b" in text
    assert "## Verdict" not in text
    assert "## Verdict" in render_summary(summary, "md", full=True)


@pytest.mark.parametrize("form", FORMATS)
def test_a_validation_can_be_shown_in_any_form(form: str, tmp_path: Path) -> None:
    validation = hg.validate(write([kernel(COMPUTE, 0, 5, 77)], tmp_path / "rank-0.json"))
    text = render_validation(validation, form)
    assert "launch_missing" in text
    if form == "json":
        assert json.loads(text)["usable"] is True


# reports of other commands


def report(**more: object) -> Report:
    rows = {"matched": [True, False], "mean_bytes": [25e6, float("nan")], "busbw_gb_s": [28.94, 0.5]}
    table = pd.DataFrame(rows | {"speedup": [1.23456, 0.5], "name": [LONG, LONG], "wait_us": [12_345.6, 0.0]})
    issues = pd.DataFrame(columns=["rank", "file", "what", "detail", "count"])
    plain: dict[str, object] = {
        "command": "collectives", "inputs": pd.DataFrame({"rank": [0]}), "issues": issues, "window_us": 9.0,
        "tables": {"collectives": table, "causes": table.iloc[:0]}, "sentences": ["It waits 12 ms."],
    }  # fmt: skip
    return Report(**(plain | more))  # type: ignore[arg-type]


def test_a_report_for_readers_has_units_and_short_names_and_no_empty_table() -> None:
    text = render_report(report(), "table")
    for word in ("yes", "no", "25.0", "28.9", "1.235", "12.3", "MB", "GB/s", "ms"):
        assert word in text
    assert "Waiting by cause" not in text
    assert "<float>" not in text  # the same name twice is no reason to show it whole


def test_a_report_for_programs_has_everything_and_no_nan() -> None:
    shown = json.loads(render_report(report(figures={"makespan_us": float("inf"), "notes": ["a"]}), "json"))
    assert shown["results"].keys() == {"collectives", "causes", "conclusions", "makespan_us", "notes"}
    assert shown["results"]["collectives"][1]["mean_bytes"] is None
    assert shown["results"]["makespan_us"] is None


def test_figures_are_a_table_of_their_own_in_csv() -> None:
    frames = frames_of(report(figures={"straggler": None, "notes": ["a", "b"]}))
    assert csv_text(frames["figures"]) == "straggler,notes\n,a; b\n"


@pytest.mark.parametrize(("form", "empty"), [("csv", "a,\n"), ("md", "| a | - |"), ("table", "-")])
def test_a_ratio_to_nothing_has_no_number(form: str, empty: str) -> None:
    brief = {"ratios": pd.DataFrame({"of": ["a"], "speedup": [float("inf")]})}
    text = render_report(report(brief=brief), form) if form != "csv" else csv_text(brief["ratios"])
    assert empty in text
    assert "inf" not in text


def test_readers_get_the_brief_tables_where_there_are_some() -> None:
    brief = {"parts": pd.DataFrame({"rank": [77]})}
    assert "77" in render_report(report(brief=brief), "md")
    assert "parts" not in frames_of(report(brief=brief))


def test_no_rank_is_called_minus_one_and_names_that_are_cut_alike_differ() -> None:
    names = [f"operator_of_a_very_long_name_{'x' * 80}_{letter}_{'y' * 80}" for letter in "ab"]
    brief = {"parts": pd.DataFrame({"rank": [-1, 0], "operator": names})}
    shown = render_report(report(brief=brief), "table", width=60)
    first, second = (line for line in shown.splitlines() if "operator_of" in line)
    assert first.split()[0] == "-"
    assert first.split()[1] != second.split()[1]


def test_a_command_to_copy_is_never_broken_and_numbers_stay_beside_their_units() -> None:
    line = "htagraph what-if " + "x" * 200 + " --scale 'name=*a b*:0.5'"
    sentence = Suggestion("a " * 25 + "100 % of it", line)
    text = render_report(report(sentences=[sentence]), "table", width=56)
    assert f"\n    {line}\n" in text
    assert "100 %" in text


def test_kernels_that_differ_only_in_their_signature_show_what_differs() -> None:
    table = pd.DataFrame({"name": ["void f<1>(int)", "void f<2>(int)", "void g<1>(int)"]})
    text = render_report(report(tables={"parts": table}), "table")
    assert "f<1>\nf<2>\ng\n" in text
    assert "g<1>" not in text


HOSTILE = "=cmd()\x1b]0;x\x07\u202egnp.exe\x9b31m\nnext"


@pytest.mark.parametrize("form", FORMATS)
def test_no_form_has_a_character_that_commands_a_terminal(form: str) -> None:
    rows = pd.DataFrame({"name": [HOSTILE], "count": [1]})
    issues = pd.DataFrame(columns=["rank", "file", "what", "detail", "count"])
    report = Report("test", pd.DataFrame({"file": ["a.json"]}), issues, 1.0, {"rows": rows}, [HOSTILE])
    shown = render_report(report, form) + "".join(map(csv_text, frames_of(report).values()))
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    if form == "json":
        rows_shown = json.loads(render_report(report, form))["results"]["rows"]
        assert rows_shown[0]["name"] == HOSTILE


def test_no_text_in_csv_is_a_formula_and_numbers_stay_numbers() -> None:
    texts = ["=1+1", "+x", "-cmd", "@sum", " =a", "\t=a", "-", "-5", "+3.5x", "+3.5", "gemm", ""]
    texts += ["+1+1", "-1:2", "+5%", "\uff1d1", "1+1", "-1.5e-3"]
    rows = pd.DataFrame({"name": texts, "change_us": [-1.5] * len(texts), "at": [-1] * len(texts)})
    lines = list(csv.reader(csv_text(rows).splitlines()[1:]))
    plain = ["'=1+1", "'+x", "'-cmd", "'@sum", "' =a", "' =a", "-", "-5", "'+3.5x", "+3.5", "gemm", ""]
    plain += ["'+1+1", "'-1:2", "+5%", "'\uff1d1", "1+1", "-1.5e-3"]
    assert lines == [[text, "-1.5", "-1"] for text in plain]


@pytest.mark.parametrize(("form", "heading"), [("table", "Conclusion\n• Then."), ("md", "## Conclusion\n\n- Then.")])
def test_the_answer_stands_above_the_tables_without_a_heading_and_all_else_below(form: str, heading: str) -> None:
    sentences = ["It waits 12 ms.", "Then."]
    text = render_report(report(sentences=sentences), form)
    assert text.startswith("It waits 12 ms.\n\n")
    assert text.count("It waits") == 1
    assert text.endswith(f"{heading}\n")
    assert "Conclusion" not in render_report(report(sentences=sentences[:1]), form)
    assert json.loads(render_report(report(sentences=sentences), "json"))["results"]["conclusions"] == sentences
