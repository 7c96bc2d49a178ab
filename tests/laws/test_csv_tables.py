"""CSV on stdout is one table, of every verb, and every table of a verb can be chosen."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest

from htagraph.cli.verbs import QUESTIONS
from tests.reach import DATA

DEMO = str(DATA / "demo")
HOST = str(DATA / "gloo_ddp")
VERBS = {
    **{verb: [DEMO] for verb in (*QUESTIONS, "summary", "critical-path", "memory", "counters", "patterns", "validate")},
    "what-if": [DEMO, "--network", "0.5"],
    "diff": [DEMO, HOST],
    "diff --names": [DEMO, HOST],
    "kernels --by operator": [DEMO],
    "collectives --each": [DEMO],
    "critical-path --segments": [DEMO],
    "counters --series": [DEMO],
    "what-if --sweep": ["network=0.5,1", DEMO],
    "cache info": [],
}
"""Words of a verb → its other words, of all verbs that print results and read no file of another kind."""
FEW = ("stragglers", "cache info", "diff --names")
"""Verbs that take little time."""


def rows_of(text: str) -> list[list[str]]:
    """Return the rows of CSV, which must be as long as the headings."""
    rows = list(csv.reader(io.StringIO(text)))
    assert rows
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(set(rows[0])) == len(rows[0])
    return rows


def names_in(error: str) -> list[str]:
    """Return the names that an error lists."""
    said = " ".join(error.replace("│", " ").split())
    found = re.search(r"choose(?: one)? from ([\w, ]+?)(?:, or give|\.|$| ╰)", said)
    assert found, said
    return found[1].split(", ")


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[] if verb in FEW else [pytest.mark.slow]) for verb in VERBS]
)
def test_every_csv_of_a_verb_is_one_table(verb: str, run: Any) -> None:
    words = [*verb.split(), *VERBS[verb], "-f", "csv"]
    alone = run(*words)
    if alone.code == 0:
        rows_of(alone.out)
    else:
        assert (alone.code, alone.out) == (2, "")
        assert "--table" in alone.err
    names = names_in(run(*words, "--table", "no such").err)
    assert len(names) == len(set(names)) >= 2
    chosen = [run(*words, "--table", name) for name in names]
    assert [each.code for each in chosen] == [0] * len(names)
    tables = [rows_of(each.out) for each in chosen]
    assert alone.code or rows_of(alone.out) in tables


def test_a_name_chooses_a_table_of_a_file_as_on_stdout(run: Any, tmp_path: Any) -> None:
    shown = run("stragglers", DEMO, "-f", "csv", "--table", "causes")
    assert run("stragglers", DEMO, "-o", tmp_path / "a.csv", "--table", "causes").code == 0
    assert rows_of((tmp_path / "a.csv").read_text(encoding="utf-8")) == rows_of(shown.out)


@pytest.mark.parametrize("words", [["-f", "json"], [], ["-o", "a.svg"]])
def test_a_whole_result_has_no_table_to_choose(words: list[str], run: Any) -> None:
    ran = run("stragglers", DEMO, "--table", "causes", *words)
    said = ran.out + ran.err  # an error is JSON on stdout where JSON was asked for
    assert ran.code == 2
    assert "add -f csv" in " ".join(said.replace("│", " ").split())
